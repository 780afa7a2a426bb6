package em

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/lvm/lvmtest"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// counted is a toy whose M-step needs the frequencies of latents, and those of ones under each of them. Frequencies are
// smoothed as Maximize of a toy does for batches of rows.
type counted struct {
	lvm.Model
	toy  toy
	rows float64 // of a batch of the toy that is smoothed as much
}

var _ lvm.Exponential = counted{}

func newCounted(m toy, rows float64) counted { return counted{m, m, rows} }

func (m counted) Statistics(_ *model.Scope, x gfn.Batch, z gfn.State) []*Node {
	hot := m.toy.hot(z)
	ones := DotGeneral(hot, []int{0}, nil, ConvertDType(x[0], m.toy.dtype), []int{0}, nil) // [Z,bits]
	return []*Node{ReduceMean(hot, 0), DivScalar(ones, x.Size())}
}

func (m counted) MaximizeMeans(theta *model.Scope, means []*Node) ([]*model.Variable, []*Node) {
	prior, emit := m.toy.variables(theta)
	count := AddScalar(means[0], smoothing/m.rows)
	p := Div(AddScalar(means[1], smoothing/2/m.rows), BroadcastToShape(InsertAxes(count, 1), means[1].Shape()))
	return []*model.Variable{prior, emit}, []*Node{Log(count), Sub(Log(p), Log(OneMinus(p)))}
}

// knowing is the exact posterior of a toy as a policy: it reads the variables of the model, and has one of its own,
// which E-steps leave at zero.
type knowing struct{ toy }

func (p knowing) list(g *Graph) gfn.State {
	digits := make([]*Node, len(p.sizes))
	rest := Iota(g, shapes.Make(dtypes.Int32, p.latents(), 1), 0)
	for t, s := range p.sizes {
		size := Scalar(g, dtypes.Int32, s)
		digits[t], rest = Mod(rest, size), Div(rest, size)
	}
	return gfn.State{Concatenate(digits, 1)}
}

func (p knowing) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	list := p.list(s[0].Graph())
	logP := lvm.Table(p.toy, phi.Store().Scope(Theta), x, list) // [B,Z]
	logP = gfn.Batch{logP}.Repeat(k)[0]
	n, steps := s[0].Shape().Dim(0), len(p.sizes)
	z := BroadcastToDims(InsertAxes(list[0], 0), n, p.latents(), steps)
	state := BroadcastToDims(InsertAxes(s[0], 1), n, p.latents(), steps)
	fits := LogicalAll(LogicalOr(LessThan(state, ZerosLike(state)), Equal(z, state)), 2) // [N,Z]
	decided := ReduceSum(ConvertDType(GreaterOrEqual(s[0], ZerosLike(s[0])), dtypes.Int32), 1)
	here := ConvertDType(OneHot(decided, steps, p.dtype), dtypes.Int32) // [N,T]
	next := ReduceSum(Mul(z, BroadcastToDims(InsertAxes(here, 1), n, p.latents(), steps)), 2)
	var logits []*Node
	for a := range p.env().Actions() {
		with := LogicalAnd(fits, Equal(next, MulScalar(OnesLike(next), a)))
		logits = append(logits, nn.LogSumExp(Where(with, logP, MulScalar(OnesLike(logP), -1e6)), 1))
	}
	own := nn.Param(phi, s[0].Graph(), p.dtype, "own", 0, len(logits))
	forward := Stack(logits, 1)
	return gfn.Heads{
		Forward: Add(forward, BroadcastToShape(InsertAxes(own, 0), forward.Shape())),
		Flow:    nn.LogSumExp(Where(fits, logP, MulScalar(OnesLike(logP), -1e6)), 1),
	}
}

// A policy that reads the model's variables can be its posterior: E-steps then find nothing to do, and move nothing of
// the model, whatever M-steps make of it.
func TestPolicyReadsTheta(t *testing.T) {
	b := newBackend(t)
	m := newToy(8, dtypes.Float64)
	for name, own := range map[string]float64{"exact": 0, "wrong": 0.7} {
		spec := toySpec(m)
		spec.Policy, spec.Gate, spec.Wake.Samples = knowing{m}, Blocks{E: 2}, 4
		spec.Wake.Objective = gfn.SubTB{}
		spec.Sleep = Sleep{Weight: 1, Batch: 8, Apart: true}
		spec.MStep.Optimizer = adam(Theta, optim.Rate{Base: 0.1})
		spec.Wake.Optimizer = optim.Optimizer{Groups: []optim.Group{
			{Scope: Phi, Rule: optim.SGD{}, Rate: optim.Rate{Base: 0, MayBeZero: true}}}}
		l := newLearner(t, b, spec)
		setVariable(t, l.Store(), Phi+"/own", floats(m.dtype, []float64{own, 0, 0}, 3))
		for i := range 6 {
			before := snapshot(t, l.Store(), Theta)
			r := steps(t, l, 1)
			if exact := r.Wake.Loss < 1e-12 && r.Wake.GradNorm < 1e-6; exact != (name == "exact") {
				t.Errorf("%s, step %d: loss %g, gradient %g", name, i, r.Wake.Loss, r.Wake.GradNorm)
			}
			if moved := len(changed(before, snapshot(t, l.Store(), Theta))) > 0; moved != (r.M != nil) {
				t.Errorf("%s, step %d: the model moved: %t, with an M-step: %t", name, i, moved, r.M != nil)
			}
		}
	}
}

