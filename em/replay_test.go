package em

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/rows"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
)

// bothBackends calls a test with ours and with GoMLX's.
func bothBackends(t *testing.T, test func(t *testing.T, b compute.Backend)) {
	for _, name := range []string{"go", "simd"} {
		t.Run(name, func(t *testing.T) {
			b, err := backend.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Finalize)
			test(t, b)
		})
	}
}

// watched is an E-step whose latents a test looks at: all that wake has drawn, if it draws one for each observation.
type watched struct {
	EStepper[[]*tensors.Tensor, Inferred]
	see func(x, z []*tensors.Tensor, ok bool)
}

func (w watched) Infer(at Moment, x []*tensors.Tensor) (Inference[Inferred], error) {
	out, err := w.EStepper.Infer(at, x)
	if err == nil {
		w.see(x, out.Z.Z, out.Wake.OK)
	}
	return out, err
}

// seen makes a spec hand on what wake draws, one latent for each observation.
func seen(spec Spec) Spec {
	spec.Wake.Samples, spec.MStep, spec.Gate = 1, MStep{Latents: BestOfWake{}}, never
	return spec
}

// keptRows are the rows of a variable below Kept, or of several as one.
func keptRows(t *testing.T, l *Learner, names ...string) []string {
	t.Helper()
	var all []*tensors.Tensor
	for _, name := range names {
		all = append(all, l.Store().GetVariable(Kept+"/"+name).MustValue())
	}
	return rows.Of(all)
}

// A ring holds the latest latents with their observations, the oldest making room for new ones. A skipped update adds
// none.
func TestReplayRing(t *testing.T) {
	bothBackends(t, func(t *testing.T, b compute.Backend) {
		for _, size := range []int{2, 8, 13, 100} { // batches have 8 observations
			spec := seen(toySpec(newToy(3, dtypes.Float32)))
			spec.Data = spoil(spec.Model.(toy), 2)
			spec.Wake.Replay = Replay{Size: size, Batch: 3}
			l := newLearner(t, b, spec)
			var twin []string // by place
			next, skipped := 0, 0
			l.E = watched{l.E, func(x, z []*tensors.Tensor, ok bool) {
				if !ok {
					skipped++
					return
				}
				for _, entry := range rows.Of(append(slices.Clone(x), z...)) {
					if len(twin) < size {
						twin = append(twin, entry)
					} else {
						twin[next%size] = entry
					}
					next++
				}
			}}
			for i := range 5 {
				steps(t, l, 1)
				if have := keptRows(t, l, "replay/x0", "replay/x1", "replay/z0")[:len(twin)]; !slices.Equal(have, twin) {
					t.Fatalf("ring of %d after %d updates: %q, want %q", size, i+1, have, twin)
				}
				counts := fmt.Sprint(l.Store().GetVariable(Kept+"/replay/next").MustValue().Value(),
					l.Store().GetVariable(Kept+"/replay/filled").MustValue().Value())
				if want := fmt.Sprint(next%size, len(twin)); counts != want {
					t.Errorf("ring of %d after %d updates: next and filled are %s, want %s", size, i+1, counts, want)
				}
			}
			if skipped != 1 {
				t.Errorf("%d updates were skipped", skipped)
			}
		}
	})
}

// drawnAgain are observations and latents whose rewards wake has asked for last.
type drawnAgain[T any] struct {
	Loss T
	X, Z []T
}

