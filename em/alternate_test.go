package em

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// The published schedule of the image experiments: step s, counted from 1, is an M-update if s mod 800 < 400.
func TestAlternate(t *testing.T) {
	g := Turns{Length: 400}
	for _, c := range []struct {
		s uint64
		m bool
	}{{1, true}, {399, true}, {400, false}, {799, false}, {800, true}, {1199, true}, {1200, false}} {
		if got := g.alone(c.s - 1); got != c.m {
			t.Errorf("step %d: M-update %v, want %v", c.s, got, c.m)
		}
	}
	for _, c := range []struct{ steps, e, m uint64 }{
		{234_000, 116_801, 117_199}, {117_000, 58_400, 58_600}, {187_200, 93_600, 93_600},
	} {
		var m uint64
		for it := range c.steps {
			if g.alone(it) {
				m++
			}
		}
		if m != c.m || c.steps-m != c.e {
			t.Errorf("%d steps: %d E and %d M, want %d and %d", c.steps, c.steps-m, m, c.e, c.m)
		}
	}
	for it := range uint64(100) {
		if (Blocks{}).alone(it) {
			t.Fatalf("iteration %d of a gate that does not alternate is an M-update alone", it)
		}
	}
}

func TestMBefore(t *testing.T) {
	for _, turn := range []int{0, 1, 2, 7, 400} {
		g, made := Turns{Length: turn}, uint64(0)
		for it := range uint64(3000) {
			if got := g.MBefore(it); got != made {
				t.Fatalf("%d M-updates in the first %d iterations by turns of %d, want %d", got, it, turn, made)
			}
			if g.alone(it) {
				made++
			}
		}
	}
}

// An alternating learner makes one update of a batch, and asks for the batches in order.
func TestAlternatingLearner(t *testing.T) {
	m := newToy(3, dtypes.Float32)
	var asked []uint64
	spec := toySpec(m)
	spec.Gate = Turns{Length: 2}
	spec.Sleep = Sleep{Weight: 1, Batch: 4, Apart: true}
	spec.Data = func(step uint64) []*tensors.Tensor {
		asked = append(asked, step)
		return []*tensors.Tensor{m.all()}
	}
	l := newLearner(t, newBackend(t), spec)
	asked = nil // it has looked at the shapes of the first batch
	trace := ""
	for range 9 {
		r := steps(t, l, 1)
		switch e := r.Wake != (Update{}); {
		case r.M != nil && !e && r.Sleep == nil:
			trace += "M"
		case r.M == nil && e && r.Sleep != nil:
			trace += "E"
		default:
			trace += "?"
		}
		if n := uint64(len(trace)); r.State.Iteration != n || r.State.M != uint64(strings.Count(trace, "M")) ||
			r.State.Sleep != uint64(strings.Count(trace, "E")) {
			t.Fatalf("after %s the state is %+v", trace, r.State)
		}
	}
	if trace != "MEEMMEEMM" {
		t.Errorf("updates %s, want MEEMMEEMM", trace)
	}
	if want := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(asked, want) {
		t.Errorf("batches %v", asked)
	}
}

// Sleep alone makes sleep updates, no wake updates, and the M-updates that the gate calls for.
func TestSleepAlone(t *testing.T) {
	m := newToy(3, dtypes.Float32)
	spec := toySpec(m)
	spec.Sleep = Sleep{Weight: 1, Batch: 64, Alone: true}
	spec.Gate = Blocks{E: 3}
	spec.Wake.Optimizer = adam(Phi, optim.Rate{Base: 0.05})
	l := newLearner(t, newBackend(t), spec)
	l.programs.Measure(true)
	for i := range 6 {
		r := steps(t, l, 1)
		if r.Wake != (Update{}) || r.Sleep == nil || (r.M != nil) != (i%3 == 2) {
			t.Fatalf("iteration %d: %+v", i, r)
		}
	}
	if s := l.State(); s.Iteration != 6 || s.Sleep != 6 || s.M != 2 {
		t.Errorf("state %+v", s)
	}
	if _, ok := l.programs.Times()[string(wake)]; ok {
		t.Error("the wake program was built")
	}
	spec.Sleep.Weight = 0
	if _, err := New(newBackend(t), model.NewStore(), spec); err == nil {
		t.Error("sleep alone without a weight is accepted")
	}
}

// encodedPolicy reads features: the observations, negated and counted.
type encodedPolicy struct {
	tablePolicy
	calls *int
}

func (p encodedPolicy) Encode(_ *model.Scope, x gfn.Batch) gfn.Batch {
	*p.calls++
	return gfn.Batch{Neg(x[0])}
}

func (p encodedPolicy) Heads(scope *model.Scope, u gfn.Batch, s gfn.State, k int) gfn.Heads {
	return p.tablePolicy.Heads(scope, gfn.Batch{Neg(u[0])}, s, k)
}