// stepwiseSpec learns a toy by its exact posterior, on minibatches.
func stepwiseSpec(t *testing.T, start toy, size int, x ...*tensors.Tensor) Spec {
	t.Helper()
	data, err := Shuffled(4, size, x...)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Model: newCounted(start, float64(size)), Env: start.env(), Policy: knowing{start}, Data: data, Seed: 9,
		Wake: Wake{Optimizer: adam(Phi, optim.Rate{})}, MStep: MStep{Stepwise: optim.Power(0.7, 0)},
	}
}

// With a rate of 1 stepwise M-steps are those in closed form, and these those of a Maximizer.
func TestStepwiseRateOne(t *testing.T) {
	b := newBackend(t)
	truth, start := clumps(12)
	x := truth.rows(truth.draw(rand.New(rand.NewPCG(12, 1)), 64)...)
	one := func(uint64) float64 { return 1 }
	learned := func(set func(*Spec)) []float64 {
		spec := stepwiseSpec(t, start, 16, x)
		set(&spec)
		l := newLearner(t, b, spec)
		steps(t, l, 7)
		return append(numbersOf(t, l.Store(), Theta+"/prior"), numbersOf(t, l.Store(), Theta+"/emit")...)
	}
	want := learned(func(s *Spec) { s.Model, s.MStep = start, MStep{ClosedForm: true} })
	for _, c := range []struct {
		name   string
		within float64
		set    func(*Spec)
		prior  float64 // by how much log-counts are less: of a batch or of a row
	}{
		{"closed form", 1e-4, func(s *Spec) { s.MStep = MStep{ClosedForm: true} }, math.Log(16)},
		{"stepwise", 1e-4, func(s *Spec) { s.MStep.Stepwise = one }, math.Log(16)},
		{"averages", 1e9, func(s *Spec) {}, math.Log(16)},
	} {
		got, worst := learned(c.set), 0.0
		for i := range got {
			if i < start.latents() {
				got[i] += c.prior
			}
			worst = max(worst, math.Abs(got[i]-want[i]))
		}
		t.Logf("%s: %.2g off", c.name, worst)
		if !(worst <= c.within) || c.name == "averages" && worst < 0.1 {
			t.Errorf("%s: %g off the closed form", c.name, worst)
		}
	}
}

// Running averages are what the host makes of the statistics of each batch, the first of which counts in full.
func TestStepwiseAverages(t *testing.T) {
	b := newBackend(t)
	m := tiny() // with a single latent nothing is drawn
	spec := stepwiseSpec(t, m, 1, m.rows(1, 3, 0, 1, 2))
	rate := func(step uint64) float64 { return 0.5 / float64(step+1) }
	spec.MStep.Stepwise = rate
	l := newLearner(t, b, spec)
	var want [2]float64
	for step := range uint64(9) {
		row := tensors.MustCopyFlatData[float32](spec.Data(step)[0])
		w := rate(step)
		if step == 0 {
			w = 1
		}
		for d := range want {
			want[d] += w * (float64(row[d]) - want[d])
		}
		steps(t, l, 1)
		for d, got := range numbersOf(t, l.Store(), statisticsScope+"/s1") {
			if math.Abs(got-want[d]) > 1e-6 {
				t.Errorf("step %d, bit %d: average %g, want %g", step, d, got, want[d])
			}
		}
	}
}

// From minibatches and single samples, falling rates end near exact EM. A closed form for each batch does not, nor do
// rates that stay high.
func TestStepwiseNearExactEM(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	b := newBackend(t)
	truth, start := clumps(seed)
	x := truth.draw(rand.New(rand.NewPCG(seed, 1)), 64)
	exact := model.NewStore()
	_, err := Classical{
		Model: start, Env: start.env(), Data: Full(truth.rows(x...)), Optimizer: adam(Theta, optim.Rate{Base: 0.05}),
	}.Train(b, exact, 400)
	if err != nil {
		t.Fatal(err)
	}
	want := logLikelihood(start.learned(t, exact), x)
	for _, c := range []struct {
		name  string
		rate  optim.RateFunc
		steps int
		fails bool
	}{
		{"falling", optim.Power(0.7, 0), 400, false},
		{"closed form", func(uint64) float64 { return 1 }, 50, true},
		{"constant", func(uint64) float64 { return 0.5 }, 100, true},
	} {
		spec := stepwiseSpec(t, start, 8, truth.rows(x...))
		spec.MStep.Stepwise = c.rate
		l := newLearner(t, b, spec)
		steps(t, l, c.steps)
		got := logLikelihood(start.learned(t, l.Store()), x)
		t.Logf("%s: log-likelihood %.4f, of exact EM %.4f", c.name, got, want)
		if (got < want-0.02) != c.fails {
			t.Errorf("%s: log-likelihood %.4f, of exact EM %.4f", c.name, got, want)
		}
	}
}

