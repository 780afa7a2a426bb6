package em

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// falseAlarm is how often, over seeds, a statistical test of this package may fail on right code. Seeds are fixed: a
// failure always means that the numbers drawn have changed.
const falseAlarm = 1e-4

// Neither step moves what belongs to the other one.
func TestStepsKeepApart(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	phi, theta := []string{Phi, optim.Root + Phi}, []string{Theta, optim.Root + Theta}
	mine := map[kind][]string{wake: phi, wakeAndSleep: phi, sleep: phi, maximize: theta}
	moves := map[kind][]string{
		wake: {Phi + "/flow/table", Phi + "/logits"}, wakeAndSleep: {Phi + "/flow/table", Phi + "/logits"},
		sleep: {Phi + "/logits"}, maximize: {Theta + "/emit", Theta + "/prior"},
	}
	for name, set := range map[string]func(*Spec){
		"gradient":    func(s *Spec) {},
		"closed form": func(s *Spec) { s.MStep.ClosedForm = true },
		"moves":       func(s *Spec) { s.MStep.Moves = 2 },
		"own reward": func(s *Spec) {
			s.Wake.Reward = func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
				return MulScalar(m.LogJoint(theta, x, z), 2)
			}
			s.Wake.Partial = func(theta *model.Scope, x gfn.Batch, s gfn.State, k int) *Node {
				_, emit := m.variables(theta)
				return BroadcastToDims(ReduceAllSum(emit.NodeValue(x[0])), s[0].Shape().Dim(0))
			}
			s.Wake.Objective = gfn.SubTB{}
			s.Wake.Rescore = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := toySpec(m)
			spec.Sleep = Sleep{Weight: 1, Batch: 8}
			set(&spec)
			l := newLearner(t, b, spec)
			call := func(k kind, step uint64) {
				t.Helper()
				at := Moment{Iteration: step, M: step}
				var u Update
				var err error
				if e := l.E.(eStep); k == maximize {
					var m Maximization
					m, err = l.M.Maximize(at, spec.Data(0), Inferred{})
					u = m.Update
				} else {
					p := map[kind]*program.Program[eArgs, eResult]{wake: e.wake, wakeAndSleep: e.wakeAndSleep, sleep: e.sleep}[k]
					var out eResult
					out, err = e.call(k, p, eArgs{}, at, spec.Data(0))
					u = out.E
				}
				if err != nil {
					t.Fatal(err)
				}
				if !u.OK {
					t.Fatalf("%s: update skipped", k)
				}
			}
			for step := range uint64(3) {
				for k := range mine {
					call(k, step)
				}
			}
			for k, prefixes := range mine {
				before := snapshot(t, l.Store())
				call(k, 3)
				moved := changed(before, snapshot(t, l.Store()))
				for _, path := range moved {
					if !strings.HasPrefix(path, prefixes[0]+"/") && !strings.HasPrefix(path, prefixes[1]+"/") {
						t.Errorf("%s moved %s", k, path)
					}
				}
				for _, path := range moves[k] {
					if !slices.Contains(moved, path) {
						t.Errorf("%s did not move %s", k, path)
					}
				}
			}
		})
	}
}

