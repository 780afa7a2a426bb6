package gfn_test

import (
	"fmt"
	"math"
	"slices"
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

// objectives are all of them, with their options.
var objectives = []struct {
	name string
	loss gfn.Objective
}{
	{"TB", gfn.TB{}},
	{"DB", gfn.DB{}},
	{"SubTB", gfn.SubTB{}},
	{"SubTB 0.9", gfn.SubTB{Lambda: 0.9}},
	{"VarGrad", gfn.VarGrad{}},
	{"VarGrad of 4", gfn.VarGrad{Samples: 4}},
	{"HVI", gfn.HVI{}},
	{"HVI of 4", gfn.HVI{Samples: 4}},
	{"HVI alone", gfn.HVI{Samples: 1}},
	{"RWS", gfn.RWS{}},
	{"RWS of 4", gfn.RWS{Samples: 4}},
	{"VIMCO", gfn.VIMCO{}},
	{"VIMCO of 4", gfn.VIMCO{Samples: 4}},
	{"Likelihood", gfn.Likelihood{}},
}

// tableVars are all variables that a loss could depend on: those of the policy, and those that make the rewards.
var tableVars = append(slices.Clone(policyVars), "reward/flow", "partial/flow")

// scorings are the two ways to score trajectories.
var scorings = []struct {
	name  string
	score func(gfn.Net, gfn.Trajectory) gfn.Scores
}{
	{"Score", func(n gfn.Net, tr gfn.Trajectory) gfn.Scores { return n.Score(tr, gfn.Behaviour{}) }},
	{"ScoreSampled", func(n gfn.Net, tr gfn.Trajectory) gfn.Scores { return n.ScoreSampled(tr, gfn.Behaviour{}) }},
}

// TestGradients compares the gradient of every objective with central differences, on trajectories that do not move and
// of which many are padded in a grid. Rewards are constants, although they are made of variables: their gradient is exactly 0.
func TestGradients(t *testing.T) {
	t.Run("grid", func(t *testing.T) { testGradients(t, envs.Hypergrid{Side: 3, Dims: 2}, true) })
	t.Run("subset", func(t *testing.T) { testGradients(t, envs.Subset{Items: 4, Size: 2}, false) })
}

func testGradients(t *testing.T, env gfn.Env, padded bool) {
	seed := testkit.Seed(t)
	const rows = 16
	p := newProblem(t, env, seed)
	p.randomise(seed)
	key := rng.Key(seed, "gradients")

	// What is scored: every scoring, with whole and with forward-looking flows, of every objective.
	type scored struct {
		name string
		path gfn.Path
		loss gfn.Objective
	}
	build := func(x gfn.Batch, r *rng.Stream) (tr gfn.Trajectory, all []scored) {
		net := p.net()
		tr = net.Rollout(r, x, nil, uniform(x[0].Graph()))
		for _, way := range scorings {
			s := way.score(net, tr)
			for _, ahead := range []bool{false, true} {
				path := p.path(net, tr, s, ahead)
				for _, o := range objectives {
					all = append(all, scored{fmt.Sprintf("%s, %s, forward-looking %t", o.name, way.name, ahead), path, o.loss})
				}
			}
		}
		return tr, all
	}

	var names []string
	res := numbers[valued[[]float64]](compile[valued[*tensors.Tensor], none](t, p, func(
		x gfn.Batch, r *rng.Stream, _ none,
	) valued[*Node] {
		tr, all := build(x, r)
		out := valued[*Node]{By: record(tr)}
		vars := make([]*Node, len(tableVars))
		for i, name := range tableVars {
			vars[i] = p.variable(x[0].Graph(), name)
		}
		for _, s := range all {
			names = append(names, s.name)
			out.Values = append(out.Values, Gradient(ReduceAllMean(s.loss.Loss(s.path)), vars...)...)
		}
		return out
	})(rows, key, none{}))
	gradients := res.Values
	if m := mean(res.By.Valid); padded && (m > 0.9 || m < 0.2) || !padded && m != 1 {
		t.Fatalf("%g of the steps are valid", m)
	}

	// Losses per row. What some objectives multiply is a constant: their surrogate is put together here from the sums of
	// log P_F and log P_B, with the factors of the undisturbed policy.
	values := p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node {
		_, all := build(x, r)
		var out []*Node
		for _, s := range all {
			out = append(out, s.loss.Loss(s.path))
		}
		path := all[0].path
		return append(out, ReduceSum(path.LogPF, 1), ReduceSum(path.LogPB, 1), path.LogR)
	})
	base := values(rows, key)
	at := func() []float64 {
		out := values(rows, key)
		losses := make([]float64, len(names))
		for i := range names {
			losses[i] = mean(out[i])
			if f := surrogateOf(objectives[i%len(objectives)].loss); f != nil {
				losses[i] = mean(f(signals(base[len(names):]), signals(out[len(names):])))
			}
		}
		return losses
	}
	const h = 1e-5
	for v, name := range tableVars {
		x := p.get(name)
		numeric := make([][]float64, len(names))
		for j := range x {
			y := slices.Clone(x)
			y[j] = x[j] + h
			p.set(name, y)
			up := at()
			y[j] = x[j] - h
			p.set(name, y)
			down := at()
			for i := range names {
				numeric[i] = append(numeric[i], (up[i]-down[i])/(2*h))
			}
		}
		p.set(name, x)
		for i := range names {
			got := gradients[i*len(tableVars)+v]
			if v >= len(policyVars) {
				if slices.ContainsFunc(got, func(g float64) bool { return g != 0 }) {
					t.Errorf("%s: gradient by %s is %v, not 0", names[i], name, got)
				}
				continue
			}
			if d := farthest(got, numeric[i]); !(d <= 1e-6) {
				t.Errorf("%s: gradient by %s is off by %g", names[i], name, d)
			}
		}
	}

	// The two scorings agree, in value and gradient.
	half := len(names) / 2
	for i := range half {
		if d := farthest(base[i], base[i+half]); !(d < 1e-13) {
			t.Errorf("%s and %s differ by %g", names[i], names[i+half], d)
		}
		for v := range tableVars {
			if d := farthest(gradients[i*len(tableVars)+v], gradients[(i+half)*len(tableVars)+v]); !(d < 1e-12) {
				t.Errorf("%s and %s: gradients by %s differ by %g", names[i], names[i+half], tableVars[v], d)
			}
		}
	}
}