// A policy that encodes learns as one that does not, and encodes once per program.
func TestEncoder(t *testing.T) {
	b := newBackend(t)
	for name, spec := range busySpecs(t) {
		m := spec.Model.(toy)
		calls := 0
		encoded := spec
		encoded.Policy = encodedPolicy{tablePolicy{m}, &calls}
		plain, other := newLearner(t, b, spec), newLearner(t, b, encoded)
		calls = 0 // it has declared its variables
		other.programs.Measure(true)
		steps(t, plain, 8)
		steps(t, other, 8)
		if moved := changed(snapshot(t, plain.Store()), snapshot(t, other.Store())); len(moved) > 0 {
			t.Errorf("%s: these differ: %v", name, moved)
		}
		encodings := 0
		for k := range other.programs.Times() {
			encodings++
			if k == string(wakeAndSleep) { // encodes the batch and what it dreams
				encodings++
			}
			if spec.Wake.Replay.Size > 0 && (k == string(wake) || k == string(wakeAndSleep)) { // and what it replays
				encodings++
			}
		}
		if g, ok := spec.MStep.Latents.(Greedy); ok && g.Probability > 0 { // one program if greedy, another one if sampled
			kinds := map[bool]bool{}
			for step := range other.State().M {
				kinds[rng.New(spec.Seed, "greedy coin", step).Float64() >= g.Probability] = true
			}
			encodings += len(kinds) - 1
		}
		if calls != encodings {
			t.Errorf("%s: %d encodings in %d programs", name, calls, len(other.programs.Times()))
		}
	}
}

// Observations that a program picks from a table are those that it is given.
func TestPrepare(t *testing.T) {
	b := newBackend(t)
	for name, spec := range busySpecs(t) {
		m := spec.Model.(toy)
		all := m.all()
		given, picked := spec, spec
		rows := func(step uint64) []int32 { return []int32{int32(step % 8), int32((step*3 + 1) % 8)} }
		given.MStep.Data, picked.MStep.Data = nil, nil
		given.Data = func(step uint64) []*tensors.Tensor {
			r := rows(step)
			return []*tensors.Tensor{m.rows(int(r[0]), int(r[1]))}
		}
		if given.Wake.Memory.Latents > 0 {
			given.Wake.Memory.Rows = func(step uint64) []int { return []int{int(rows(step)[0]), int(rows(step)[1])} }
			picked.Wake.Memory = given.Wake.Memory
		}
		if given.MStep.Persist.Data > 0 {
			given.MStep.Persist.Rows = func(step uint64) []int { return []int{int(rows(step)[0]), int(rows(step)[1])} }
			picked.MStep.Persist = given.MStep.Persist
		}
		picked.Data = func(step uint64) []*tensors.Tensor { return []*tensors.Tensor{all, tensors.FromValue(rows(step))} }
		picked.Prepare = func(data []*Node) gfn.Batch { return gfn.Batch{Gather(data[0], InsertAxes(data[1], 1))} }
		a, c := newLearner(t, b, given), newLearner(t, b, picked)
		steps(t, a, 8)
		steps(t, c, 8)
		if moved := changed(snapshot(t, a.Store()), snapshot(t, c.Store())); len(moved) > 0 {
			t.Errorf("%s: these differ: %v", name, moved)
		}
	}
}

// equal is the share of latents that equal the first one.
func equal(z gfn.State, dtype dtypes.DType) *Node {
	first := SliceAxis(z[0], 0, AxisElem(0))
	same := Equal(z[0], BroadcastToShape(first, z[0].Shape()))
	return ReduceAllMean(ConvertDType(LogicalAll(same, 1), dtype))
}

// The M-step's own loss gets greedy latents and, on request, others that are not.
func TestMStepLoss(t *testing.T) {
	m := newToy(3, dtypes.Float32)
	spec := toySpec(m)
	spec.Data = Full(m.rows(make([]int, 200)...)) // one observation, many times
	spec.Wake.Optimizer = adam(Phi, optim.Rate{})
	spec.MStep = MStep{Latents: Greedy{}, Loss: func(theta *model.Scope, x gfn.Batch, z gfn.State, draw func() gfn.State) *Node {
		prior, _ := m.variables(theta)
		total := ReduceAllSum(prior.NodeValue(z[0])) // the gradient is one
		return Add(Add(total, equal(z, m.dtype)), MulScalar(equal(draw(), m.dtype), 10))
	}}
	l := newLearner(t, newBackend(t), spec)
	r := steps(t, l, 1)
	sum := 0.0
	for _, v := range m.prior {
		sum += v
	}
	drawn := (r.M.Loss - sum - 1) / 10 // all greedy latents are equal
	if !(drawn > 0 && drawn < 0.9) || math.Abs(r.M.GradNorm-math.Sqrt(6)) > 1e-5 {
		t.Errorf("loss %g and gradient norm %g: the share of equal drawn latents is %g", r.M.Loss, r.M.GradNorm, drawn)
	}
}

// A greedy learner is greedy as often as its coin says: of 400 updates a quarter, within 4.5 deviations.
func TestGreedyProbability(t *testing.T) {
	const updates = 400
	m := newToy(3, dtypes.Float32)
	b := newBackend(t)
	for p, want := range map[float64]float64{0: 1, 0.25: 0.25, 1: 1} {
		spec := toySpec(m)
		spec.Data = Full(m.rows(make([]int, 20)...)) // one observation: greedy latents are all equal
		spec.Gate = Turns{Length: 2 * updates}
		spec.MStep = MStep{Latents: Greedy{p}}
		spec.MStep.Loss = func(theta *model.Scope, _ gfn.Batch, z gfn.State, _ func() gfn.State) *Node {
			_, emit := m.variables(theta)
			return Add(MulScalar(ReduceAllSum(emit.NodeValue(z[0])), 0), equal(z, m.dtype))
		}
		l := newLearner(t, b, spec)
		greedy := 0.0
		for range updates {
			if r := steps(t, l, 1); r.M.Loss == 1 {
				greedy++
			}
		}
		if math.Abs(greedy-want*updates) > 4.5*math.Sqrt(updates*want*(1-want)) {
			t.Errorf("probability %g: %g of %d updates are greedy", p, greedy, updates)
		}
	}
}
