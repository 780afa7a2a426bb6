package em

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

func newBackend(t testing.TB) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// toy is a model small enough to write down: its latents are sequences of a few choices, its observations are bits bits,
// and
//
//	p(z) = softmax(prior)_z,   p(x|z) = prod_d Bernoulli(x_d; sigmoid(emit_zd))
//
// Latent (z_0, z_1, ...) has number z_0 + sizes_0 z_1 + ..., and observation x has number x_0 + 2 x_1 + ... A second
// tensor of a batch, [B], is added to log p(x,z): it spoils it where it is NaN.
type toy struct {
	dtype       dtypes.DType
	sizes       []int
	bits        int
	prior, emit []float64 // [Z], [Z,bits]: initial values
}

var _ lvm.Maximizer = toy{}

// newToy draws a model whose latents are (a,b) with a in 0..1 and b in 0..2 and whose observations are three bits.
func newToy(seed uint64, dtype dtypes.DType) toy {
	m := toy{dtype: dtype, sizes: []int{2, 3}, bits: 3}
	r := rand.New(rand.NewPCG(seed, 0))
	for range 6 {
		m.prior = append(m.prior, 0.5*r.NormFloat64())
	}
	for range 6 * 3 {
		m.emit = append(m.emit, 1.5*r.NormFloat64())
	}
	return m
}

func (m toy) env() envs.Sequence { return envs.Sequence{Sizes: m.sizes} }

// latents returns Z.
func (m toy) latents() int {
	n := 1
	for _, s := range m.sizes {
		n *= s
	}
	return n
}

// observations returns the number of possible x.
func (m toy) observations() int { return 1 << m.bits }

func (m toy) variables(scope *model.Scope) (prior, emit *model.Variable) {
	make := func(name string, v []float64, dims ...int) *model.Variable {
		if old := scope.GetVariable(name); old != nil {
			return old
		}
		return scope.VariableWithValue(name, floats(m.dtype, v, dims...))
	}
	return make("prior", m.prior, m.latents()), make("emit", m.emit, m.latents(), m.bits)
}

// hot returns latents as one-hot rows, [B,Z].
func (m toy) hot(z gfn.State) *Node {
	return oneHot(m.dtype, number(z[0], m.sizes, 0), m.latents())
}

// number reads rows [B,T] as numbers whose first digit changes fastest; digits are offset first.
func number(rows *Node, sizes []int, offset int) *Node {
	stride, strides := 1, make([]int32, len(sizes))
	for t, s := range sizes {
		strides[t] = int32(stride)
		stride *= s
	}
	digits := AddScalar(ConvertDType(rows, dtypes.Int32), offset)
	return ReduceSum(Mul(digits, BroadcastToShape(Const(rows.Graph(), [][]int32{strides}), digits.Shape())), 1)
}

func oneHot(dtype dtypes.DType, idx *Node, size int) *Node {
	shape := shapes.Make(dtypes.Int32, idx.Shape().Dim(0), size)
	return ConvertDType(Equal(Iota(idx.Graph(), shape, 1), BroadcastToShape(InsertAxes(idx, 1), shape)), dtype)
}

func (m toy) LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	prior, emit := m.variables(scope)
	hot := m.hot(z)
	logPrior := ReduceSum(Mul(hot, BroadcastToShape(InsertAxes(LogSoftmax(prior.NodeValue(hot)), 0), hot.Shape())), 1)
	logits := Dot(hot, emit.NodeValue(hot)).Product() // [B,bits]
	logP := Add(logPrior, ReduceSum(Sub(Mul(ConvertDType(x[0], m.dtype), logits), Log1P(Exp(logits))), 1))
	if len(x) > 1 {
		logP = Add(logP, ConvertDType(x[1], m.dtype))
	}
	return logP
}

func (m toy) Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	prior, emit := m.variables(scope)
	u := r.Uniform(m.dtype, n, m.bits)
	g := u.Graph()
	p := BroadcastToDims(InsertAxes(Softmax(prior.NodeValue(g)), 0), n, m.latents())
	k := r.Categorical(p)
	logits := Dot(oneHot(m.dtype, k, m.latents()), emit.NodeValue(g)).Product()
	var tokens []*Node
	for _, s := range m.sizes {
		size := Scalar(g, dtypes.Int32, s)
		tokens = append(tokens, InsertAxes(Mod(k, size), 1))
		k = Div(k, size)
	}
	return gfn.Batch{ConvertDType(LessThan(u, Sigmoid(logits)), dtypes.Float32)}, gfn.State{Concatenate(tokens, 1)}
}

