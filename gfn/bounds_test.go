package gfn_test

import (
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// summed are the sums of log-probabilities along trajectories, and their log-rewards, by row.
type summed struct{ logPF, logPB, logR []float64 }

func signals(rows [][]float64) summed { return summed{rows[0], rows[1], rows[2]} }

// logW are the log importance weights.
func (s summed) logW() []float64 {
	out := make([]float64, len(s.logR))
	for i := range out {
		out[i] = s.logR[i] + s.logPB[i] - s.logPF[i]
	}
	return out
}

// surrogateOf returns the losses, by row, of an objective that multiplies log-probabilities by constants, which are
// those of before; nil if the objective is none of these.
func surrogateOf(o gfn.Objective) func(before, now summed) []float64 {
	type loss func(logW []float64, b int, now summed, from int) float64
	by := func(samples int, loss loss) func(before, now summed) []float64 {
		return func(before, now summed) (out []float64) {
			logW, size := before.logW(), samples
			if size == 0 {
				size = len(logW)
			}
			for from := 0; from < len(logW); from += size {
				for b := range size {
					out = append(out, loss(logW[from:from+size], b, now, from))
				}
			}
			return out
		}
	}
	switch o := o.(type) {
	case gfn.HVI:
		return by(o.Samples, func(logW []float64, b int, now summed, from int) float64 {
			signal := logW[b]
			if k := len(logW); k > 1 {
				signal -= (mean(logW)*float64(k) - logW[b]) / float64(k-1)
			}
			return -now.logPB[from+b] - signal*now.logPF[from+b]
		})
	case gfn.RWS:
		return by(o.Samples, func(logW []float64, b int, now summed, from int) float64 {
			return -float64(len(logW)) * gfn.Normalise(logW)[b] * now.logPF[from+b]
		})
	case gfn.VIMCO:
		return by(o.Samples, func(logW []float64, b int, now summed, from int) float64 {
			k := float64(len(logW))
			without := slices.Clone(logW)
			without[b] = (mean(logW)*k - logW[b]) / (k - 1)
			signal := gfn.LogSumExp(logW) - gfn.LogSumExp(without)
			w := gfn.Normalise(logW)[b]
			return -k * (signal*now.logPF[from+b] + w*(now.logPB[from+b]-now.logPF[from+b]))
		})
	}
	return nil
}

// tuples are all ways to draw k of n things, one after the other.
func tuples(n, k int) [][]int {
	out := [][]int{nil}
	for range k {
		var longer [][]int
		for _, t := range out {
			for i := range n {
				longer = append(longer, append(slices.Clone(t), i))
			}
		}
		out = longer
	}
	return out
}

// forgetful is an objective that sees trajectories without a part of them.
type forgetful struct {
	gfn.Objective
	without func(p *gfn.Path)
}

func (o forgetful) Loss(p gfn.Path) *Node {
	o.without(&p)
	return o.Objective.Loss(p)
}

// TestBounds sums the gradients of RWS and VIMCO over all K-tuples of trajectories, and compares them with what is
// differentiated numerically on the host: VIMCO with the bound by K trajectories, by P_F and by a learned P_B; RWS with
// the expected log P_F under weights of the undisturbed policy.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		env gfn.Env
		k   int
	}{
		{envs.Hypergrid{Side: 3, Dims: 2}, 2}, {envs.Set{Items: 2}, 2}, {envs.Set{Items: 2}, 3},
		{envs.Subset{Items: 3, Size: 2}, 4},
	} {
		seed := testkit.Seed(t)
		p := newProblem(t, c.env, seed)
		p.randomise(seed)
		one := allPaths(p.dag)
		all := tuples(len(one), c.k)
		base := p.current()
		sums := func(now gfn.Table) (out summed) {
			for _, path := range one {
				out.logPF = append(out.logPF, total(now.LogPF, path))
				out.logPB = append(out.logPB, total(now.LogPB, path))
				out.logR = append(out.logR, p.logR[object(p.dag, path)])
			}
			return out
		}
		was := sums(base)
		// expected adds up a number of each tuple, given its log-weights, over all of them.
		expected := func(logPF, logW []float64, f func(tuple []int, logW []float64) float64) (sum float64) {
			for _, tuple := range all {
				prob, of := 0.0, make([]float64, c.k)
				for i, path := range tuple {
					prob += logPF[path]
					of[i] = logW[path]
				}
				sum += math.Exp(prob) * f(tuple, of)
			}
			return sum
		}
		bound := func() float64 {
			now := sums(p.current())
			return -expected(now.logPF, now.logW(), func(_ []int, logW []float64) float64 {
				return gfn.LogSumExp(logW) - math.Log(float64(c.k))
			})
		}
		weighed := func() float64 {
			now := sums(p.current())
			return -expected(was.logPF, was.logW(), func(tuple []int, logW []float64) (sum float64) {
				for i, w := range gfn.Normalise(logW) {
					sum += w * now.logPF[tuple[i]]
				}
				return sum
			})
		}

		var paths [][]int
		var weights []float64
		for _, tuple := range all {
			prob := 0.0
			for _, i := range tuple {
				paths = append(paths, one[i])
				prob += was.logPF[i]
			}
			for range tuple {
				weights = append(weights, math.Exp(prob)/float64(c.k))
			}
		}
		gradients := func(o gfn.Objective) [][]float64 { return weighedGradients(t, p, paths, weights, o) }

		noBack := func(p *gfn.Path) { p.LogPB = ZerosLike(p.LogPB) }
		forward, backward := p.differentiate("policy/forward", bound), p.differentiate("policy/backward", bound)
		towards := p.differentiate("policy/forward", weighed)
		oneWay := c.env.BackActions() == 1
		if size(forward) < 0.01 || size(towards) < 0.01 || !oneWay && size(backward) < 1e-5 {
			t.Fatalf("%T: the bounds are flat: %g, %g, %g", c.env, size(forward), size(towards), size(backward))
		}
		for _, check := range []struct {
			name string
			loss gfn.Objective
			by   int
			want []float64
			off  bool
		}{
			{"VIMCO", gfn.VIMCO{Samples: c.k}, 0, forward, false},
			{"VIMCO by P_B", gfn.VIMCO{Samples: c.k}, 1, backward, false},
			{"RWS", gfn.RWS{Samples: c.k}, 0, towards, false},
			{"RWS by P_B", gfn.RWS{Samples: c.k}, 1, make([]float64, len(backward)), false},
			{"HVI", gfn.HVI{Samples: c.k}, 0, forward, true},
			{"RWS as a bound", gfn.RWS{Samples: c.k}, 0, forward, true},
			{"VIMCO without P_B", forgetful{gfn.VIMCO{Samples: c.k}, noBack}, 0, forward, true},
			{"RWS without P_B", forgetful{gfn.RWS{Samples: c.k}, noBack}, 0, towards, true},
		} {
			d := farthest(gradients(check.loss)[check.by], check.want)
			if !check.off && !(d < 1e-7) || check.off && !(d > 1e-4) {
				t.Errorf("%T, K = %d, %s: expected gradient is off by %g", c.env, c.k, check.name, d)
			}
		}
	}
}

