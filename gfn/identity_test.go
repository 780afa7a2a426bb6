package gfn_test

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
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestFullSpan checks that trajectory balance is sub-trajectory balance restricted to the whole trajectory, in value and
// gradient, for trajectories of every length, padded at the end or at the start.
func TestFullSpan(t *testing.T) {
	for _, c := range append(smallEnvs[:1:1], smallEnvs[3]) {
		t.Run(c.name, func(t *testing.T) {
			seed := testkit.Seed(t)
			p := newProblem(t, c.env, seed)
			p.randomise(seed)
			steps := c.env.Steps()
			run := p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node {
				g, net := x[0].Graph(), p.bareNet()
				up := net.Rollout(r, x, nil, uniform(g))
				down := net.Backtrack(r, x, up.Last(), nil, uniform(g))
				var out []*Node
				for i, tr := range []gfn.Trajectory{up, down} {
					path := p.path(net, tr, net.Score(tr, gfn.Behaviour{}), true)
					tb := gfn.TB{}.Loss(path)
					span := ZerosLike(tb)
					// A trajectory of n steps is the span 0..n, or T-n..T if it is padded at the start.
					for n := 1; n <= steps; n++ {
						table := make([][]float64, steps)
						for j := range table {
							table[j] = make([]float64, steps)
						}
						if i == 0 {
							table[0][n-1] = 1
						} else {
							table[steps-n][steps-1] = 1
						}
						here := Equal(tr.Length(), Scalar(g, dtypes.Int32, n))
						span = Where(here, gfn.SpanLoss(path, table), span)
					}
					vars := []*Node{p.variable(g, "policy/forward"), p.variable(g, "policy/backward"), p.variable(g, "policy/flow")}
					out = append(out, tb)
					out = append(out, Gradient(ReduceAllMean(tb), vars...)...)
					out = append(out, span)
					out = append(out, Gradient(ReduceAllMean(span), vars...)...)
				}
				return out
			})
			out := run(64, rng.Key(seed, "span"))
			for i := range 4 {
				for _, k := range []int{i, i + 8} {
					if d := farthest(out[k], out[k+4]); !(d < 1e-12) || size(out[k]) == 0 {
						t.Errorf("output %d: off by %g", k, d)
					}
				}
			}
		})
	}
}

// longer is an environment with room for more steps than it needs.
type longer struct {
	gfn.Env
	by int
}

func (e longer) Steps() int { return e.Env.Steps() + e.by }

// TestPadding checks that padding changes neither the value nor the gradient of any objective.
func TestPadding(t *testing.T) {
	seed := testkit.Seed(t)
	results := func(by int) [][]float64 {
		p := newProblem(t, longer{envs.Hypergrid{Side: 3, Dims: 2}, by}, seed)
		p.randomise(seed)
		return p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node {
			g, net := x[0].Graph(), p.net()
			other := r.Split() // since a longer rollout draws more
			up := net.Rollout(r, x, nil, uniform(g))
			down := net.Backtrack(other, x, up.Last(), nil, uniform(g))
			var vars, out []*Node
			for _, name := range policyVars {
				vars = append(vars, p.variable(g, name))
			}
			for _, tr := range []gfn.Trajectory{up, down} {
				for _, ahead := range []bool{false, true} {
					path := p.path(net, tr, net.Score(tr, gfn.Behaviour{}), ahead)
					for _, o := range objectives {
						loss := o.loss.Loss(path)
						out = append(append(out, loss), Gradient(ReduceAllMean(loss), vars...)...)
					}
				}
			}
			return out
		})(16, rng.Key(seed, "padding"))
	}
	short, long := results(0), results(4)
	for i := range short {
		if d := farthest(long[i], short[i]); !(d < 1e-12) {
			t.Errorf("%s, output %d: padding changes it by %g", objectives[i/5%len(objectives)].name, i, d)
		}
	}
}

