package gfn_test

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// balance lists the objectives that are 0 at the optimum, and the variables that can raise them.
var balance = []struct {
	name string
	loss gfn.Objective
	bare bool // log Z is the flow of the initial state
	uses []string
}{
	{"TB", gfn.TB{}, false, []string{"policy/forward", "policy/backward", "policy/logz"}},
	{"TB with flow", gfn.TB{}, true, []string{"policy/forward", "policy/backward", "policy/flow"}},
	{"DB", gfn.DB{}, false, []string{"policy/forward", "policy/backward", "policy/flow"}},
	{"SubTB", gfn.SubTB{}, false, []string{"policy/forward", "policy/backward", "policy/flow"}},
	{"SubTB 0.9", gfn.SubTB{Lambda: 0.9}, false, []string{"policy/forward", "policy/backward", "policy/flow"}},
	{"VarGrad", gfn.VarGrad{}, false, []string{"policy/forward", "policy/backward"}},
	{"VarGrad of 4", gfn.VarGrad{Samples: 4}, false, []string{"policy/forward", "policy/backward"}},
}

// lossesOf are losses with whole and with forward-looking flows, on trajectories in both directions.
type lossesOf[T any] struct {
	Up, Down     taken[T]
	Whole, Ahead []T
}

// TestOptimum sets a policy to the exact answer, on which all objectives must vanish, on trajectories sampled forward and
// backward by a behaviour that goes everywhere, with whole and with forward-looking flows; then it disturbs one variable
// at a time.
func TestOptimum(t *testing.T) {
	for _, c := range smallEnvs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seed := testkit.Seed(t)
			p := newProblem(t, c.env, seed)
			run := compile[lossesOf[*tensors.Tensor], none](t, p, func(x gfn.Batch, r *rng.Stream, _ none) lossesOf[*Node] {
				how := uniform(x[0].Graph())
				up := p.net().Rollout(r, x, nil, how)
				down := p.net().Backtrack(r, x, up.Last(), nil, how)
				losses := func(ahead bool) (out []*Node) {
					for _, o := range balance {
						net := p.net()
						if o.bare {
							net = p.bareNet()
						}
						for _, tr := range []gfn.Trajectory{up, down} {
							out = append(out, o.loss.Loss(p.path(net, tr, net.Score(tr, gfn.Behaviour{}), ahead)))
						}
					}
					return out
				}
				return lossesOf[*Node]{record(up), record(down), losses(false), losses(true)}
			})
			losses := func(ahead bool) [][]float64 {
				flow := p.get("policy/flow")
				if ahead {
					less := make([]float64, len(flow))
					for i := range flow {
						less[i] = flow[i] - p.partial[i]
					}
					p.set("policy/flow", less)
					defer p.set("policy/flow", flow)
				}
				out := numbers[lossesOf[[]float64]](run(512, rng.Key(seed, "optimum"), none{}))
				for _, by := range []taken[[]float64]{out.Up, out.Down} {
					if n := covered(p.dag, by); 10*n < 9*len(p.dag.Edges) {
						t.Fatalf("the trajectories use %d of %d edges", n, len(p.dag.Edges))
					}
				}
				if ahead {
					return out.Ahead
				}
				return out.Whole
			}
			for _, ahead := range []bool{false, true} {
				p.solve()
				for i, l := range losses(ahead) {
					if m := maxOf(l); !(m <= 1e-12) {
						t.Errorf("%s (forward-looking: %t, trajectories %d): %g at the optimum", balance[i/2].name, ahead, i%2, m)
					}
				}
				for _, name := range policyVars {
					p.solve()
					p.shift(name, seed, 0.1)
					for i, l := range losses(ahead) {
						o := balance[i/2]
						uses := false
						for _, u := range o.uses {
							uses = uses || u == name
						}
						if name == "policy/backward" && c.env.BackActions() == 1 {
							uses = false // there is one way back only
						}
						m := mean(l)
						if uses && !(m > 1e-4) {
							t.Errorf("%s (forward-looking: %t, trajectories %d): %g with %s disturbed", o.name, ahead, i%2, m, name)
						}
						if !uses && !(m <= 1e-12) {
							t.Errorf("%s (forward-looking: %t, trajectories %d): %g with %s disturbed, which it should not use", o.name, ahead, i%2, m, name)
						}
					}
				}
			}
		})
	}
}

// covered counts the edges that trajectories use.
func covered(d *gfn.DAG, by taken[[]float64]) int {
	seen := map[int]bool{}
	for _, path := range follow(d, by) {
		for _, e := range path {
			seen[e] = true
		}
	}
	return len(seen)
}

// weighted is every path, with its probability forward and backward.
type weighted[A, W any] struct {
	Actions           A
	Forward, Backward W
}

// TestDivergences checks the objectives that are not 0 at the optimum: there the divergence that they minimise is 0, and
// their expected gradient, summed over all trajectories, too; elsewhere neither is.
func TestDivergences(t *testing.T) {
	for _, c := range append(smallEnvs[:1:1], smallEnvs[2:]...) {
		t.Run(c.name, func(t *testing.T) {
			seed := testkit.Seed(t)
			p := newProblem(t, c.env, seed)
			paths := allPaths(p.dag)
			logZ := p.logF[0]
			run := compile[[]*tensors.Tensor, weighted[any, []float64]](t, p, func(
				x gfn.Batch, _ *rng.Stream, in weighted[*Node, *Node],
			) []*Node {
				net := p.net()
				tr := replay(net, x, in.Actions)
				path := p.path(net, tr, net.Score(tr, gfn.Behaviour{}), false)
				forward, backward := p.variable(x[0].Graph(), "policy/forward"), p.variable(x[0].Graph(), "policy/backward")
				hvi := ReduceAllSum(Mul(in.Forward, gfn.HVI{}.Loss(path)))
				likelihood := ReduceAllSum(Mul(in.Backward, gfn.Likelihood{}.Loss(path)))
				return append(Gradient(hvi, forward, backward), Gradient(likelihood, forward)...)
			})
			gradients := func() [][]float64 {
				now := p.current()
				return numbers[[][]float64](run(len(paths), rng.Key(seed, "unused"), weighted[any, []float64]{
					actionTable(p.dag, paths), forwardWeights(paths, now), backwardWeights(p.dag, paths, now, p.logR),
				}))
			}
			for i, g := range gradients() {
				if d := size(g); !(d <= 1e-10) {
					t.Errorf("expected gradient %d at the optimum is %g", i, d)
				}
			}
			if d := math.Abs(p.dag.ELBO(p.exact(), p.logR) - logZ); !(d < 1e-12) {
				t.Errorf("ELBO is off by %g at the optimum", d)
			}
			if d := math.Abs(p.dag.EUBO(p.exact(), p.logR) - logZ); !(d < 1e-12) {
				t.Errorf("EUBO is off by %g at the optimum", d)
			}
			p.shift("policy/forward", seed, 0.3)
			now := p.current()
			for i, g := range gradients() {
				if i == 1 && c.env.BackActions() == 1 {
					continue // there is one way back only
				}
				if d := size(g); !(d > 1e-3) {
					t.Errorf("expected gradient %d beside the optimum is %g", i, d)
				}
			}
			if lo, hi := p.dag.ELBO(now, p.logR), p.dag.EUBO(now, p.logR); !(lo < logZ-1e-3 && hi > logZ+1e-3) {
				t.Errorf("ELBO %g, log Z %g, EUBO %g", lo, logZ, hi)
			}
		})
	}
}