// weighedGradients are the gradients of the sum of losses of given paths, each with a weight, by P_F and by P_B.
func weighedGradients(t *testing.T, p *problem, paths [][]int, weights []float64, o gfn.Objective) [][]float64 {
	t.Helper()
	run := compile[[]*tensors.Tensor, weighted[any, []float64]](t, p, func(
		x gfn.Batch, _ *rng.Stream, in weighted[*Node, *Node],
	) []*Node {
		g, net := x[0].Graph(), p.net()
		tr := replay(net, x, in.Actions)
		path := p.path(net, tr, net.Score(tr, gfn.Behaviour{}), false)
		loss := ReduceAllSum(Mul(in.Forward, o.Loss(path)))
		return Gradient(loss, p.variable(g, "policy/forward"), p.variable(g, "policy/backward"))
	})
	in := weighted[any, []float64]{Actions: actionTable(p.dag, paths), Forward: weights}
	return numbers[[][]float64](run(len(paths), rng.Key(0, "unused"), in))
}

// crowd is an objective on trajectories of which each stands for as many as P_F draws.
type crowd struct{ gfn.Objective }

func (o crowd) Loss(p gfn.Path) *Node {
	p.LogR = Add(p.LogR, StopGradient(ReduceSum(p.LogPF, 1)))
	return o.Objective.Loss(p)
}