// TestNoSteps checks trajectories whose initial state is terminal: nothing is left to learn but log Z, and no loss or
// gradient is lost to 0/0.
func TestNoSteps(t *testing.T) {
	seed := testkit.Seed(t)
	env := ragged{envs.Uniform(3, 2)}
	x := tensors.FromFlatDataAndDimensions([]int32{0, 0, 2, 3}, 4, 1)
	store := model.NewStore()
	exec := model.MustNewExec(backend(), store, func(root *model.Scope, x, key *Node) []*Node {
		g := x.Graph()
		net := gfn.Net{Env: env, Policy: plain{env}, Scope: root}
		tr := net.Rollout(rng.In(key), gfn.Batch{x}, nil, gfn.Behaviour{})
		logR := AddScalar(Zeros(g, x.Shape()), 1)
		path := net.Path(tr, net.Score(tr, gfn.Behaviour{}), Squeeze(ConvertDType(logR, dtypes.Float64), 1), nil)
		var out []*Node
		for _, o := range objectives {
			loss := o.loss.Loss(path)
			out = append(out, loss, Gradient(ReduceAllMean(loss), store.GetVariable("/w").NodeValue(g))[0])
		}
		return out
	})
	defer exec.Finalize()
	out, err := exec.Call(x, rng.Key(seed, "no steps"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		v := tensors.MustCopyFlatData[float64](out[i])
		if slices.ContainsFunc(v, func(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }) {
			t.Errorf("%s: %v", objectives[i/2].name, v)
		}
		name := objectives[i/2].name
		if i%2 == 0 && (name == "DB" || strings.HasPrefix(name, "SubTB")) && (v[0] != 0 || v[1] != 0 || v[2] == 0) {
			t.Errorf("%s of trajectories of 0, 0, 2 and 3 steps: %v", name, v)
		}
	}
}

// plain is a policy with one number for every logit, the flow included, in a scalar variable w = 1/2.
type plain struct{ env gfn.Env }

func (p plain) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	w := scope.VariableWithValue("w", 0.5).NodeValue(x[0])
	n := s[0].Shape().Dim(0)
	return gfn.Heads{Forward: BroadcastToDims(w, n, p.env.Actions()), Flow: BroadcastToDims(w, n)}
}

// ragged is a sequence of x tokens, at most as many as the sequence has; the rest is blocked.
type ragged struct{ envs.Sequence }

func (e ragged) Initial(x gfn.Batch) gfn.State {
	open := e.Sequence.Initial(x)[0]
	inside := LessThan(Iota(open.Graph(), open.Shape(), 1), BroadcastToShape(x[0], open.Shape()))
	return gfn.State{Where(inside, open, AddScalar(ZerosLike(open), -2))}
}

func (e ragged) Legal(s gfn.State) *Node {
	unset := ConvertDType(Equal(s[0], AddScalar(ZerosLike(s[0]), envs.Unset)), dtypes.Int32)
	more := GreaterThan(ReduceAndKeep(unset, ReduceSum, 1), Scalar(s[0].Graph(), dtypes.Int32, 0))
	legal := e.Sequence.Legal(s)
	return LogicalAnd(legal, BroadcastToShape(more, legal.Shape()))
}

// TestExpectedGradients sums over all trajectories (and all pairs of them, where rows share a baseline) and compares the
// expected gradients of on-policy objectives with those of the divergences, differentiated numerically on the host:
//
//   - TB, for fixed P_B and any log Z: 2 grad KL(P_F || P_B R/Z) (Malkin et al., 2023);
//   - VarGrad of K samples: (1 - 1/K) of that;
//   - HVI: grad KL, by P_F and by P_B;
//   - Likelihood of trajectories from P_B R/Z: the gradient of the forward KL.
func TestExpectedGradients(t *testing.T) {
	for _, env := range []gfn.Env{envs.Hypergrid{Side: 3, Dims: 2}, envs.Subset{Items: 4, Size: 2}} {
		seed := testkit.Seed(t)
		p := newProblem(t, env, seed)
		p.randomise(seed)
		now := p.current()
		one := allPaths(p.dag)
		w, v := forwardWeights(one, now), backwardWeights(p.dag, one, now, p.logR)
		var pairs [][]int
		var ww []float64
		for i := range one {
			for j := range one {
				pairs = append(pairs, one[i], one[j])
				ww = append(ww, w[i]*w[j]/2, w[i]*w[j]/2)
			}
		}
		gradients := func(paths [][]int, weights []float64, o gfn.Objective) [][]float64 {
			return weighedGradients(t, p, paths, weights, o)
		}
		reverse := func() float64 { return p.logF[0] - p.dag.ELBO(p.current(), p.logR) }
		forward := func() float64 { return p.dag.EUBO(p.current(), p.logR) - p.logF[0] }
		kl, klBack := p.differentiate("policy/forward", reverse), p.differentiate("policy/backward", reverse)
		forwardKL := p.differentiate("policy/forward", forward)
		if maxOf(kl) < 0.01 || maxOf(klBack) < 0.01 || maxOf(forwardKL) < 0.01 {
			t.Fatal("the divergences are flat")
		}
		for _, c := range []struct {
			name    string
			paths   [][]int
			weights []float64
			loss    gfn.Objective
			factor  float64
			want    []float64
			by      int
		}{
			{"TB", one, w, gfn.TB{}, 2, kl, 0},
			{"VarGrad", pairs, ww, gfn.VarGrad{Samples: 2}, 1, kl, 0}, // (1 - 1/2) 2
			{"HVI", pairs, ww, gfn.HVI{Samples: 2}, 1, kl, 0},
			{"HVI by P_B", pairs, ww, gfn.HVI{Samples: 2}, 1, klBack, 1},
			{"HVI alone", one, w, gfn.HVI{Samples: 1}, 1, kl, 0},
			{"HVI alone by P_B", one, w, gfn.HVI{Samples: 1}, 1, klBack, 1},
			{"Likelihood", one, v, gfn.Likelihood{}, 1, forwardKL, 0},
		} {
			want := slices.Clone(c.want)
			for i := range want {
				want[i] *= c.factor
			}
			if d := farthest(gradients(c.paths, c.weights, c.loss)[c.by], want); !(d < 1e-7) {
				t.Errorf("%T, %s: expected gradient is off by %g", env, c.name, d)
			}
		}
		// Any constant log Z does.
		p.set("policy/logz", []float64{-7})
		for i := range kl {
			kl[i] *= 2
		}
		if d := farthest(gradients(one, w, gfn.TB{})[0], kl); !(d < 1e-7) {
			t.Errorf("%T, TB with another log Z: expected gradient is off by %g", env, d)
		}
	}
}