// smoothing is added to every count of the closed-form M-step, which keeps logarithms finite.
const smoothing = 0.01

func (m toy) Maximize(scope *model.Scope, x gfn.Batch, z gfn.State) ([]*model.Variable, []*Node) {
	prior, emit := m.variables(scope)
	hot := m.hot(z)
	count := AddScalar(ReduceSum(hot, 0), smoothing)                                                           // [Z]
	ones := AddScalar(DotGeneral(hot, []int{0}, nil, ConvertDType(x[0], m.dtype), []int{0}, nil), smoothing/2) // [Z,bits]
	p := Div(ones, BroadcastToShape(InsertAxes(count, 1), ones.Shape()))
	return []*model.Variable{prior, emit}, []*Node{Log(count), Sub(Log(p), Log(OneMinus(p)))}
}

// plainToy is a toy without a closed-form M-step.
type plainToy struct{ lvm.Model }

// all returns every observation once, in the order of their numbers, as a tensor [X,bits].
func (m toy) all() *tensors.Tensor {
	rows := make([]int, m.observations())
	for i := range rows {
		rows[i] = i
	}
	return m.rows(rows...)
}

// rows returns the observations of given numbers.
func (m toy) rows(numbers ...int) *tensors.Tensor {
	var flat []float32
	for _, x := range numbers {
		for d := range m.bits {
			flat = append(flat, float32(x>>d&1))
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, len(numbers), m.bits)
}

// draw returns n observations of the model at its initial values.
func (m toy) draw(r *rand.Rand, n int) []int {
	logP := m.table(m.prior, m.emit)
	var px []float64
	for _, row := range logP {
		px = append(px, math.Exp(gfn.LogSumExp(row)))
	}
	out := make([]int, n)
	for i := range out {
		u := r.Float64()
		for u >= px[out[i]] && out[i] < len(px)-1 {
			u -= px[out[i]]
			out[i]++
		}
	}
	return out
}

// table is log p(x,z) by brute force, [X][Z].
func (m toy) table(prior, emit []float64) [][]float64 {
	logZ := gfn.LogSumExp(prior)
	out := make([][]float64, m.observations())
	for x := range out {
		for z := range prior {
			logP := prior[z] - logZ
			for d := range m.bits {
				p := 1 / (1 + math.Exp(-emit[z*m.bits+d]))
				if x>>d&1 == 1 {
					logP += math.Log(p)
				} else {
					logP += math.Log(1 - p)
				}
			}
			out[x] = append(out[x], logP)
		}
	}
	return out
}

// learned is table at the values that a store holds.
func (m toy) learned(t testing.TB, store *model.Store) [][]float64 {
	t.Helper()
	return m.table(numbersOf(t, store, Theta+"/prior"), numbersOf(t, store, Theta+"/emit"))
}

// logLikelihood is the mean of log p(x) over observations, by brute force.
func logLikelihood(logP [][]float64, x []int) float64 {
	var sum float64
	for _, i := range x {
		sum += gfn.LogSumExp(logP[i])
	}
	return sum / float64(len(x))
}

// tablePolicy has free logits and a free flow for every observation and every state of a toy.
type tablePolicy struct{ toy }

var _ gfn.Policy = tablePolicy{}

// radix returns the sizes of the digits of a state, which count Unset as 0.
func (p tablePolicy) radix() (sizes []int, states int) {
	states = 1
	for _, s := range p.sizes {
		sizes = append(sizes, s+1)
		states *= s + 1
	}
	return sizes, states
}

func (p tablePolicy) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	g := x[0].Graph()
	sizes, states := p.radix()
	obs := number(x.Repeat(k)[0], slices.Repeat([]int{2}, p.bits), 0)
	row := Add(MulScalar(obs, states), number(s[0], sizes, 1))
	count := p.observations() * states
	hot := oneHot(p.dtype, row, count)
	return gfn.Heads{
		Forward: Dot(hot, nn.Param(scope, g, p.dtype, "logits", 0.1, count, p.env().Actions())).Product(),
		Flow:    Dot(hot, nn.Param(scope.At("flow"), g, p.dtype, "table", 0.1, count)).Product(),
	}
}

