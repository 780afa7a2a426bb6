package gfn_test

import (
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// alpha is the false-alarm rate of one statistical check; no test makes more than twenty.
const alpha = 5e-6

// backend runs one operation at a time: where they run in parallel, as is its default, large matrix products can take all
// workers and then wait for more of them forever.
var backend = sync.OnceValue(func() compute.Backend {
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		panic(err)
	}
	return b
})

// smallEnvs are the environments on which objectives are compared with exact answers: paths of different lengths, in two
// and in four dimensions, one path per object, and many paths of one length.
var smallEnvs = []struct {
	name string
	env  gfn.Env
}{
	{"grid 4x4", envs.Hypergrid{Side: 4, Dims: 2}},
	{"grid 3^4", envs.Hypergrid{Side: 3, Dims: 4}},
	{"sequence", envs.Sequence{Sizes: []int{2, 3, 2}}},
	{"subset", envs.Subset{Items: 5, Size: 3}},
}

// problem is a small environment in which everything is known: a random reward and a random backward policy, and the
// forward policy and the flows that they determine. A Tabular policy (scope "policy") is set to them; two more hold
// the log-reward and a random partial log-reward as their flows (scopes "reward" and "partial").
type problem struct {
	env  gfn.Env
	dag  *gfn.DAG
	logR []float64 // by object
	// By edge, by edge, by state, by state.
	logPF, logPB, logF, partial []float64

	store *model.Store
	table gfn.Tabular
}

func newProblem(t testing.TB, env gfn.Env, seed uint64) *problem {
	t.Helper()
	p := &problem{env: env, dag: enumerate(t, env), store: model.NewStore()}
	r := rng.New(seed, "problem")
	back := make([]float64, len(p.dag.Edges))
	for i := range back {
		back[i] = r.NormFloat64()
	}
	p.logPB = normaliseBy(back, func(i int) int { return p.dag.Edges[i].To })
	reward := make([]float64, p.dag.Len())
	for _, s := range p.dag.Objects {
		reward[s] = 1.5 * r.NormFloat64()
		p.logR = append(p.logR, reward[s])
	}
	p.logF, p.logPF = p.dag.Solve(p.logR, p.logPB)
	for range p.dag.Len() {
		p.partial = append(p.partial, r.NormFloat64())
	}
	p.table = gfn.Tabular{DAG: p.dag, DType: dtypes.Float64, LearnBackward: true}
	p.set("reward/flow", reward)
	p.set("partial/flow", p.partial)
	p.solve()
	return p
}

// solve sets the policy to the exact answer.
func (p *problem) solve() {
	n, na, nb := p.dag.Len(), p.env.Actions(), p.env.BackActions()
	forward, backward := make([]float64, n*na), make([]float64, n*nb)
	for i, e := range p.dag.Edges {
		forward[e.From*na+e.Action] = p.logPF[i]
		backward[e.To*nb+e.Back] = p.logPB[i]
	}
	p.set("policy/forward", forward, n, na)
	p.set("policy/backward", backward, n, nb)
	p.set("policy/flow", p.logF)
	p.set("policy/logz", p.logF[:1])
}

// randomise sets the policy to random values.
func (p *problem) randomise(seed uint64) {
	p.solve()
	for _, name := range policyVars {
		p.shift(name, seed, 1)
	}
}

var policyVars = []string{"policy/forward", "policy/backward", "policy/flow", "policy/logz"}

// set gives a variable its values; without dims it is a vector, or a scalar for "logz".
func (p *problem) set(name string, values []float64, dims ...int) {
	v := p.store.GetVariable("/" + name)
	switch {
	case v != nil:
		dims = v.Shape().Dimensions
	case name == "policy/logz":
		dims = []int{}
	case dims == nil:
		dims = []int{len(values)}
	}
	value := tensors.FromFlatDataAndDimensions(append([]float64{}, values...), dims...)
	if v == nil {
		if _, err := p.store.CreateVariable(name, value); err != nil {
			panic(err)
		}
	} else if err := v.SetValue(value); err != nil {
		panic(err)
	}
}

func (p *problem) get(name string) []float64 {
	return tensors.MustCopyFlatData[float64](p.store.GetVariable("/" + name).MustValue())
}