// What is replayed is drawn uniformly from what is in the ring, and no more of it.
func TestReplayIsUniform(t *testing.T) {
	const size, draws, updates = 5, 40, 25
	m := newToy(3, dtypes.Float32)
	b := newBackend(t)
	counts := func(filled int32) []float64 {
		var last drawnAgain[*Node]
		spec := toySpec(m)
		spec.Wake.Replay = Replay{Size: size, Batch: draws}
		spec.Wake.Reward = func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
			last = drawnAgain[*Node]{X: x, Z: z}
			return m.LogJoint(theta, x, z)
		}
		l := newLearner(t, b, spec)
		setVariable(t, l.Store(), Kept+"/replay/x0", m.rows(4, 3, 2, 1, 0))
		setVariable(t, l.Store(), Kept+"/replay/z0", tensors.FromValue([][]int32{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}}))
		setVariable(t, l.Store(), Kept+"/replay/filled", tensors.FromValue(filled))
		g := l.E.(eStep).graphs
		p := program.New[eArgs, drawnAgain[*tensors.Tensor]](l.programs, "draw again", func(in eNodes) drawnAgain[*Node] {
			x, u := g.observations(in.X)
			loss := g.wakeLoss(rng.In(in.Key), x, u, in).loss
			return drawnAgain[*Node]{loss, last.X, last.Z}
		})
		known := rows.Of([]*tensors.Tensor{
			l.Store().GetVariable(Kept + "/replay/x0").MustValue(), l.Store().GetVariable(Kept + "/replay/z0").MustValue(),
		})
		n := make([]float64, size)
		for i := range uint64(updates) {
			out, err := p.Call(eArgs{
				Key: rng.Key(7, "wake", i), Rates: []float32{0}, Knobs: spec.Wake.Explore.At(0), X: spec.Data(0),
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows.Of(append(out.X, out.Z...)) {
				n[slices.Index(known, row)]++ // panics if it comes from elsewhere
			}
		}
		return n
	}
	statistic := func(n []float64, of int) float64 {
		return stat.ChiSquare(n[:of], slices.Repeat([]float64{draws * updates / float64(of)}, of))
	}
	for _, filled := range []int{1, 3, 5} {
		n := counts(int32(filled))
		t.Logf("%d entries, drawn %v times", filled, n)
		for _, none := range n[filled:] {
			if none > 0 {
				t.Errorf("of %d entries: drawn %v times", filled, n)
			}
		}
		bound := distuv.ChiSquared{K: float64(max(filled-1, 1))}.Quantile(1 - falseAlarm/3)
		if statistic(n, filled) > bound {
			t.Errorf("of %d entries: drawn %v times, chi-square above %.1f", filled, n, bound)
		}
		if filled == 3 { // what the test can see: draws from the last two only
			n[0], n[1] = 0, n[0]+n[1]
			if statistic(n, filled) < bound {
				t.Error("uneven draws pass")
			}
		}
	}
}

// With nothing kept yet an update is that of a learner that keeps nothing: what fills the batch has no weight.
func TestNothingKeptYet(t *testing.T) {
	m := newToy(3, dtypes.Float32)
	bothBackends(t, func(t *testing.T, b compute.Backend) {
		for _, o := range []gfn.Objective{gfn.TB{}, gfn.DB{}, gfn.SubTB{}, gfn.VarGrad{}} {
			learn := func(r Replay, k Memory) (loss float64, logits []float64) {
				spec := toySpec(m)
				spec.Wake = Wake{Objective: o, Samples: 3, Replay: r, Memory: k}
				spec.Wake.Optimizer.Groups = []optim.Group{{Scope: Phi, Rule: optim.SGD{}, Rate: optim.Rate{Base: 0.1}}}
				l := newLearner(t, b, spec)
				loss = steps(t, l, 1).Wake.Loss
				return loss, numbersOf(t, l.Store(), Phi+"/logits")
			}
			want, logits := learn(Replay{}, Memory{})
			for name, c := range map[string]struct {
				Replay
				Memory
			}{
				"replay": {Replay{Size: 5, Batch: 4}, Memory{}},
				"memory": {Replay{}, Memory{Latents: 2, Data: 8}},
				"both":   {Replay{Size: 5, Batch: 4}, Memory{Latents: 2, Data: 8}},
			} {
				if _, ok := o.(gfn.VarGrad); ok && c.Size > 0 {
					continue
				}
				got, other := learn(c.Replay, c.Memory)
				if !(math.Abs(got-want) <= 1e-5*want) { // float32, added up in another order
					t.Errorf("%T, %s: loss %g, want %g", o, name, got, want)
				}
				near(t, fmt.Sprintf("%T, %s: logits", o, name), other, logits, 1e-6)
			}
		}
	})
}

