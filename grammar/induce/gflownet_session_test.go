package induce

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
)

// gfnMethods are GFlowNet trainings that differ in what they do: a gate that closes after a while, and one that is
// always open.
func gfnMethods() map[string]Config {
	plain := smallGFN()
	plain.Updates, plain.MaxIterations, plain.Gate.Threshold, plain.Gate.ThresholdEnd = 100, 24, 42, 40
	prior := plain
	prior.Gate.Threshold, prior.Gate.ThresholdEnd = 1e9, 1e9
	prior.Model.Grammar, prior.Prior.On, prior.Prior.Updates, prior.Wake.Epsilon, prior.Optim.Warmup = string(grammar.NCFG), true, 3, 0.1, 6
	prior.MStep.Collapse, prior.Model.Init = Labels, grammar.Xavier
	weights := weightedGFN(3)
	weights.Updates, weights.MaxIterations, weights.Wake.Objective = 100, 24, "vargrad"
	weights.Wake.Replay, weights.Moves.Balance = 2, 0
	bare := prior
	bare.Policy.Trees = Shapes
	going := persistent(Shapes)
	going.Updates, going.MaxIterations, going.Wake.Replay = 100, 24, 1
	return map[string]Config{
		"cfg": plain, "ncfg with a prior": prior, "weights, replayed": weights, "shapes, ncfg with a prior": bare, "chains that persist, replayed": going,
	}
}

// A GFlowNet training that is stopped anywhere and continued by another session ends with the same bits.
func TestGFNResume(t *testing.T) {
	t.Parallel()
	stops := map[string]int{"cfg": 15, "ncfg with a prior": 5, "weights, replayed": 10, "shapes, ncfg with a prior": 5, "chains that persist, replayed": 13}
	for name, c := range gfnMethods() {
		start := func() run.Job { return tinySession(t, c) }
		whole := runtest.Job(t, start, runtest.Options{Stops: []int{stops[name]}}).(*Session)
		if whole.loop.State().Iteration != uint64(c.MaxIterations) || whole.loop.State().Skipped != 0 || whole.made() == 0 {
			t.Errorf("%s: %d iterations with %d M-steps, %d skipped", name, whole.loop.State().Iteration, whole.made(), whole.loop.State().Skipped)
		}
		if want := fmt.Sprintf("max_iterations = 24 ended the training after %d of 100 M-steps: raise", whole.made()); !strings.HasPrefix(whole.Short(), want) {
			t.Errorf("%s: the end says %q, want %q", name, whole.Short(), want)
		}
	}
}

// With a gate that is always open, all iterations but the first of each epoch have an M-step; and it alone changes the
// grammar.
func TestGFNSchedule(t *testing.T) {
	t.Parallel()
	s := tinySession(t, smallGFN())
	perEpoch := s.sampler.perEpoch()
	if perEpoch != 8 {
		t.Fatalf("an epoch has %d batches", perEpoch)
	}
	steps(t, s, 1)
	before, made := stateOf(t, s), uint64(0)
	for it := uint64(1); it <= 2*perEpoch; it++ {
		steps(t, s, 1)
		after := stateOf(t, s)
		due := it%perEpoch != 0
		if due {
			made++
		}
		if s.made() != made || (hashBelow(after, em.Theta) != hashBelow(before, em.Theta)) != due {
			t.Errorf("iteration %d: %d M-steps, want %d", it, s.made(), made)
		}
		if hashBelow(after, em.Phi) == hashBelow(before, em.Phi) {
			t.Errorf("iteration %d left the network as it was", it)
		}
		before = after
	}
	s.Gate.Threshold, s.Gate.ThresholdEnd = 0, 0
	s.loop.Gate = s.gate()
	steps(t, s, 3)
	if s.made() != made+1 { // the gate was open for the first of them
		t.Errorf("a gate that never opens let %d M-steps pass", s.made()-made)
	}
}