// shift adds noise of a given size to a variable, normal but for a gap around 0.
func (p *problem) shift(name string, seed uint64, size float64) {
	r := rng.New(seed, name)
	values := p.get(name)
	for i := range values {
		noise := r.NormFloat64()
		values[i] += size * (noise + math.Copysign(0.5, noise))
	}
	p.set(name, values)
}

func (p *problem) net() gfn.Net {
	return gfn.Net{Env: p.env, Policy: p.table, Scope: p.store.Scope("policy")}
}

// bare is the policy without its own log Z, which is then the flow of the initial state.
type bare struct{ gfn.Policy }

func (p *problem) bareNet() gfn.Net {
	n := p.net()
	n.Policy = bare{n.Policy}
	return n
}

func (p *problem) lookup(scope string, x gfn.Batch, s gfn.State, k int) *Node {
	return gfn.Tabular{DAG: p.dag, DType: dtypes.Float64}.Heads(p.store.Scope(scope), x, s, k).Flow
}

// reward is the log-reward of a batch of objects.
func (p *problem) reward(x gfn.Batch, s gfn.State) *Node { return p.lookup("reward", x, s, 1) }

func (p *problem) path(n gfn.Net, tr gfn.Trajectory, s gfn.Scores, lookAhead bool) gfn.Path {
	var partial *Node
	if lookAhead {
		partial = n.Partials(tr, func(x gfn.Batch, s gfn.State, k int) *Node { return p.lookup("partial", x, s, k) })
	}
	return n.Path(tr, s, p.reward(tr.X, tr.Last()), partial)
}

// variable is a variable's node, to differentiate by.
func (p *problem) variable(g *Graph, name string) *Node {
	return p.store.GetVariable("/" + name).NodeValue(g)
}

// exact is the table of the exact answer.
func (p *problem) exact() gfn.Table { return gfn.Table{LogPF: p.logPF, LogPB: p.logPB, Flow: p.logF} }

// current is the table of the policy as it stands, computed on the host.
func (p *problem) current() gfn.Table {
	na, nb := p.env.Actions(), p.env.BackActions()
	forward, backward := p.get("policy/forward"), p.get("policy/backward")
	var f, b []float64
	for _, e := range p.dag.Edges {
		f = append(f, forward[e.From*na+e.Action])
		b = append(b, backward[e.To*nb+e.Back])
	}
	return gfn.Table{
		LogPF: normaliseBy(f, func(i int) int { return p.dag.Edges[i].From }),
		LogPB: normaliseBy(b, func(i int) int { return p.dag.Edges[i].To }),
		Flow:  p.get("policy/flow"),
	}
}

// normaliseBy makes the exponentials of each group sum to 1.
func normaliseBy(logits []float64, group func(i int) int) []float64 {
	sum := map[int]float64{}
	for i, l := range logits {
		sum[group(i)] += math.Exp(l)
	}
	out := make([]float64, len(logits))
	for i, l := range logits {
		out[i] = l - math.Log(sum[group(i)])
	}
	return out
}