// TestRWSLimit checks that many samples, among which each trajectory is as frequent as P_F says, give RWS the gradient
// of the forward KL divergence.
func TestRWSLimit(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 3, Dims: 2}, seed)
	p.randomise(seed)
	want := p.differentiate("policy/forward", func() float64 { return p.dag.EUBO(p.current(), p.logR) })
	paths := allPaths(p.dag)
	each := slices.Repeat([]float64{1 / float64(len(paths))}, len(paths))
	if d := farthest(weighedGradients(t, p, paths, each, crowd{gfn.RWS{}})[0], want); !(d < 1e-7) {
		t.Errorf("the gradient is off by %g", d)
	}
	if d := farthest(weighedGradients(t, p, paths, each, gfn.RWS{})[0], want); !(d > 1e-3) {
		t.Errorf("with every trajectory once it is off by %g only", d)
	}
}

// TestControlVariate checks that VarGrad is trajectory balance with a leave-one-out control variate: of whatever
// trajectories, its gradient by P_F is 2 (K-1)/K times that of HVI.
func TestControlVariate(t *testing.T) {
	const k = 4
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 3, Dims: 2}, seed)
	p.randomise(seed)
	paths := allPaths(p.dag)[:3*k]
	each := slices.Repeat([]float64{1}, len(paths))
	got := weighedGradients(t, p, paths, each, gfn.VarGrad{Samples: k})[0]
	want := weighedGradients(t, p, paths, each, gfn.HVI{Samples: k})[0]
	for i := range want {
		want[i] *= 2 * (k - 1) / float64(k)
	}
	if d := farthest(got, want); !(d < 1e-12) || size(want) < 0.1 {
		t.Errorf("off by %g of %g", d, size(want))
	}
}

// TestSelfNormalised compares weights with their definition; no weight at all is no NaN, and NaN stays NaN.
func TestSelfNormalised(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		logW, want []float64
		ess        float64
	}{
		{[]float64{0, math.Log(2), math.Log(5)}, []float64{1. / 8, 2. / 8, 5. / 8}, 64. / 30},
		{[]float64{-1e4, -1e4, -1e4}, []float64{1. / 3, 1. / 3, 1. / 3}, 3},
		{[]float64{900, -inf, 900}, []float64{0.5, 0, 0.5}, 2},
		{[]float64{-inf, -inf, 3}, []float64{0, 0, 1}, 1},
		{[]float64{-inf, -inf, -inf}, []float64{0, 0, 0}, 0},
		{[]float64{7}, []float64{1}, 1},
	} {
		both := slices.Repeat(c.logW, 2)
		out := MustExecOnceN(backend(), func(logW *Node) (*Node, *Node) { return gfn.SelfNormalised(logW, len(c.logW)) }, both)
		w, ess := tensors.MustCopyFlatData[float64](out[0]), tensors.MustCopyFlatData[float64](out[1])
		if farthest(w, slices.Repeat(c.want, 2)) > 1e-14 || farthest(ess, []float64{c.ess, c.ess}) > 1e-14 {
			t.Errorf("log-weights %v: weights %v, effective sample size %v", c.logW, w, ess)
		}
	}
	for _, bad := range []float64{nan, inf} {
		out := MustExecOnceN(backend(), func(logW *Node) (*Node, *Node) { return gfn.SelfNormalised(logW, 2) }, []float64{1, bad})
		if w := tensors.MustCopyFlatData[float64](out[0]); !math.IsNaN(w[1]) {
			t.Errorf("log-weight %g has weight %g", bad, w[1])
		}
	}
}

// TestWithoutReward checks that trajectories without reward add nothing to RWS, nor to its gradient.
func TestWithoutReward(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 3, Dims: 2}, seed)
	p.randomise(seed)
	paths := allPaths(p.dag)[:4]
	none := func(rows ...bool) func(p *gfn.Path) {
		return func(p *gfn.Path) {
			p.LogR = Where(Const(p.LogR.Graph(), rows), AddScalar(ZerosLike(p.LogR), math.Inf(-1)), p.LogR)
		}
	}
	gradient := func(paths [][]int, weight float64, without func(p *gfn.Path)) []float64 {
		o := forgetful{gfn.RWS{Samples: len(paths) / 2}, without}
		return weighedGradients(t, p, paths, slices.Repeat([]float64{weight}, len(paths)), o)[0]
	}
	got := gradient(append(slices.Clone(paths), paths[1], paths[3]), 2./3, none(false, true, false, true, true, true))
	want := gradient([][]int{paths[0], paths[2], paths[1], paths[3]}, 1, none(false, false, true, true))
	if d := farthest(got, want); !(d < 1e-12) || size(want) < 0.01 {
		t.Errorf("the gradient is off by %g of %g", d, size(want))
	}
}