// TestLeaks checks that the test of constant rewards above could fail: an objective that forgets to hold the reward fixed
// has a gradient there.
func TestLeaks(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 3, Dims: 2}, seed)
	p.randomise(seed)
	slope := compile[*tensors.Tensor, none](t, p, func(x gfn.Batch, r *rng.Stream, _ none) *Node {
		net := p.net()
		tr := net.Rollout(r, x, nil, gfn.Behaviour{})
		path := p.path(net, tr, net.Score(tr, gfn.Behaviour{}), false)
		leak := Square(Sub(Add(path.LogZ, ReduceSum(Sub(path.LogPF, path.LogPB), 1)), path.LogR))
		return Gradient(ReduceAllMean(leak), p.variable(x[0].Graph(), "reward/flow"))[0]
	})(16, rng.Key(seed, "leaks"), none{})
	if d := size(floats(slope)); d == 0 {
		t.Error("no gradient where there should be one")
	}
}

// scoredTwice is trajectories with scores in one pass, and with those while they were drawn.
type scoredTwice[T any] struct {
	By             taken[T]
	Once, Stepwise tableScores[T]
}

type tableScores[T any] struct{ LogPF, LogPB, Flow T }

// TestObservations scores with a policy that reads x, so that a row of x that meets the wrong states shows: Score, in one
// pass over all steps, must agree with ScoreSampled, which evaluated them one by one, and with the exact table.
func TestObservations(t *testing.T) {
	for _, c := range []struct {
		name  string
		env   gfn.Env
		learn bool
	}{
		{"grid", envs.Hypergrid{Side: 3, Dims: 2}, false},
		{"grid with a learned P_B", envs.Hypergrid{Side: 3, Dims: 2}, true},
		{"subset", envs.Subset{Items: 4, Size: 2}, false},
		{"subset with a learned P_B", envs.Subset{Items: 4, Size: 2}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := testkit.Seed(t)
			const rows = 12
			p := newProblem(t, c.env, seed)
			p.randomise(seed)
			p.table.LearnBackward = c.learn
			policy := tilted{p.table}
			x := make([]float32, rows)
			for i := range x {
				x[i] = float32(i)/4 - 1
			}
			run := compile[scoredTwice[*tensors.Tensor], *tensors.Tensor](t, p, func(
				_ gfn.Batch, r *rng.Stream, x *Node,
			) scoredTwice[*Node] {
				net := gfn.Net{Env: p.env, Policy: policy, Scope: p.store.Scope("policy")}
				tr := net.Rollout(r, gfn.Batch{x}, nil, gfn.Behaviour{})
				a, b := net.Score(tr, gfn.Behaviour{}), net.ScoreSampled(tr, gfn.Behaviour{})
				return scoredTwice[*Node]{
					record(tr), tableScores[*Node]{a.LogPF, a.LogPB, a.Flow}, tableScores[*Node]{b.LogPF, b.LogPB, b.Flow},
				}
			})
			column := tensors.FromFlatDataAndDimensions(x, rows, 1)
			out := numbers[scoredTwice[[]float64]](run(rows, rng.Key(seed, "observations"), column))
			once, stepwise := out.Once, out.Stepwise
			for name, d := range map[string]float64{
				"log P_F": farthest(once.LogPF, stepwise.LogPF),
				"log P_B": farthest(once.LogPB, stepwise.LogPB),
				"flow":    farthest(once.Flow, stepwise.Flow),
			} {
				if !(d < 1e-13) {
					t.Errorf("Score and ScoreSampled differ by %g in %s", d, name)
				}
			}
			tables, err := p.dag.Tabulate(backend(), p.store, "policy", policy, []*tensors.Tensor{column})
			if err != nil {
				t.Fatal(err)
			}
			steps := p.env.Steps()
			for b, path := range follow(p.dag, out.By) {
				pf, pb := make([]float64, steps), make([]float64, steps)
				for i, e := range path {
					pf[i], pb[i] = tables[b].LogPF[e], tables[b].LogPB[e]
					if d := math.Abs(once.Flow[b*steps+i] - tables[b].Flow[p.dag.Edges[e].From]); !(d < 1e-12) {
						t.Errorf("row %d, step %d: flow is off by %g", b, i, d)
					}
				}
				if d := farthest(once.LogPF[b*steps:(b+1)*steps], pf); !(d < 1e-12) {
					t.Errorf("row %d: log P_F is off by %g from the table", b, d)
				}
				if d := farthest(once.LogPB[b*steps:(b+1)*steps], pb); !(d < 1e-12) {
					t.Errorf("row %d: log P_B is off by %g from the table", b, d)
				}
			}
			// The observations do matter.
			if tables[0].LogPF[0] == tables[1].LogPF[0] {
				t.Error("the policy does not read x")
			}
		})
	}
}

// tilted is a table whose logits are multiplied by 1 + x, and whose flow is shifted by x.
type tilted struct{ gfn.Tabular }

func (p tilted) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	h := p.Tabular.Heads(scope, x, s, k)
	by := ConvertDType(x.Repeat(k)[0], dtypes.Float64) // [B*k,1]
	tilt := func(logits *Node) *Node { return Mul(logits, BroadcastToShape(OnePlus(by), logits.Shape())) }
	h.Forward = tilt(h.Forward)
	if h.Backward != nil {
		h.Backward = tilt(h.Backward)
	}
	h.Flow = Add(h.Flow, Squeeze(by, 1))
	return h
}
