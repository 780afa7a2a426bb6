package em

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// causal is a noisy-OR of 4 causes, each of which can have 4 of 6 effects: effects are absent with probability
// 0.95 prod_k (1 - strength z_k). Causes compete to explain effects, so that mean field is wrong. It has a single variable,
// the strength.
type causal struct{}

var _ lvm.Model = causal{}

const causes, effects = 4, 6

func (causal) env() envs.Sequence { return envs.Uniform(causes, 2) }

// strength is log(1 - strength) by cause and effect, [4,6].
func (causal) strength(theta *model.Scope, g *Graph) *Node {
	known := make([]float64, causes*effects)
	for k := range causes {
		for i := range 4 {
			known[k*effects+(k+i)%effects] = 1
		}
	}
	strength := theta.VariableWithValue("strength", 0.7)
	return Mul(Reshape(Const(g, known), causes, effects), Log(OneMinus(strength.NodeValue(g))))
}

func (m causal) absent(theta *model.Scope, z *Node) *Node {
	return Exp(AddScalar(Dot(ConvertDType(z, dtypes.Float64), m.strength(theta, z.Graph())).Product(), math.Log(0.95)))
}

func (m causal) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	absent := m.absent(theta, z[0])
	seen := Add(Mul(x[0], OneMinus(absent)), Mul(OneMinus(x[0]), absent))
	on := ReduceSum(ConvertDType(z[0], dtypes.Float64), 1)
	logPrior := Add(MulScalar(on, math.Log(0.4)), MulScalar(AddScalar(Neg(on), causes), math.Log(0.6)))
	return Add(ReduceSum(Log(seen), 1), logPrior)
}

func (m causal) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(dtypes.Float64, n, causes)
	z := ConvertDType(LessThan(u, MulScalar(OnesLike(u), 0.4)), dtypes.Int32)
	x := r.Bernoulli(OneMinus(m.absent(theta, z)))
	return gfn.Batch{ConvertDType(x, dtypes.Float64)}, gfn.State{z}
}

// all lists every latent, [16,4], and every observation, [64,6], entry i being bit i of its number.
func (causal) all() (z, x *tensors.Tensor) {
	var bits []int32
	var floats []float64
	for i := range 1 << causes {
		for k := range causes {
			bits = append(bits, int32(i>>k&1))
		}
	}
	for i := range 1 << effects {
		for k := range effects {
			floats = append(floats, float64(i>>k&1))
		}
	}
	return tensors.FromFlatDataAndDimensions(bits, 1<<causes, causes), tensors.FromFlatDataAndDimensions(floats, 1<<effects, effects)
}

// ideal is the posterior of a causal model by enumeration, as a policy, or if it is factorised the product of its
// marginals: of all products, the one with the right marginals. It encodes observations as log p(x,z) of all latents.
type ideal struct {
	causal
	theta      *model.Scope
	factorised bool
}

var _ Encoder = ideal{}

func (p ideal) Encode(_ *model.Scope, x gfn.Batch) gfn.Batch {
	z, _ := p.all()
	return gfn.Batch{lvm.Table(p.causal, p.theta, x, gfn.State{Const(x[0].Graph(), z)})} // [B,16]
}

func (p ideal) Heads(_ *model.Scope, u gfn.Batch, s gfn.State, k int) gfn.Heads {
	list, _ := p.all()
	logP := u.Repeat(k)[0] // [N,16]
	n, g := logP.Shape().Dim(0), logP.Graph()
	z := BroadcastToDims(InsertAxes(Const(g, list), 0), n, 1<<causes, causes)
	state := BroadcastToDims(InsertAxes(s[0], 1), n, 1<<causes, causes)
	open := LessThan(state, ZerosLike(state))
	fits := LogicalAll(LogicalOr(open, Equal(z, state)), 2) // [N,16]
	if p.factorised {
		fits = LogicalOr(fits, LogicalNot(fits))
	}
	next := ReduceSum(ConvertDType(LogicalNot(open), dtypes.Int32), 2) // [N,16], the cause to decide on
	here := Equal(Iota(g, shapes.Make(dtypes.Int32, n, 1<<causes, causes), 2), BroadcastToDims(InsertAxes(next, 2), n, 1<<causes, causes))
	on := ReduceSum(Where(here, z, ZerosLike(z)), 2) // [N,16]
	mass := Where(fits, Exp(logP), ZerosLike(logP))
	with := Mul(mass, ConvertDType(on, dtypes.Float64))
	one, all := ReduceSum(with, 1), ReduceSum(mass, 1)
	return gfn.Heads{Forward: Log(MaxScalar(Stack([]*Node{Sub(all, one), one}, 1), 1e-300))}
}

