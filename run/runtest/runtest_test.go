package runtest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
)

// walk is a job that keeps the laws: a random walk whose steps depend on its count alone, with a mean that it logs.
type walk struct {
	N     uint64
	Mean  float64
	place float64
	total uint64
}

func (w *walk) Done() bool { return w.N == w.total }

func (w *walk) Step() (run.Tick, error) {
	return w.move(rand.New(rand.NewPCG(1, w.N)).Float64())
}

func (w *walk) move(by float64) (run.Tick, error) {
	w.N++
	w.place += by
	w.Mean += (w.place - w.Mean) / float64(w.N)
	tick := run.Tick{Step: w.N, Total: w.total}
	if w.N%3 == 0 {
		tick.Log = map[string]float64{"mean": w.Mean, "odd": math.NaN()}
	}
	return tick, nil
}

func (w *walk) State() (run.State, error) {
	extra, err := json.MarshalIndent(w, "", "  ")
	place := binary.LittleEndian.AppendUint64(nil, math.Float64bits(w.place))
	return run.State{Arrays: map[string]run.Array{"place": {DType: "F64", Data: place}}, Extra: extra}, err
}

func (w *walk) Restore(s run.State) error {
	next := *w
	if err := s.Rest(&next); err != nil {
		return err
	}
	a, ok := s.Arrays["place"]
	if !ok || len(s.Arrays) != 1 || a.DType != "F64" || len(a.Shape) != 0 {
		return errors.New("other arrays")
	}
	next.place = math.Float64frombits(binary.LittleEndian.Uint64(a.Data))
	if math.IsNaN(next.place) || math.IsInf(next.place, 0) {
		return errors.New("not finite")
	}
	*w = next
	return nil
}

func newWalk() *walk { return &walk{total: 12} }

// lawsBroken returns the laws that jobs break, one line each, with an example.
func lawsBroken(start func() run.Job, o Options) []string {
	c := &checker{start: start, options: o}
	c.check()
	return c.broken
}

func TestJob(t *testing.T) {
	job := Job(t, func() run.Job { return newWalk() }, Options{})
	if got := job.(*walk); !got.Done() || got.N != 12 {
		t.Errorf("the job that is returned is at %d", got.N)
	}
	Job(t, func() run.Job { return &walk{} }, Options{})
	Job(t, func() run.Job { return &walk{total: 1} }, Options{})
	Job(t, func() run.Job { return newWalk() }, Options{Stops: []int{11, 0, 3, 3}})
	if got := Job(t, func() run.Job { return &walk{total: 5000} }, Options{Steps: 7}).(*walk); got.N != 7 {
		t.Errorf("the job was driven to %d", got.N)
	}
}

// The broken twins of a walk.
type (
	forgetful struct{ *walk } // does not restore the mean
	hidden    struct {        // does not save a number that steps depend on
		*walk
		heat float64
	}
	drifting struct{ *walk } // State moves it
	tiring   struct {        // State changes what is not in the state
		*walk
		calls int
	}
	drawing struct { // draws from a generator with a state of its own
		*walk
		r *rand.Rand
	}
	restless struct{ *walk } // draws from a generator that all share
	adding   struct{ *walk } // Restore adds to what is there
	boastful struct {        // logs a best value that it does not save
		*walk
		best float64
	}
	growing  struct{ *walk } // has an array more after its first step
	bending  struct{ *walk } // has an array of another shape at its end
	trusting struct{ *walk } // restores whatever it is given
	hasty    struct{ *walk } // looks at counters when it has the arrays
	endless  struct{ *walk } // is not done when it is restored at its end
	stuck    struct{ *walk } // reports the same step twice
	failing  struct{ *walk } // fails
	refusing struct{ *walk } // cannot be restored later
	unsaved  struct{ *walk } // cannot be saved later
	crooked  struct{ *walk } // has a state that cannot be written
)

func (w forgetful) Restore(s run.State) error {
	mean := w.Mean
	err := w.walk.Restore(s)
	w.Mean = mean
	return err
}

func (w *hidden) Step() (run.Tick, error) {
	w.heat++
	return w.move(w.heat)
}

func (w drifting) State() (run.State, error) {
	w.place++
	return w.walk.State()
}

func (w *tiring) State() (run.State, error) {
	w.calls++
	return w.walk.State()
}

func (w *tiring) Step() (run.Tick, error) {
	// Only after several calls, so that no state shows it.
	return w.move(float64(w.calls / 2))
}

func (w drawing) Step() (run.Tick, error)  { return w.move(w.r.Float64()) }
func (w restless) Step() (run.Tick, error) { return w.move(rand.Float64()) }

func (w adding) Restore(s run.State) error {
	before := w.place
	err := w.walk.Restore(s)
	w.place += before
	return err
}

func (w *boastful) Step() (run.Tick, error) {
	tick, err := w.walk.Step()
	w.best = max(w.best, math.Sin(float64(w.N)))
	tick.Log = map[string]float64{"best": w.best}
	return tick, err
}

func (w growing) State() (run.State, error) {
	s, err := w.walk.State()
	if w.N > 0 {
		s.Arrays["late"] = s.Arrays["place"]
	}
	return s, err
}