// Whatever is kept, the E-step with fixed theta ends near the exact posterior, and learned flows near log p(x).
func TestKeptFindPosterior(t *testing.T) {
	const updates, again = 200, 21 // this many are replayed, and no other part has as many rows
	rate := optim.Rate{Base: 0.15, Fall: optim.Fall{From: 90, To: 190, End: 0.02}}
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	m := newToy(3, dtypes.Float32)
	replay, memory := Replay{Size: 40, Batch: again}, Memory{Latents: 2, Data: 8}
	partial := func(_ *model.Scope, x gfn.Batch, s gfn.State, k int) *Node { // some function of x and the state
		return Add(ConvertDType(ReduceSum(s[0], 1), m.dtype), ReduceSum(x.Repeat(k)[0], 1))
	}
	startPartial := func(x int) float64 { return -2 + float64(x&1+x>>1&1+x>>2&1) }
	half := func(rows int) func(*model.Scope, gfn.Batch, gfn.State) *Node {
		return func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
			logR := m.LogJoint(theta, x, z)
			if x.Size() == rows {
				logR = MulScalar(logR, 0.5)
			}
			return logR
		}
	}
	for _, c := range []struct {
		name  string
		wake  Wake
		sleep Sleep
		flows bool // the flow of the initial state is learned
		fails bool
	}{
		{name: "replay, TB", wake: Wake{Replay: replay}, flows: true},
		{name: "replay, DB, rescored", wake: Wake{Objective: gfn.DB{}, Replay: replay, Rescore: true}, flows: true},
		{name: "replay, SubTB, exploring", wake: Wake{
			Objective: gfn.SubTB{}, Replay: replay, Explore: Explore{Beta: Constant(0.7), Epsilon: Constant(0.1)},
		}, flows: true},
		{name: "replay, forward-looking SubTB", wake: Wake{
			Objective: gfn.SubTB{}, Replay: replay, Partial: partial,
		}, flows: true},
		{name: "replay, wake and sleep", wake: Wake{Replay: replay}, sleep: Sleep{Weight: 0.1, Batch: 64}, flows: true},
		{name: "memory, TB", wake: Wake{Memory: memory}, flows: true},
		{name: "memory, VarGrad", wake: Wake{Objective: gfn.VarGrad{}, Memory: memory}},
		{name: "memory, VarGrad, rescored", wake: Wake{Objective: gfn.VarGrad{}, Memory: memory, Rescore: true}},
		{name: "memory, forward-looking DB", wake: Wake{Objective: gfn.DB{}, Memory: memory, Partial: partial}, flows: true},
		{name: "memory of all latents", wake: Wake{Memory: Memory{Latents: 6, Data: 8}}, flows: true},
		{name: "both, SubTB", wake: Wake{Objective: gfn.SubTB{}, Replay: replay, Memory: memory}, flows: true},
		// What the test can see: other rewards of what is replayed, or remembered.
		{name: "other reward of replay", wake: Wake{Replay: replay, Reward: half(again)}, fails: true},
		{name: "other reward of memory", wake: Wake{Memory: memory, Reward: half(16)}, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := toySpec(m)
			spec.Wake, spec.Sleep, spec.Gate = c.wake, c.sleep, never
			spec.Wake.Samples = 8
			spec.Wake.Optimizer = adam(Phi, rate)
			l := newLearner(t, b, spec)
			steps(t, l, updates)
			logP := m.learned(t, l.Store())
			tv := farthest(tablePolicy{m}.posterior(t, l.Store()), logP)
			t.Logf("seed %d, total variation %.4f", spec.Seed, tv)
			if (tv > 0.05) != c.fails {
				t.Errorf("total variation %.3f", tv)
			}
			if !c.flows {
				return
			}
			flow := numbersOf(t, l.Store(), Phi+"/flow/table")
			for x := range logP {
				got := flow[tablePolicy{m}.row(x, nil)]
				if c.wake.Partial != nil {
					got += startPartial(x)
				}
				if want := gfn.LogSumExp(logP[x]); math.Abs(got-want) > 0.1 {
					t.Errorf("log-flow at the start for x=%d is %.3f, want log p(x) = %.3f", x, got, want)
				}
			}
		})
	}
}