// newIdeal returns the exact or the factorised posterior of a causal model.
func newIdeal(t *testing.T, factorised bool) *Posterior {
	t.Helper()
	b, store := newBackend(t), nn.NewStore(testkit.Seed(t))
	if _, err := lvm.Draw(b, store.Scope(Theta), causal{}, rng.Key(0, "make variables"), 1); err != nil {
		t.Fatal(err)
	}
	policy := ideal{theta: store.Scope(Theta), factorised: factorised}
	p, err := NewPosterior(b, store, Spec{Model: causal{}, Env: causal{}.env(), Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// joint is log p(x,z) of all observations and latents.
func (m causal) joint(t *testing.T, p *Posterior) (out [][]float64) {
	t.Helper()
	z, x := m.all()
	type lists[T any] struct{ X, Z []T }
	type table[T any] struct{ LogP T }
	r, err := program.Once[lists[host], table[host]](p.programs.Backend, p.g.store, "table", func(in lists[*Node]) table[*Node] {
		return table[*Node]{lvm.Table(m, p.g.theta(), in.X, in.Z)}
	}, lists[host]{[]host{x}, []host{z}})
	if err != nil {
		t.Fatal(err)
	}
	flat := numbers(r.LogP)
	for i := range 1 << effects {
		out = append(out, flat[i<<causes:(i+1)<<causes])
	}
	return out
}

// The exact posterior gives every latent the weight p(x), so that nothing is left to estimate. A factorised one does not;
// its estimates are right within 5 standard errors, which 64 of them leave once in 25,000 times.
func TestPosteriorWeights(t *testing.T) {
	_, x := causal{}.all()
	exact := newIdeal(t, false)
	const n = 40
	s, err := exact.Sample(n, x)
	if err != nil {
		t.Fatal(err)
	}
	estimates, err := exact.LogLikelihood(n, x)
	if err != nil {
		t.Fatal(err)
	}
	joint := causal{}.joint(t, exact)
	for i, row := range joint {
		logX := gfn.LogSumExp(row)
		for _, w := range s.LogWeights[i] {
			if !(math.Abs(w-logX) < 1e-9) {
				t.Fatalf("observation %d: a log-weight of %g, log p(x) is %g", i, w, logX)
			}
		}
		if e := estimates[i]; !(math.Abs(e.LogZ-logX) < 1e-9) || !(e.StdErr < 1e-7) || !(math.Abs(e.ESS-n) < 1e-6) {
			t.Errorf("observation %d: %+v, log p(x) is %g", i, e, logX)
		}
	}
	estimates, err = newIdeal(t, true).LogLikelihood(5000, x)
	if err != nil {
		t.Fatal(err)
	}
	far, mean := 0, 0.0
	for i, row := range joint {
		e, logX := estimates[i], gfn.LogSumExp(row)
		if mean += e.StdErr / float64(len(joint)); !(math.Abs(e.LogZ-logX) <= 5*e.StdErr+1e-9) {
			t.Errorf("observation %d: %+v, log p(x) is %g", i, e, logX)
		}
		if math.Abs(e.ELBO-logX) > 5*e.StdErr+1e-9 { // the logarithms of weights instead of the weights
			far++
		}
	}
	if mean < 1e-4 || far == 0 {
		t.Errorf("a standard error of %g, and %d bounds that are off: the factorised posterior tests nothing", mean, far)
	}
	sum := Summarise(estimates)
	if logs := sum.LogP; !(sum.StdErr > 0) || !(sum.ELBO < logs) || !(sum.SampleErr < sum.StdErr) {
		t.Errorf("%+v", sum)
	}
}
