package em

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gfnem/gfnem/badinput"
)

// talker is an E- and an M-step that have something to say.
type talker struct{}

func (talker) Infer(Moment, int) (Inference[int], error) {
	wake := Update{Loss: 1, OK: true}
	return Inference[int]{Wake: wake, SleepLoss: math.NaN(), Metrics: map[string]float64{"entropy": 3}}, nil
}

func (talker) Maximize(Moment, int, int) (Maximization, error) {
	return Maximization{
		Update: Update{Loss: 2, OK: true}, Accepted: math.NaN(), Metrics: map[string]float64{"perplexity": 4},
	}, nil
}

// An iteration reports what both of its steps say.
func TestMetrics(t *testing.T) {
	data := func(uint64) int { return 0 }
	for _, c := range []struct {
		loop Loop[int, int]
		want map[string]float64
	}{
		{Loop[int, int]{Data: data, E: talker{}, M: talker{}}, map[string]float64{"entropy": 3, "perplexity": 4}},
		{Loop[int, int]{Data: data, M: talker{}}, map[string]float64{"perplexity": 4}},
		{Loop[int, int]{Data: data, E: talker{}, M: talker{}, Gate: Never}, map[string]float64{"entropy": 3}},
	} {
		r, err := c.loop.Step()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, r.Metrics); d != "" {
			t.Errorf("metrics (-want +got):\n%s", d)
		}
	}
}

// scripted are steps that write down when they are called, and fail, or hand on nothing, at some iterations.
type scripted struct {
	trace          []string
	unfit, skipped []uint64
	failsE, failsM []uint64
	sleeps, both   bool   // E-steps are sleep alone; they make M-updates that are certain
	promised       []bool // whether E-steps were told that an M-step is certain
}

var errScript = errors.New("no such luck")

func (s *scripted) Infer(at Moment, _ int) (Inference[int], error) {
	s.trace = append(s.trace, fmt.Sprintf("E%d", at.Iteration))
	if slices.Contains(s.failsE, at.Iteration) {
		return Inference[int]{}, errScript
	}
	out := NewInference(0)
	out.Wake = Update{Loss: 1, GradNorm: 1, OK: !slices.Contains(s.skipped, at.Iteration)}
	out.Unfit = slices.Contains(s.unfit, at.Iteration)
	if s.sleeps {
		wake := out.Wake
		out.Wake, out.Sleep = Update{}, &wake
	}
	if s.both && at.Maximizes {
		out.M = &Update{Loss: 1, OK: true}
	}
	s.promised = append(s.promised, at.Maximizes)
	return out, nil
}

func (s *scripted) Maximize(at Moment, _, _ int) (Maximization, error) {
	s.trace = append(s.trace, fmt.Sprintf("M%d.%d", at.Iteration, at.M))
	if slices.Contains(s.failsM, at.Iteration) {
		return Maximization{}, errScript
	}
	return NewMaximization(Update{Loss: 1, OK: true}), nil
}

// An M-step knows its number and its iteration, and happens where the gate says so, unless there is nothing to learn from.
func TestMoments(t *testing.T) {
	open := Constant(math.Inf(1))
	for _, c := range []struct {
		gate  Gate
		steps scripted
		want  string
	}{
		{Blocks{E: 2, M: 3}, scripted{}, "E0 E1 M1.0 M1.1 M1.2 E2 E3 M3.3 M3.4 M3.5 E4 E5 M5.6 M5.7 M5.8 E6"},
		{Blocks{E: 2}, scripted{unfit: []uint64{1, 2}}, "E0 E1 E2 E3 M3.0 E4 E5 M5.1 E6"},
		{Adaptive{Threshold: open}, scripted{}, "E0 E1 M1.0 E2 M2.1 E3 M3.2 E4 M4.3 E5 M5.4 E6 M6.5"},
		{Adaptive{Threshold: open, Epoch: 1}, scripted{}, "E0 E1 M1.0 E2 M2.1 E3 M3.2 E4 M4.3 E5 M5.4 E6 M6.5"},
		{Adaptive{Threshold: open, Epoch: 3}, scripted{}, "E0 E1 M1.0 E2 M2.1 E3 E4 M4.2 E5 M5.3 E6"},
		{Adaptive{Threshold: open}, scripted{unfit: []uint64{1, 4}}, "E0 E1 E2 M2.0 E3 M3.1 E4 E5 M5.2 E6 M6.3"},
		{Adaptive{Threshold: open}, scripted{skipped: []uint64{1}}, "E0 E1 M1.0 E2 M2.1 E3 M3.2 E4 M4.3 E5 M5.4 E6 M6.5"},
		{Blocks{Below: 0.5}, scripted{}, "E0 E1 E2 E3 E4 E5 E6"},
		{Blocks{E: 3, Below: 2}, scripted{sleeps: true}, "E0 E1 E2 M2.0 E3 E4 E5 M5.1 E6"},
		{Blocks{M: 2}, scripted{both: true}, "E0 M0.1 E1 M1.3 E2 M2.5 E3 M3.7 E4 M4.9 E5 M5.11 E6 M6.13"},
		{Turns{2}, scripted{}, "M0.0 E1 E2 M3.1 M4.2 E5 E6"},
	} {
		l := Loop[int, int]{Data: func(uint64) int { return 0 }, E: &c.steps, M: &c.steps, Gate: c.gate}
		for range 7 {
			promised := len(c.steps.promised)
			r, err := l.Step()
			if err != nil {
				t.Fatal(err)
			}
			certain := c.steps.unfit == nil && !c.steps.sleeps
			if certain && len(c.steps.promised) > promised && c.steps.promised[promised] != (r.M != nil) {
				t.Errorf("%+v, %+v: an M-step was promised: %t", c.gate, r, c.steps.promised[promised])
			}
		}
		if got := strings.Join(c.steps.trace, " "); got != c.want {
			t.Errorf("%+v, %+v:\n%s, want\n%s", c.gate, c.steps.unfit, got, c.want)
		}
	}
}