// A policy that never takes an action that the posterior needs learns of it from what is kept.
func TestKeptBringBack(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	logP := m.table(m.prior, m.emit)
	_, states := tablePolicy{m}.radix()
	dead := make([]float64, m.observations()*states*3)
	for x := range m.observations() {
		dead[tablePolicy{m}.row(x, nil)*3+1] = -20 // z_0 = 1
	}
	var latents [][]int32 // all with z_0 = 1, of every observation
	var numbers []int
	for x := range m.observations() {
		for z := range int32(3) {
			numbers, latents = append(numbers, x), append(latents, []int32{1, z})
		}
	}
	for _, c := range []struct {
		name string
		wake Wake
		set  func(s *model.Store)
	}{
		{"nothing", Wake{}, func(*model.Store) {}},
		{"replay", Wake{Replay: Replay{Size: 24 * 150, Batch: 24}}, func(s *model.Store) { // more than wake draws
			setVariable(t, s, Kept+"/replay/x0", m.rows(slices.Repeat(numbers, 150)...))
			setVariable(t, s, Kept+"/replay/z0", tensors.FromValue(slices.Repeat(latents, 150)))
			setVariable(t, s, Kept+"/replay/filled", tensors.FromValue(int32(24*150)))
		}},
		{"memory", Wake{Memory: Memory{Latents: 6, Data: 8}}, func(s *model.Store) {
			table := make([][][]int32, 8)
			for x := range table {
				table[x] = append(slices.Clone(latents[:3]), []int32{0, 0}, []int32{0, 0}, []int32{0, 0})
			}
			setVariable(t, s, Kept+"/memory/z0", tensors.FromValue(table))
			setVariable(t, s, Kept+"/memory/filled", tensors.FromValue([]int32{3, 3, 3, 3, 3, 3, 3, 3}))
		}},
	} {
		spec := toySpec(m)
		spec.Wake, spec.Gate = c.wake, never
		spec.Wake.Samples, spec.Wake.Optimizer = 2, adam(Phi, optim.Rate{Base: 0.2})
		l := newLearner(t, b, spec)
		setVariable(t, l.Store(), Phi+"/logits", floats(m.dtype, dead, m.observations()*states, 3))
		c.set(l.Store())
		steps(t, l, 150)
		least := 1.0
		for x, q := range (tablePolicy{m}).posterior(t, l.Store()) {
			p := gfn.Normalise(logP[x])
			least = min(least, (q[1]+q[3]+q[5])/(p[1]+p[3]+p[5]))
		}
		t.Logf("%s: the action has %.1e of its probability or more", c.name, least)
		if (least < 0.1) != (c.name == "nothing") {
			t.Errorf("%s: the action has %.1e of its probability", c.name, least)
		}
	}
}