// busySpecs use every part of a learner.
func busySpecs(t *testing.T) map[string]Spec {
	t.Helper()
	m := newToy(5, dtypes.Float32)
	batches, err := Shuffled(2, 3, m.all())
	if err != nil {
		t.Fatal(err)
	}
	groups := func(scope string) optim.Optimizer {
		return optim.Optimizer{ClipNorm: 1, Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: 0.05, Warmup: 3}}}}
	}
	joint := toySpec(m)
	joint.Data, joint.Seed = batches, 8
	joint.Wake = Wake{
		Samples: 2, Explore: Explore{Beta: Linear{From: 0.5, To: 1, Over: 4}, Epsilon: Linear{From: 0.3, To: 0, Over: 5}}, Optimizer: groups(Phi),
	}
	joint.Sleep = Sleep{Weight: 2, Probability: 0.5, Batch: 4}
	joint.Gate = Blocks{First: 3, E: 2, M: 2}
	joint.MStep = MStep{Latents: Drawn{2}, Moves: 2, Optimizer: groups(Theta)}

	apart := joint
	apart.Sleep.Apart = true
	apart.Sleep.Probability = 0
	apart.Wake.Objective = gfn.SubTB{}
	apart.Wake.Rescore = true
	apart.Wake.Optimizer.Groups = append(apart.Wake.Optimizer.Groups[:1:1],
		optim.Group{Scope: Phi + "/flow", Rule: optim.SGD{}, Rate: optim.Rate{Base: 0.1}})
	apart.Gate = Adaptive{Threshold: Linear{From: 14, To: 8, Over: 4}}
	apart.MStep = MStep{Data: batches, ClosedForm: true, Latents: Greedy{}}

	turns := joint
	turns.Sleep.Apart = true
	turns.Gate = Turns{Length: 2}
	turns.MStep = MStep{Latents: Greedy{0.5}, Optimizer: groups(Theta)}

	best := apart
	best.Gate, best.MStep = Blocks{}, MStep{Latents: BestOfWake{}, Optimizer: groups(Theta)}

	weighted := joint
	weighted.Wake.Objective, weighted.Wake.Explore, weighted.Wake.Rescore = gfn.VIMCO{}, Explore{}, true
	weighted.Gate, weighted.MStep = Blocks{First: 3, E: 2}, MStep{Latents: Weighted{}, Optimizer: groups(Theta)}

	numbers, err := Batches(2, 3, m.observations())
	if err != nil {
		t.Fatal(err)
	}
	kept, remembered := joint, best
	kept.Wake.Replay, kept.Wake.Memory = Replay{Size: 7, Batch: 4}, Memory{Latents: 2, Data: m.observations(), Rows: numbers}
	persistent := turns
	persistent.Wake.Replay = Replay{Size: 7, Batch: 4}
	persistent.MStep = MStep{
		Latents: Drawn{2}, Moves: 2, Persist: Persistent{m.observations(), numbers}, Optimizer: groups(Theta),
	}
	remembered.Wake.Memory = Memory{Latents: 3, Data: m.observations(), Rows: numbers}
	remembered.Wake.Objective = gfn.VarGrad{}
	remembered.Wake.Optimizer.Groups = remembered.Wake.Optimizer.Groups[:1] // it has no flow
	return map[string]Spec{
		"joint": joint, "apart": apart, "turns": turns, "best": best, "kept": kept, "remembered": remembered,
		"weighted": weighted, "persistent": persistent,
	}
}

// A learner has all its variables from the beginning, at the values that it starts from.
func TestDeclares(t *testing.T) {
	b := newBackend(t)
	for name, spec := range busySpecs(t) {
		l := newLearner(t, b, spec)
		shapes := func() (out []string) {
			for v := range l.Store().IterVariables() {
				out = append(out, fmt.Sprint(v.Path(), v.Shape(), v.Trainable, v.HasValue()))
			}
			slices.Sort(out)
			return out
		}
		before := shapes()
		steps(t, l, 12)
		if after := shapes(); !slices.Equal(before, after) {
			t.Errorf("%s: variables\n%v\nbecame\n%v", name, before, after)
		}
		if len(snapshot(t, l.Store(), Theta)) == 0 || len(snapshot(t, l.Store(), Phi)) == 0 {
			t.Errorf("%s: no variables", name)
		}
		spec.Gate = Never
		if made := snapshot(t, newLearner(t, b, spec).Store(), optim.Root+Theta); len(made) > 0 {
			t.Errorf("%s: without M-steps there are moments %v", name, made)
		}
	}
}