// program compiles a function of x and a key, which returns its outputs as numbers.
func (p *problem) program(
	t testing.TB, f func(x gfn.Batch, r *rng.Stream) []*Node,
) func(b int, key *tensors.Tensor) [][]float64 {
	t.Helper()
	exec, err := model.NewExec(backend(), p.store, func(_ *model.Scope, x, key *Node) []*Node {
		out := f(gfn.Batch{x}, rng.In(key))
		for i := range out {
			out[i] = ConvertDType(out[i], dtypes.Float64)
		}
		return out
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(exec.Finalize)
	return func(b int, key *tensors.Tensor) [][]float64 {
		t.Helper()
		res, err := exec.Call(blank(b), key)
		if err != nil {
			t.Fatal(err)
		}
		out := make([][]float64, len(res))
		for i := range res {
			out[i] = tensors.MustCopyFlatData[float64](res[i])
		}
		return out
	}
}

// drawn is what a program starts from: observations, a key, and more.
type drawn[T, M any] struct {
	X, Key T
	More   M
}

type none struct{}

// compile makes a program of a function of x, a key and more inputs, with names for all that it takes and returns.
func compile[Out, In, NodesIn, NodesOut any](
	t testing.TB, p *problem, f func(x gfn.Batch, r *rng.Stream, in NodesIn) NodesOut,
) func(b int, key *tensors.Tensor, in In) Out {
	t.Helper()
	set := program.NewSet(backend(), p.store)
	t.Cleanup(set.Close)
	run := program.New[drawn[*tensors.Tensor, In], Out](set, "test", func(in drawn[*Node, NodesIn]) NodesOut {
		return f(gfn.Batch{in.X}, rng.In(in.Key), in.More)
	})
	return func(b int, key *tensors.Tensor, in In) Out {
		t.Helper()
		out, err := run.Call(drawn[*tensors.Tensor, In]{blank(b), key, in})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// numbers returns a struct with the numbers of tensors in one with the same fields.
func numbers[Out any](from any) (out Out) {
	var set func(from, to reflect.Value)
	set = func(from, to reflect.Value) {
		x, ok := from.Interface().(*tensors.Tensor)
		switch {
		case ok:
			to.Set(reflect.ValueOf(floats(x)))
		case from.Kind() == reflect.Slice:
			to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				set(from.Index(i), to.Index(i))
			}
		default:
			for i := range from.NumField() {
				set(from.Field(i), to.Field(i))
			}
		}
	}
	set(reflect.ValueOf(from), reflect.ValueOf(&out).Elem())
	return out
}

func floats(x *tensors.Tensor) (out []float64) {
	switch x.DType() {
	case dtypes.Float64:
		return tensors.MustCopyFlatData[float64](x)
	case dtypes.Float32:
		for _, v := range tensors.MustCopyFlatData[float32](x) {
			out = append(out, float64(v))
		}
	case dtypes.Int32:
		for _, v := range tensors.MustCopyFlatData[int32](x) {
			out = append(out, float64(v))
		}
	case dtypes.Bool:
		for _, v := range tensors.MustCopyFlatData[bool](x) {
			if v {
				out = append(out, 1)
			} else {
				out = append(out, 0)
			}
		}
	default:
		panic(fmt.Errorf("dtype %s", x.DType()))
	}
	return out
}

// blank is a batch of observations that say nothing.
func blank(b int) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(make([]float32, b), b, 1) }

func enumerate(t testing.TB, env gfn.Env) *gfn.DAG {
	t.Helper()
	d, err := gfn.Enumerate(backend(), env, []*tensors.Tensor{blank(1)}, 5000)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// uniform is the behaviour that ignores the policy: it explores, and its actions do not move when the policy does.
func uniform(g *Graph) gfn.Behaviour { return gfn.Behaviour{Beta: Scalar(g, dtypes.Float64, 0)} }

// chi2 returns the probability of counts at least as far from what the distribution p expects as these. Cells that
// expect fewer than 5 are merged.
func chi2(counts []int, p []float64) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	var x, rest, restP, cells float64
	add := func(got, want float64) {
		x += (got - want) * (got - want) / want
		cells++
	}
	for i, c := range counts {
		switch want := p[i] * float64(n); {
		case want == 0 && c > 0:
			return 0
		case want < 5:
			rest += float64(c)
			restP += want
		default:
			add(float64(c), want)
		}
	}
	if restP > 0 {
		add(rest, restP)
	}
	if cells == 1 {
		return 1
	}
	return distuv.ChiSquared{K: cells - 1}.Survival(x)
}

func maxOf(x []float64) float64 {
	m := math.Inf(-1)
	for _, v := range x {
		if math.IsNaN(v) {
			return v
		}
		m = max(m, v)
	}
	return m
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// size returns the largest absolute value of a vector.
func size(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		if math.IsNaN(v) {
			return v
		}
		m = max(m, math.Abs(v))
	}
	return m
}

// farthest returns the largest difference of two vectors, relative to the largest entry of b (but at least 1).
func farthest(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	scale, diff := 1.0, 0.0
	for i := range a {
		if math.IsNaN(a[i]) || math.IsNaN(b[i]) {
			return math.Inf(1)
		}
		scale = max(scale, math.Abs(b[i]))
		diff = max(diff, math.Abs(a[i]-b[i]))
	}
	return diff / scale
}