// M-steps that fail end a training though its E-steps are well, and so do E-steps that fail, which no M-step follows.
// The count goes on in a session that continues the training.
func TestGFNDivergesByHalves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ moments, scope, other, want string }{
		{"/optim/theta/symbols/m1", em.Theta, em.Phi, "M-updates"}, {"/optim/phi/encoder/tokens/m1", em.Phi, em.Theta, "E-updates"},
	} {
		s := tinySession(t, smallGFN())
		steps(t, s, 3)
		finite := stateOf(t, s).Arrays[c.moments]
		poison(t, s, c.moments)
		before := stateOf(t, s)
		steps(t, s, 2)
		saved := stateOf(t, s)
		again := tinySession(t, smallGFN())
		if err := again.Restore(saved); err == nil || !strings.Contains(err.Error(), c.moments) {
			t.Errorf("a state with NaN in %s is restored (%v)", c.moments, err)
		}
		saved.Arrays[c.moments] = finite
		if err := again.Restore(saved); err != nil {
			t.Fatal(err)
		}
		poison(t, again, c.moments)
		steps(t, again, patience-3)
		if _, err := again.Step(); !errors.Is(err, run.ErrGaveUp) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s are NaN: error %v, want one about %s", c.moments, err, c.want)
		}
		after := stateOf(t, again)
		if again.loop.State().Skipped != patience || hashBelow(after, c.scope) != hashBelow(before, c.scope) {
			t.Errorf("%s are NaN: %d updates were skipped, and %s may have changed", c.moments, again.loop.State().Skipped, c.scope)
		}
		if moved := hashBelow(after, c.other) != hashBelow(before, c.other); moved != (c.other == em.Phi) {
			t.Errorf("%s are NaN: %s changed: %v", c.moments, c.other, moved)
		}
	}
}

// The gate of the published configuration, by itself and in an iteration: the average of losses starts at 0, and the
// threshold falls from 6 to 3 with the number of M-steps.
func TestGFNGate(t *testing.T) {
	t.Parallel()
	c := PaperConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for made, want := range map[uint64]float64{0: 6, 5000: 4.5, 10_000: 3, 20_000: 3} {
		closeTo(t, "threshold", em.Adaptive{Threshold: c.threshold()}.At(made), want, 1e-12)
	}
	config := smallGFN()
	config.Gate.Threshold, config.Gate.ThresholdEnd, config.Updates, config.Horizon, config.Optim.Warmup = c.Gate.Threshold, c.Gate.ThresholdEnd, 2000, c.Horizon, 40
	s := tinySession(t, config)
	tick, err := s.Step()
	if err != nil {
		t.Fatal(err)
	}
	wake := tick.Log["wake/loss"]
	closeTo(t, "first average", s.loop.State().Gate.Average, 0.1*wake, 1e-12)
	for made, alpha := range map[uint64]float64{0: 6, 5000: 4.5, 9999: 3.0003} {
		for _, by := range []float64{-1e-3, 1e-3} {
			// The same iteration again: its rate is 0, and it has changed nothing but Adam's moments.
			s.loop.SetState(em.State{M: made, Gate: em.GateState{Average: (alpha + by - 0.1*wake) / 0.9}})
			steps(t, s, 1)
			closeTo(t, "average", s.loop.State().Gate.Average, alpha+by, 1e-9)
			if s.loop.State().Gate.Open != (by < 0) {
				t.Errorf("after %d M-steps an average of %.4f gives %v", made, s.loop.State().Gate.Average, s.loop.State().Gate.Open)
			}
		}
	}
	// What is told is the threshold that the average was compared with, also of an iteration that made an M-step since.
	for _, r := range []em.Report{{State: em.State{M: 5000}}, {State: em.State{M: 5001}, M: &em.Update{}}} {
		closeTo(t, "threshold told", s.metrics(r)["gate/threshold"], 4.5, 1e-12)
	}
}