// An M-step that is skipped leaves averages alone, also the first one, and the store has all they need.
func TestStepwiseSkipped(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	spec := stepwiseSpec(t, m, 8, m.all())
	nan := tensors.FromFlatDataAndDimensions([]float32{float32(math.NaN()), 0, 0, 0, 0, 0, 0, 0}, 8)
	good, bad := []*tensors.Tensor{m.all()}, []*tensors.Tensor{m.all(), nan}
	spoiled := []bool{true, false, false, true, false}
	spec.Model = nanMeans{newCounted(m, 0.05)} // smooth, so that latents differ
	spec.MStep.Data = func(step uint64) []*tensors.Tensor {
		if spoiled[step] {
			return bad
		}
		return append(good, tensors.FromFlatDataAndDimensions(make([]float32, 8), 8))
	}
	spec.Data = Full(good...)
	l := newLearner(t, b, spec)
	before := snapshot(t, l.Store(), Kept, Theta)
	if len(before) != 5 {
		t.Errorf("before the first step there are %d variables", len(before))
	}
	for step, spoils := range spoiled {
		r := steps(t, l, 1)
		after := snapshot(t, l.Store(), Kept, Theta)
		if moved := len(changed(before, after)) > 0; moved == spoils || r.M == nil || r.M.OK == spoils {
			t.Errorf("step %d: %+v, changed: %t", step, r.M, moved)
		}
		if mean := numbersOf(t, l.Store(), statisticsScope+"/s0"); step == 1 {
			var sum float64
			for _, p := range mean {
				sum += p
			}
			if math.Abs(sum-1) > 1e-6 {
				t.Errorf("frequencies of latents sum to %g", sum)
			}
		}
		before = after
	}
}

// nanMeans has statistics that are NaN where the second tensor of a batch is.
type nanMeans struct{ counted }

func (m nanMeans) Statistics(theta *model.Scope, x gfn.Batch, z gfn.State) []*Node {
	out := m.counted.Statistics(theta, x, z)
	if len(x) > 1 {
		out[0] = Add(out[0], BroadcastToShape(ConvertDType(ReduceAllMean(x[1]), out[0].DType()), out[0].Shape()))
	}
	return out
}

// A learner that goes on from another one's store ends with the same bits.
func TestStepwiseResumes(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	spec := stepwiseSpec(t, m, 3, m.all())
	whole := newLearner(t, b, spec)
	steps(t, whole, 9)
	half := newLearner(t, b, spec)
	steps(t, half, 4)
	store, err := half.Store().Clone()
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(b, store, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetState(half.State())
	steps(t, other, 5)
	if moved := changed(snapshot(t, whole.Store()), snapshot(t, store)); len(moved) > 0 {
		t.Errorf("these differ: %v", moved)
	}
}

func TestStepwiseLaws(t *testing.T) {
	m := newToy(3, dtypes.Float64)
	lvmtest.Run(t, newCounted(m, 1e6), m.env())
}

func TestStepwiseRefuses(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	for want, set := range map[string]func(*Spec){
		"Statistics and MaximizeMeans, which em.toy has not": func(s *Spec) { s.Model = m },
		"leave out MStep.ClosedForm":                         func(s *Spec) { s.MStep.ClosedForm = true },
		"MStep.Stepwise is 1.5 for M-step 0": func(s *Spec) {
			s.MStep.Stepwise = func(uint64) float64 { return 1.5 }
		},
		"MStep.Stepwise is 0 for M-step 1": func(s *Spec) {
			s.MStep.Stepwise = func(step uint64) float64 { return 1 - float64(step) }
		},
		"Statistics.[0] is (Int32)[6]":                 func(s *Spec) { s.Model = whole{s.Model.(counted)} },
		"MaximizeMeans./theta/prior is (Float32), not": func(s *Spec) { s.Model = narrow{s.Model.(counted)} },
	} {
		spec := stepwiseSpec(t, m, 8, m.all())
		set(&spec)
		if err := begun(t, b, spec); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "_test.go:") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

type (
	whole  struct{ counted }
	narrow struct{ counted }
)

func (m whole) Statistics(theta *model.Scope, x gfn.Batch, z gfn.State) []*Node {
	out := m.counted.Statistics(theta, x, z)
	out[0] = ConvertDType(out[0], dtypes.Int32)
	return out
}

func (m narrow) MaximizeMeans(theta *model.Scope, means []*Node) ([]*model.Variable, []*Node) {
	vars, values := m.counted.MaximizeMeans(theta, means)
	values[0] = ReduceAllSum(values[0])
	return vars, values
}