// What is kept is saved and goes on with the same bits; what is published is the model and the policy alone.
func TestKeptIsSaved(t *testing.T) {
	bothBackends(t, func(t *testing.T, b compute.Backend) {
		for _, name := range []string{"kept", "remembered"} {
			spec := busySpecs(t)[name]
			whole := newLearner(t, b, spec)
			steps(t, whole, 4)
			state, err := run.StoreState(whole.Store(), whole.State())
			if err != nil {
				t.Fatal(err)
			}
			if below := run.Below(state.Arrays, Kept); len(below) < 3 {
				t.Errorf("%s: only %d arrays are kept", name, len(below))
			}
			rest := newLearner(t, b, spec)
			var counters State
			if err := run.RestoreStore(rest.Store(), state, &counters); err != nil {
				t.Fatal(err)
			}
			rest.SetState(counters)
			steps(t, whole, 4)
			steps(t, rest, 4)
			if d := changed(snapshot(t, whole.Store()), snapshot(t, rest.Store())); d != nil {
				t.Errorf("%s: after a restart %v differ", name, d)
			}
			published, err := run.Parameters(whole.Store())
			if err != nil {
				t.Fatal(err)
			}
			for path := range published {
				if !strings.HasPrefix(path, Theta+"/") && !strings.HasPrefix(path, Phi+"/") {
					t.Errorf("%s: %s is published", name, path)
				}
			}
			// A posterior opens what a learner that keeps latents has learned.
			p, err := NewPosterior(b, whole.Store(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Sample(2, spec.Model.(toy).all()); err != nil {
				t.Error(err)
			}
			p.Close()
		}
	})
}

// What cannot be meant is an error of New, which names its caller.
func TestKeptNumbers(t *testing.T) {
	b := newBackend(t)
	twice := func(uint64) []int { return []int{0, 1, 2, 2} }
	for _, c := range []struct {
		want string
		set  func(*Spec)
	}{
		{"Wake.Replay.Size is -1", func(s *Spec) { s.Wake.Replay.Size = -1 }},
		{"Wake.Replay.Batch is -1", func(s *Spec) { s.Wake.Replay.Batch = -1 }},
		{"replay needs both", func(s *Spec) { s.Wake.Replay.Size = 8 }},
		{"replay needs both", func(s *Spec) { s.Wake.Replay.Batch = 8 }},
		{"Wake.Memory.Latents is -1", func(s *Spec) { s.Wake.Memory.Latents = -1 }},
		{"Wake.Memory.Data is -1", func(s *Spec) { s.Wake.Memory.Data = -1 }},
		{"needs Wake.Memory.Data", func(s *Spec) { s.Wake.Memory.Latents = 2 }},
		{"needs Wake.Memory.Latents", func(s *Spec) { s.Wake.Memory.Data = 2 }},
		{"Sleep.Alone leaves wake out", func(s *Spec) {
			s.Wake.Replay, s.Sleep = Replay{Size: 4, Batch: 2}, Sleep{Alone: true, Weight: 1, Batch: 2}
		}},
		{"HVI is right for on-policy", func(s *Spec) {
			s.Wake.Objective, s.Wake.Replay = gfn.HVI{}, Replay{Size: 4, Batch: 2}
		}},
		{"HVI is right for on-policy", func(s *Spec) {
			s.Wake.Objective, s.Wake.Memory = gfn.HVI{}, Memory{Latents: 1, Data: 4}
		}},
		{"VarGrad compares trajectories of one observation", func(s *Spec) {
			s.Wake.Objective, s.Wake.Samples, s.Wake.Replay = gfn.VarGrad{}, 2, Replay{Size: 4, Batch: 2}
		}},
		{"VarGrad.Samples is 2; with Wake.Memory an observation has 5", func(s *Spec) {
			s.Wake.Objective, s.Wake.Samples, s.Wake.Memory = gfn.VarGrad{Samples: 2}, 2, Memory{Latents: 3, Data: 4}
		}},
		{"has an observation 3, and Wake.Memory.Data says that there are 3", func(s *Spec) {
			s.Wake.Memory = Memory{Latents: 1, Data: 3, Rows: func(uint64) []int { return []int{0, 1, 2, 3} }}
		}},
		{"has observation 2 twice", func(s *Spec) { s.Wake.Memory = Memory{Latents: 1, Data: 3, Rows: twice} }},
		{"has no observation", func(s *Spec) {
			s.Wake.Memory = Memory{Latents: 1, Data: 3, Rows: func(uint64) []int { return nil }}
		}},
		{"has 1 numbers of 4 observations", func(s *Spec) {
			s.Wake.Memory = Memory{Latents: 1, Data: 5, Rows: func(uint64) []int { return []int{0} }}
		}},
		{"Wake.Memory.Data is 5, and a batch has 4", func(s *Spec) { s.Wake.Memory = Memory{Latents: 1, Data: 5} }},
	} {
		spec := toySpec(tiny())
		spec.Data = Full(tiny().rows(0, 0, 0, 0))
		c.set(&spec)
		l, err := New(b, model.NewStore(), spec)
		if l != nil || err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "replay_test.go:") {
			t.Errorf("error %v, want one of this file with %q", err, c.want)
		}
	}
	// A batch of other shapes is an error of Step, and changes nothing.
	spec := toySpec(tiny())
	spec.Wake.Replay = Replay{Size: 4, Batch: 2}
	spec.Data = func(step uint64) []*tensors.Tensor {
		return []*tensors.Tensor{
			tiny().rows(0, 0, 0, 0), tensors.FromValue(make([]float32, 4)),
			tensors.FromShape(shapes.Make(dtypes.Float32, 4, 1+int(step))),
		}
	}
	l := newLearner(t, b, spec)
	steps(t, l, 1)
	before := snapshot(t, l.Store())
	if _, err := l.Step(); err == nil || !strings.Contains(err.Error(), "all batches have rows of one shape") {
		t.Errorf("a batch with longer rows: error %v", err)
	}
	if d := changed(before, snapshot(t, l.Store())); d != nil {
		t.Errorf("a failed update has changed %v", d)
	}
}