// The temperature of the prior follows the number of M-steps up to the horizon, not that of iterations.
func TestGFNTemperature(t *testing.T) {
	t.Parallel()
	c := smallGFN()
	c.Prior.On, c.Prior.Updates, c.Horizon, c.Optim.Warmup = true, 0, 100, 40
	s := tinySession(t, c)
	s.prior.Params = spreadPrior(rng.New(1, "prior"), 4)
	first := func(made uint64) float64 { // the first iteration, whose rate is 0
		s.loop.SetState(em.State{M: made})
		tick, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		return tick.Log["wake/loss"]
	}
	hot, warm, cold := first(0), first(50), first(100)
	if hot == warm || warm == cold {
		t.Errorf("the loss is %g, %g and %g after none, half and all of the M-steps of the horizon", hot, warm, cold)
	}
	if late := first(150); late != cold {
		t.Errorf("the loss is %g at the horizon and %g after it", cold, late)
	}
}

// The published configuration: its network, and its learning rates, which start at 0 and stay where they were at the
// last iteration of the warm-up.
func TestGFNPaper(t *testing.T) {
	t.Parallel()
	c := PaperConfig()
	e, err := newGFlowNet(program.NewSet(simd(), nil), nil, 9672, &c)
	if err != nil {
		t.Fatal(err)
	}
	if want := forest.Paper(9672, 29, 60); !reflect.DeepEqual(e.Network, want) {
		t.Errorf("the network is %+v, want %+v", e.Network, want)
	}
	for it, fraction := range map[uint64]float64{0: 0, 1: 1.0 / 40, 39: 39.0 / 40, 40: 39.0 / 40, 1000: 39.0 / 40, 1_000_000: 39.0 / 40} {
		rates := e.optimizer.Rates(it)
		for i, nominal := range []float64{1e-4, 1e-4, 1e-4, 3e-3} {
			closeTo(t, fmt.Sprintf("rate %d of iteration %d", i, it), float64(rates[i])/nominal, fraction, 1e-6)
		}
	}
	if e.optimizer.ClipNorm != 3 || len(e.optimizer.Groups) != 4 || c.Optim.Phi.Beta1 != 0.9 || c.Optim.Phi.Beta2 != 0.99 {
		t.Error("the optimiser is not the paper's")
	}
	if c.Wake.Beta != 1/1.1 || c.Sleep.Weight != 10 || c.Sleep.Leaves != 40 || c.Sleep.Steps != 20 || c.Moves.Balance != 1 || c.Moves.Count != 10 ||
		c.Moves.ECount != 1 || c.Moves.Steps != 20 || c.Moves.FirstSteps != 10 || c.Wake.Objective != "subtb" || c.Wake.Lambda != 1 || c.Wake.Epsilon != 0 {
		t.Errorf("the GFlowNet is trained in another way: %+v", c)
	}
}

// TestExpected: what a bar counts towards follows how many iterations M-steps have taken, and ends where the training
// does.
func TestExpected(t *testing.T) {
	t.Parallel()
	c := smallGFN()
	c.Updates, c.Prior.On, c.Prior.Updates = 200, true, 5
	s := tinySession(t, c)
	s.OfPrior = 5
	for _, k := range []struct{ iterations, made, most, want uint64 }{
		{0, 0, 0, 5 + 200},
		{11, 0, 0, 5 + 11 + 400}, // as if 11 M-steps had taken 22 iterations
		{189, 89, 0, 5 + 189 + 2*111},
		{389, 189, 0, 5 + 389 + 2*11},
		{410, 200, 0, 5 + 410},
		{189, 89, 300, 5 + 300},
	} {
		s.loop.SetState(em.State{Iteration: k.iterations, M: k.made})
		s.MaxIterations = int(k.most)
		if got := s.expected(); got != k.want {
			t.Errorf("%d iterations, %d of 200 M-steps: %d steps are expected, want %d", k.iterations, k.made, got, k.want)
		}
	}
	s.loop.SetState(em.State{Iteration: 50})
	tick, err := s.Step()
	if err != nil {
		t.Fatal(err)
	}
	if want := s.expected(); tick.Total != want || want == s.total() {
		t.Errorf("a bar counts towards %d, want %d, and not %d", tick.Total, want, s.total())
	}
}