// A step that cannot be run at all counts as not made, and the report of it has the counters as they are.
func TestFailedCalls(t *testing.T) {
	for _, c := range []struct {
		gate  Gate
		steps scripted
		alone bool
		want  State
		trace string
	}{
		{Blocks{}, scripted{failsE: []uint64{1}}, false, State{Iteration: 1, M: 1}, "E0 M0.0 E1 E1"},
		{Blocks{}, scripted{failsM: []uint64{1}}, false, State{Iteration: 2, M: 1}, "E0 M0.0 E1 M1.1 E2 M2.1"},
		{Turns{1}, scripted{failsM: []uint64{1}}, false, State{Iteration: 1}, "E0 M1.0 M1.0"},
		{nil, scripted{failsM: []uint64{0}}, true, State{}, "M0.0 M0.0"},
	} {
		l := Loop[int, int]{Data: func(uint64) int { return 0 }, E: &c.steps, M: &c.steps, Gate: c.gate}
		if c.alone {
			l.E = nil
		}
		var r Report
		var err error
		for err == nil {
			r, err = l.Step()
		}
		got := r.State
		got.Gate = GateState{}
		if d := cmp.Diff(c.want, got); d != "" || !errors.Is(err, errScript) || r.State != l.State() {
			t.Errorf("%+v: error %v, state (-want +got)\n%s", c.gate, err, d)
		}
		_, _ = l.Step()
		if trace := strings.Join(c.steps.trace, " "); trace != c.trace {
			t.Errorf("%+v: %s, want %s", c.gate, trace, c.trace)
		}
	}
}

// Both updates of an E-step that makes two are counted, also when the first of them is one too many to be skipped.
func TestBothCount(t *testing.T) {
	steps := scripted{both: true, skipped: []uint64{1, 2, 3, 4, 5}}
	l := Loop[int, int]{Data: func(uint64) int { return 0 }, E: &steps, M: &steps}
	err := l.Train(t.Context(), func(s State) bool { return s.Iteration == 10 }, nil)
	want := State{Iteration: 6, M: 6, Skipped: 5, InARow: InARow{E: 5}}
	got := l.State()
	got.Gate = GateState{}
	if d := cmp.Diff(want, got); d != "" || !errors.Is(err, ErrDiverged) {
		t.Errorf("error %v, state (-want +got)\n%s", err, d)
	}
}

// Counters that no loop can have are refused.
func TestCheck(t *testing.T) {
	good := State{Iteration: 10, Sleep: 4, M: 30, Skipped: 44, InARow: InARow{E: 7}}
	if err := good.Check(10); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(s *State){
		"iteration 11 of 10": func(s *State) { s.Iteration++ },
		"Sleep:11":           func(s *State) { s.Sleep = 11 },
		"Skipped:45":         func(s *State) { s.Skipped++ },
		"Sleep:-1":           func(s *State) { s.InARow.Sleep = -1 },
		"M:-2":               func(s *State) { s.Gate.M = -2 },
	} {
		bad := good
		change(&bad)
		var input *badinput.Error
		if err := bad.Check(10); !errors.As(err, &input) || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want one about %s", err, what)
		}
	}
}