// differentiate returns the gradient of f by a variable, by central differences.
func (p *problem) differentiate(name string, f func() float64) []float64 {
	const h = 1e-5
	x := p.get(name)
	out := make([]float64, len(x))
	for i := range x {
		y := slices.Clone(x)
		y[i] = x[i] + h
		p.set(name, y)
		up := f()
		y[i] = x[i] - h
		p.set(name, y)
		out[i] = (up - f()) / (2 * h)
	}
	p.set(name, x)
	return out
}

// TestMistakes checks that a program that cannot work says why, when it is called, and that it can be finalised.
func TestMistakes(t *testing.T) {
	env := envs.Uniform(2, 2)
	for _, c := range []struct {
		name, want string
		build      func(net gfn.Net, tr gfn.Trajectory, r *rng.Stream) *Node
	}{
		{"no flow", "flow head", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			return gfn.DB{}.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil))
		}},
		{"no log Z", "log Z", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			return gfn.TB{}.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil))
		}},
		{"one sample", "two or more", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			return gfn.VarGrad{Samples: 1}.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil))
		}},
		{"groups of three", "groups of 3", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			return gfn.HVI{Samples: 3}.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil))
		}},
		{"RWS of one sample", "RWS needs two or more", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			return gfn.RWS{Samples: 1}.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil))
		}},
		{"VIMCO of one sample", "VIMCO needs two or more", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			return gfn.VIMCO{Samples: 1}.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil))
		}},
		{"RWS of what is not used", "RWS is for on-policy", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			p := net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil)
			p.Used = tr.Valid[0]
			return gfn.RWS{}.Loss(p)
		}},
		{"not all used", "all Used", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			p := net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil)
			p.Used = tr.Valid[0]
			return gfn.HVI{}.Loss(p)
		}},
		{"joined", "4 trajectories do not belong to 3 observations", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			p := net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil)
			return gfn.Beside(3, p, p).LogPF
		}},
		{"joined with others", "some have a Flow, and some have none", func(net gfn.Net, tr gfn.Trajectory, _ *rng.Stream) *Node {
			p := net.Path(tr, net.Score(tr, gfn.Behaviour{}), ones(tr), nil)
			q := p
			q.Flow = p.LogPF
			return gfn.Beside(2, p, q).LogPF
		}},
		{"sampled backward", "use Score", func(net gfn.Net, tr gfn.Trajectory, r *rng.Stream) *Node {
			return net.ScoreSampled(net.Backtrack(r, tr.X, tr.Last(), nil, gfn.Behaviour{}), gfn.Behaviour{}).LogPF
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			exec := model.MustNewExec(backend(), model.NewStore(), func(root *model.Scope, x, key *Node) *Node {
				net := gfn.Net{Env: env, Policy: headless{env}, Scope: root}
				r := rng.In(key)
				return c.build(net, net.Rollout(r, gfn.Batch{x}, nil, gfn.Behaviour{}), r)
			})
			_, err := exec.Call(blank(4), rng.Key(1, "mistakes"))
			exec.Finalize()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not say %q", err, c.want)
			}
		})
	}
}

func ones(tr gfn.Trajectory) *Node { return OnesLike(ConvertDType(tr.Action[0], dtypes.Float64)) }

// headless is a uniform policy without a flow.
type headless struct{ env gfn.Env }

func (p headless) Heads(_ *model.Scope, x gfn.Batch, s gfn.State, _ int) gfn.Heads {
	return gfn.Heads{Forward: BroadcastToDims(Scalar(x[0].Graph(), dtypes.Float64, 0), s[0].Shape().Dim(0), p.env.Actions())}
}