func (w bending) State() (run.State, error) {
	s, err := w.walk.State()
	if w.Done() {
		s.Arrays["place"] = run.Array{DType: "F64", Shape: []int{1}, Data: s.Arrays["place"].Data}
	}
	return s, err
}

func (w growing) Restore(s run.State) error {
	s.Arrays = maps.Clone(s.Arrays)
	delete(s.Arrays, "late")
	return w.walk.Restore(s)
}

func (w bending) Restore(s run.State) error {
	s.Arrays = maps.Clone(s.Arrays)
	place := s.Arrays["place"]
	place.Shape = nil
	s.Arrays["place"] = place
	return w.walk.Restore(s)
}

func (w trusting) Restore(s run.State) error {
	if a, ok := s.Arrays["place"]; ok {
		w.place = math.Float64frombits(binary.LittleEndian.Uint64(a.Data))
	}
	return json.Unmarshal(s.Extra, w.walk)
}

func (w hasty) Restore(s run.State) error {
	if a, ok := s.Arrays["place"]; ok && len(s.Arrays) == 1 {
		w.place = math.Float64frombits(binary.LittleEndian.Uint64(a.Data))
	}
	return w.walk.Restore(s)
}

func (w endless) Restore(s run.State) error {
	err := w.walk.Restore(s)
	if w.N == w.total {
		w.total++
	}
	return err
}

func (w stuck) Step() (run.Tick, error) {
	tick, err := w.walk.Step()
	tick.Step /= 2
	return tick, err
}

func (w failing) Step() (run.Tick, error) {
	if w.N == 5 {
		return run.Tick{}, errors.New("no more")
	}
	return w.walk.Step()
}

func (w refusing) Restore(s run.State) error {
	if s.Step > 5 {
		return errors.New("does not fit")
	}
	return w.walk.Restore(s)
}

func (w unsaved) State() (run.State, error) {
	if w.N == 6 {
		return run.State{}, errors.New("too large")
	}
	return w.walk.State()
}

func (w crooked) State() (run.State, error) {
	s, err := w.walk.State()
	s.Arrays["place"] = run.Array{DType: "F32", Data: s.Arrays["place"].Data}
	return s, err
}

// Every twin breaks the laws that are expected, and no others.
func TestBrokenTwins(t *testing.T) {
	for name, c := range map[string]struct {
		start func() run.Job
		laws  []string
	}{
		"forgetful": {func() run.Job { return forgetful{newWalk()} }, []string{lawResume, lawTwice}},
		"hidden":    {func() run.Job { return &hidden{walk: newWalk()} }, []string{lawResume}},
		"drifting":  {func() run.Job { return drifting{newWalk()} }, []string{lawState, lawResume, lawTwice, lawOwn}},
		"tiring":    {func() run.Job { return &tiring{walk: newWalk()} }, []string{lawState, lawResume, lawTwice}},
		"drawing":   {func() run.Job { return drawing{newWalk(), rand.New(rand.NewPCG(1, 2))} }, []string{lawResume}},
		"restless":  {func() run.Job { return restless{newWalk()} }, []string{lawSame, lawResume, lawTwice}},
		"adding":    {func() run.Job { return adding{newWalk()} }, []string{lawTwice}},
		"boastful":  {func() run.Job { return &boastful{walk: newWalk()} }, []string{lawResume}},
		"growing":   {func() run.Job { return growing{newWalk()} }, []string{lawArrays, lawOwn}},
		"bending":   {func() run.Job { return bending{newWalk()} }, []string{lawArrays, lawOwn}},
		"trusting":  {func() run.Job { return trusting{newWalk()} }, []string{lawOwn}},
		"hasty":     {func() run.Job { return hasty{newWalk()} }, []string{lawOwn}},
		"endless":   {func() run.Job { return endless{newWalk()} }, []string{lawResume}},
		"stuck":     {func() run.Job { return stuck{newWalk()} }, []string{lawSteps}},
		"failing":   {func() run.Job { return failing{newWalk()} }, []string{lawRun}},
		"refusing":  {func() run.Job { return refusing{newWalk()} }, []string{lawRun}},
		"unsaved":   {func() run.Job { return unsaved{newWalk()} }, []string{lawRun}},
		"crooked":   {func() run.Job { return crooked{newWalk()} }, []string{lawRun}},
		"long":      {func() run.Job { return &walk{total: 1001} }, []string{lawSteps}},
	} {
		var laws []string
		for _, v := range lawsBroken(c.start, Options{}) {
			law, _, _ := strings.Cut(v, ": ")
			laws = append(laws, law)
		}
		slices.Sort(laws)
		slices.Sort(c.laws)
		if !slices.Equal(laws, c.laws) {
			t.Errorf("%s breaks\n%s\nwant\n%s", name, strings.Join(lawsBroken(c.start, Options{}), "\n"), strings.Join(c.laws, "\n"))
		}
	}
	got := lawsBroken(func() run.Job { return newWalk() }, Options{Stops: []int{12}})
	if len(got) != 1 || !strings.Contains(got[0], "it has 12 steps and cannot be stopped after 12") {
		t.Errorf("a stop after the end: %q", got)
	}
}