// resume makes a learner that goes on from another one, whose variables and state pass through plain values.
func resume(t *testing.T, b compute.Backend, spec Spec, from *Learner) *Learner {
	t.Helper()
	store := nn.NewStore(spec.Seed)
	for v := range from.Store().IterVariables() {
		c := tensors.FromShape(v.Shape())
		err := v.MustValue().ConstBytes(func(src []byte) {
			if err := c.MutableBytes(func(dst []byte) { copy(dst, src) }); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CreateVariable(v.Path(), c); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(from.State())
	if err != nil {
		t.Fatal(err)
	}
	var state State
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	l, err := New(b, store, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	l.SetState(state)
	return l
}

// The same seed gives the same variables to the last bit, also when a run is cut anywhere and continued, and when it is
// evaluated in between.
func TestReproducible(t *testing.T) {
	const n = 8
	b := newBackend(t)
	for name, spec := range busySpecs(t) {
		t.Run(name, func(t *testing.T) {
			whole := newLearner(t, b, spec)
			steps(t, whole, n)
			want, state := snapshot(t, whole.Store()), whole.State()
			if state.M < 2 || state.M > n || state.Sleep < 2 || state.Skipped > 0 {
				t.Fatalf("the run exercises too little: %+v", state)
			}
			check := func(what string, l *Learner) {
				t.Helper()
				if d := changed(want, snapshot(t, l.Store())); d != nil {
					t.Errorf("%s: %v differ", what, d)
				}
				if d := cmp.Diff(state, l.State()); d != "" {
					t.Errorf("%s: state (-want +got)\n%s", what, d)
				}
			}

			again := newLearner(t, b, spec)
			steps(t, again, n)
			check("run again", again)

			for k := range n {
				first := newLearner(t, b, spec)
				steps(t, first, k)
				rest := resume(t, b, spec, first)
				first.Close()
				steps(t, rest, n-k)
				check(fmt.Sprintf("cut after %d", k), rest)
			}

			watched := newLearner(t, b, spec)
			m := spec.Model.(toy)
			for range n {
				steps(t, watched, 1)
				evaluate(t, b, watched, m)
			}
			check("evaluated", watched)

			other := spec
			other.Seed++
			differs := newLearner(t, b, other)
			steps(t, differs, n)
			if d := changed(want, snapshot(t, differs.Store())); !slices.Contains(d, Phi+"/logits") || !slices.Contains(d, Theta+"/emit") {
				t.Errorf("with another seed only %v differ", d)
			}
		})
	}
}

// evaluate looks at a learner in ways that must not move it.
func evaluate(t *testing.T, b compute.Backend, l *Learner, m toy) {
	t.Helper()
	if _, err := (Classical{Model: m, Env: m.env()}).LogLikelihood(b, l.Store(), m.all()); err != nil {
		t.Fatal(err)
	}
	d, err := gfn.Enumerate(b, m.env(), []*tensors.Tensor{m.rows(0)}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Tabulate(b, l.Store(), Phi, tablePolicy{m}, []*tensors.Tensor{m.all()}); err != nil {
		t.Fatal(err)
	}
}

// tiny is a toy with a single latent, for which everything has a closed form.
func tiny() toy {
	return toy{dtype: dtypes.Float64, sizes: []int{1, 1}, bits: 2, prior: []float64{0.3}, emit: []float64{0.5, -1}}
}

func TestReport(t *testing.T) {
	b := newBackend(t)
	m := tiny()
	spec := toySpec(m)
	spec.Wake.Optimizer = adam(Phi, optim.Rate{})
	spec.MStep.Optimizer = adam(Theta, optim.Rate{})
	spec.Gate = Blocks{E: 2}
	logP := m.table(m.prior, m.emit)

	closeTo := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) < 1e-9) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	// TB of the one trajectory of each x, and its gradient by the flow.
	checkWake := func(l *Learner, u Update) {
		t.Helper()
		flow := numbersOf(t, l.Store(), Phi+"/flow/table")
		var loss, square float64
		for x := range logP {
			d := flow[tablePolicy{m}.row(x, nil)] - logP[x][0]
			loss += d * d / 4
			square += d * d / 4
		}
		closeTo("E loss", u.Loss, loss)
		closeTo("E gradient norm", u.GradNorm, math.Sqrt(square))
		if !u.OK {
			t.Error("E-update skipped")
		}
	}
	checkM := func(u *Update) {
		t.Helper()
		if u == nil {
			t.Fatal("no M-update")
		}
		var loss float64
		for x := range logP {
			loss -= logP[x][0] / 4
		}
		closeTo("M loss", u.Loss, loss)
		// The gradient of -mean log p(x|z) is sigmoid(emit) minus the mean of x, one half.
		closeTo("M gradient norm", u.GradNorm, math.Hypot(1/(1+math.Exp(-0.5))-0.5, 1/(1+math.Exp(1))-0.5))
		if !u.OK {
			t.Error("M-update skipped")
		}
	}

	l := newLearner(t, b, spec)
	r := steps(t, l, 1)
	checkWake(l, r.Wake)
	closeTo("sleep loss", r.SleepLoss, math.NaN())
	closeTo("accepted", r.Accepted, math.NaN())
	if r.Sleep != nil || r.M != nil {
		t.Errorf("updates that did not happen: %+v", r)
	}
	average := 0.1 * r.Wake.Loss
	closeTo("average", r.State.Gate.Average, average)
	r = steps(t, l, 1)
	checkWake(l, r.Wake)
	checkM(r.M)
	closeTo("accepted", r.Accepted, math.NaN())
	want := State{Iteration: 2, M: 1, Gate: GateState{Average: r.State.Gate.Average, Blocks: 1}}
	if d := cmp.Diff(want, r.State); d != "" || r.State != l.State() {
		t.Errorf("state (-want +got)\n%s", d)
	}

	spec.Gate = Blocks{}
	spec.Sleep = Sleep{Weight: 3, Batch: 5}
	spec.MStep.Moves = 3
	l = newLearner(t, b, spec)
	r = steps(t, l, 1)
	checkWake(l, r.Wake)
	checkM(r.M)
	closeTo("sleep loss", r.SleepLoss, 0) // the only trajectory has probability 1
	closeTo("accepted", r.Accepted, 1)
	if r.Sleep != nil || r.State.Sleep != 1 {
		t.Errorf("a joint sleep phase gave %+v", r)
	}

	spec.Sleep.Apart = true
	spec.MStep.ClosedForm = true
	l = newLearner(t, b, spec)
	r = steps(t, l, 1)
	checkWake(l, r.Wake)
	closeTo("sleep loss", r.SleepLoss, math.NaN())
	if r.Sleep == nil || r.Sleep.Loss != 0 || r.Sleep.GradNorm != 0 || !r.Sleep.OK || r.State.Sleep != 1 {
		t.Errorf("a sleep update of its own gave %+v, state %+v", r.Sleep, r.State)
	}
	if r.M == nil || r.M.GradNorm != 0 || !r.M.OK {
		t.Errorf("a closed-form M-step gave %+v", r.M)
	}

	// The loss of a joint update is that of its wake part, and so is what the gate sees.
	spec = toySpec(newToy(3, dtypes.Float32))
	spec.Wake.Objective = nothing{}
	spec.Sleep = Sleep{Weight: 3, Batch: 5}
	r = steps(t, newLearner(t, b, spec), 1)
	if r.Wake.Loss != 0 || r.Wake.GradNorm == 0 || r.State.Gate.Average != 0 || !(r.SleepLoss > 0.5) {
		t.Errorf("sleep beside a wake loss of 0 gave %+v", r)
	}
}

// The seed chooses the initial values.
func TestInitialValues(t *testing.T) {
	m := newToy(3, dtypes.Float32)
	start := func(seed uint64) []float64 {
		spec := toySpec(m)
		spec.Seed, spec.Wake.Optimizer = seed, adam(Phi, optim.Rate{})
		l := newLearner(t, newBackend(t), spec)
		steps(t, l, 1)
		return numbersOf(t, l.Store(), Phi+"/logits")
	}
	if a := start(1); !slices.Equal(a, start(1)) || slices.Equal(a, start(2)) {
		t.Errorf("seeds 1, 1 and 2 start with %v, %v and %v", a[:3], start(1)[:3], start(2)[:3])
	}
}

// Schedules of the E-step hold for the whole iteration, moves of the M-step included.
func TestKnobs(t *testing.T) {
	spec := toySpec(tiny())
	spec.Wake.Explore.Beta = Linear{From: 1, To: 1e39, Over: 1} // overflows, which spoils every move after iteration 0
	spec.MStep.Moves = 2
	l := newLearner(t, newBackend(t), spec)
	if r := steps(t, l, 1); r.Accepted != 1 {
		t.Errorf("iteration 0 accepts %g of its moves, want 1", r.Accepted)
	}
	if r := steps(t, l, 1); r.Accepted != 0 {
		t.Errorf("iteration 1 accepts %g of its moves, want 0", r.Accepted)
	}
}

// A sleep phase comes with its probability, and when it comes depends on the seed and the iteration alone.
func TestSleepProbability(t *testing.T) {
	const n, p = 400, 0.3
	b := newBackend(t)
	dreams := func(spec Spec, from, to int) (at []int) {
		l := newLearner(t, b, spec)
		l.SetState(State{Iteration: uint64(from)})
		for i := from; i < to; i++ {
			before := l.State().Sleep
			steps(t, l, 1)
			if l.State().Sleep > before {
				at = append(at, i)
			}
		}
		return at
	}
	spec := toySpec(tiny())
	spec.Seed = 17
	t.Logf("seed %d", spec.Seed)
	spec.Sleep = Sleep{Weight: 1, Probability: p, Batch: 2}
	all := dreams(spec, 0, n)

	// Two-sided, by the normal approximation of the binomial distribution.
	distance := func(p float64) float64 { return math.Abs(float64(len(all))-n*p) / math.Sqrt(n*p*(1-p)) }
	bound := distuv.UnitNormal.Quantile(1 - falseAlarm/2)
	if distance(p) > bound {
		t.Errorf("%d of %d iterations sleep, want a fraction of %g", len(all), n, p)
	}
	if distance(0.5) < bound {
		t.Errorf("%d of %d iterations would pass for a fraction of one half", len(all), n)
	}

	other := toySpec(newToy(1, dtypes.Float32)) // another model, batch, gate and kind of sleep
	other.Seed, other.Gate = spec.Seed, Blocks{E: 3}
	other.Sleep = Sleep{Weight: 5, Probability: p, Batch: 3, Apart: true}
	inside := func(from, to int) (at []int) {
		for _, i := range all {
			if i >= from && i < to {
				at = append(at, i)
			}
		}
		return at
	}
	if got := dreams(other, 100, 200); !slices.Equal(got, inside(100, 200)) {
		t.Errorf("sleep at %v, of another learner at %v", inside(100, 200), got)
	}
	other.Seed++
	if got := dreams(other, 100, 150); slices.Equal(got, inside(100, 150)) {
		t.Error("another seed sleeps at the same iterations")
	}
	spec.Sleep.Probability = 0
	if got := dreams(spec, 0, 20); len(got) != 20 {
		t.Errorf("without a probability only %v sleep", got)
	}
	spec.Sleep.Weight = 0
	if got := dreams(spec, 0, 5); got != nil {
		t.Errorf("without a weight %v sleep", got)
	}
}

// M-updates ask for data by their own number, or use those of the E-update before.
func TestMStepData(t *testing.T) {
	b := newBackend(t)
	m := tiny()
	var asked, askedM []uint64
	spec := toySpec(m)
	spec.Gate = Blocks{E: 2, M: 3}
	spec.Data = func(step uint64) []*tensors.Tensor {
		asked = append(asked, step)
		return []*tensors.Tensor{m.rows(int(step % 4))}
	}
	spec.MStep.Data = func(step uint64) []*tensors.Tensor {
		askedM = append(askedM, step)
		return []*tensors.Tensor{m.rows(0, 0)}
	}
	l := newLearner(t, b, spec)
	asked, askedM = nil, nil // it has looked at the shapes of the first batches
	steps(t, l, 4)
	if !slices.Equal(asked, []uint64{0, 1, 2, 3}) || !slices.Equal(askedM, []uint64{0, 1, 2, 3, 4, 5}) {
		t.Errorf("E-updates asked for %v, M-updates for %v", asked, askedM)
	}

	spec.MStep.Data = nil
	spec.MStep.Optimizer = adam(Theta, optim.Rate{})
	spec.Gate = Blocks{}
	l = newLearner(t, b, spec)
	logP := m.table(m.prior, m.emit)
	for i := range 4 {
		if r := steps(t, l, 1); math.Abs(r.M.Loss+logP[i][0]) > 1e-9 {
			t.Errorf("M-update %d has loss %g, want %g: that of x=%d", i, r.M.Loss, -logP[i][0], i)
		}
	}
}

func TestTrain(t *testing.T) {
	b := newBackend(t)
	until := func(n uint64) func(State) bool { return func(s State) bool { return s.Iteration >= n } }
	l := newLearner(t, b, toySpec(tiny()))
	ctx, cancel := context.WithCancel(t.Context())
	var seen []uint64
	each := func(r Report) error {
		seen = append(seen, r.State.Iteration)
		return nil
	}
	if err := l.Train(ctx, until(3), each); err != nil || !slices.Equal(seen, []uint64{1, 2, 3}) {
		t.Errorf("error %v, iterations %v", err, seen)
	}
	if err := l.Train(ctx, until(3), each); err != nil || len(seen) != 3 {
		t.Errorf("trained on after the end: error %v, iterations %v", err, seen)
	}
	if err := l.Train(ctx, until(5), nil); err != nil || l.State().Iteration != 5 {
		t.Errorf("without each: error %v, state %+v", err, l.State())
	}
	stop := errors.New("stop")
	err := l.Train(ctx, until(100), func(r Report) error {
		if r.State.Iteration == 7 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || l.State().Iteration != 7 {
		t.Errorf("error %v, state %+v", err, l.State())
	}
	err = l.Train(ctx, until(100), func(r Report) error {
		if r.State.Iteration == 9 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || l.State().Iteration != 9 {
		t.Errorf("error %v, state %+v", err, l.State())
	}
	if err := l.Train(ctx, until(9), nil); err != nil {
		t.Errorf("a run that is over does not care about its context: %v", err)
	}

	m := newToy(1, dtypes.Float32)
	spec := toySpec(m)
	spec.Data, spec.Gate = spoil(m, 3, 4, 5, 6, 7), never
	l = newLearner(t, b, spec)
	calls := 0
	err = l.Train(t.Context(), until(100), func(Report) error { calls++; return nil })
	if !errors.Is(err, ErrDiverged) || l.State().Iteration != 8 || calls != 7 {
		t.Errorf("error %v after %d reports, state %+v", err, calls, l.State())
	}
}

func TestClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	b, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	spec := toySpec(tiny())
	l, err := New(b, model.NewStore(), spec)
	if err != nil {
		t.Fatal(err)
	}
	l.programs.Measure(true)
	steps(t, l, 2)
	if got := slices.Sorted(maps.Keys(l.programs.Times())); !slices.Equal(got, []string{string(maximize), string(wake)}) {
		t.Errorf("programs %v", got)
	}
	before := snapshot(t, l.Store())
	l.Close()
	l.Close()
	if d := changed(before, snapshot(t, l.Store())); d != nil {
		t.Errorf("closing changed %v", d)
	}
}