// row returns the row of the tables for observation x and a prefix of a latent.
func (p tablePolicy) row(x int, prefix []int) int {
	sizes, states := p.radix()
	row, stride := 0, 1
	for t, z := range prefix {
		row += (z + 1) * stride
		stride *= sizes[t]
	}
	return x*states + row
}

// posterior returns q(z|x) by walking through the tables on the host, [X][Z].
func (p tablePolicy) posterior(t testing.TB, store *model.Store) [][]float64 {
	t.Helper()
	logits, width := numbersOf(t, store, Phi+"/logits"), p.env().Actions()
	out := make([][]float64, p.observations())
	for x := range out {
		out[x] = make([]float64, p.latents())
		var walk func(prefix []int, number, stride int, prob float64)
		walk = func(prefix []int, number, stride int, prob float64) {
			if len(prefix) == len(p.sizes) {
				out[x][number] = prob
				return
			}
			at := p.row(x, prefix) * width
			next := gfn.Normalise(logits[at : at+p.sizes[len(prefix)]])
			for a, pa := range next {
				walk(append(slices.Clone(prefix), a), number+a*stride, stride*len(next), prob*pa)
			}
		}
		walk(nil, 0, 1, 1)
	}
	return out
}

// farthest returns the largest total variation between q(z|x) and p(z|x) over observations.
func farthest(q, logP [][]float64) (tv float64) {
	for x := range q {
		tv = max(tv, gfn.TotalVariation(q[x], gfn.Normalise(logP[x])))
	}
	return tv
}

func floats(dtype dtypes.DType, v []float64, dims ...int) *tensors.Tensor {
	if dtype == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(slices.Clone(v), dims...)
	}
	narrow := make([]float32, len(v))
	for i := range v {
		narrow[i] = float32(v[i])
	}
	return tensors.FromFlatDataAndDimensions(narrow, dims...)
}

// numbersOf returns a variable as float64.
func numbersOf(t testing.TB, store *model.Store, path string) []float64 {
	t.Helper()
	v := store.GetVariable(path)
	if v == nil {
		t.Fatalf("no variable %s", path)
	}
	if v.DType() == dtypes.Float64 {
		return tensors.MustCopyFlatData[float64](v.MustValue())
	}
	var out []float64
	for _, x := range tensors.MustCopyFlatData[float32](v.MustValue()) {
		out = append(out, float64(x))
	}
	return out
}

// setVariable changes the value of a variable that a store has.
func setVariable(t testing.TB, store *model.Store, path string, value *tensors.Tensor) {
	t.Helper()
	v := store.GetVariable(path)
	if v == nil || !v.Shape().Equal(value.Shape()) {
		t.Fatalf("there is no variable %s %s", path, value.Shape())
	}
	if err := v.SetValue(value); err != nil {
		t.Fatal(err)
	}
}

// snapshot returns the bytes of all variables whose path has one of the prefixes; no prefix means all.
func snapshot(t testing.TB, store *model.Store, prefixes ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for v := range store.IterVariables() {
		if len(prefixes) > 0 && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(v.Path(), p+"/") }) {
			continue
		}
		if err := v.MustValue().ConstBytes(func(b []byte) { out[v.Path()] = string(b) }); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// changed lists the variables that differ between two snapshots.
func changed(before, after map[string]string) (paths []string) {
	for path, b := range after {
		if old, ok := before[path]; !ok || old != b {
			paths = append(paths, path)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// adam returns an optimiser with one group, which need not move.
func adam(scope string, rate optim.Rate) optim.Optimizer {
	rate.MayBeZero = true
	return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rate: rate}}}
}

// never keeps the M-step from running.
var never = Blocks{First: math.MaxInt}

// toySpec trains a toy on all its observations.
func toySpec(m toy) Spec {
	return Spec{Model: m, Env: m.env(), Policy: tablePolicy{m}, Data: Full(m.all()), Seed: 1}
}

func newLearner(t testing.TB, b compute.Backend, spec Spec) *Learner {
	t.Helper()
	l, err := New(b, model.NewStore(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// steps makes n iterations and returns the last report.
func steps(t testing.TB, l *Learner, n int) (r Report) {
	t.Helper()
	for range n {
		var err error
		if r, err = l.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}
