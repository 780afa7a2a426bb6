package gfn_test

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestSampledIsConstant differentiates losses on trajectories through an environment whose operations have no gradient,
// with a policy that reads states as numbers, several losses on one path: states must be constants to the gradient.
func TestSampledIsConstant(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, opaque{envs.Subset{Items: 4, Size: 2}}, seed)
	p.randomise(seed)
	run := p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node {
		net := p.net()
		net.Policy = dense{p.table}
		up := net.Rollout(r, x, nil, gfn.Behaviour{})
		down := net.Backtrack(r, x, up.Last(), nil, gfn.Behaviour{})
		loss := Scalar(x[0].Graph(), p.table.DType, 0)
		for _, s := range []struct {
			tr gfn.Trajectory
			gfn.Scores
		}{
			{up, net.Score(up, gfn.Behaviour{})}, {up, net.ScoreSampled(up, gfn.Behaviour{})}, {down, net.Score(down, gfn.Behaviour{})},
		} {
			path := p.path(net, s.tr, s.Scores, true)
			for _, o := range objectives {
				loss = Add(loss, ReduceAllMean(o.loss.Loss(path)))
			}
		}
		return Gradient(loss, p.variable(x[0].Graph(), "policy/forward"))
	})
	if g := run(8, rng.Key(seed, "constant"))[0]; size(g) == 0 {
		t.Error("no gradient")
	}
}

// dense is a table that reads the numbers of a state, too.
type dense struct{ gfn.Tabular }

func (p dense) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	h := p.Tabular.Heads(scope, x, s, k)
	h.Forward = Mul(h.Forward, OnePlus(ConvertDType(s[0], h.Forward.DType())))
	return h
}

// opaque moves by operations that cannot be differentiated.
type opaque struct{ gfn.Env }

func (e opaque) blur(s gfn.State) gfn.State { return gfn.State{Reverse(Reverse(s[0], 1), 1)} }

func (e opaque) Step(s gfn.State, a *Node) gfn.State { return e.blur(e.Env.Step(s, a)) }
func (e opaque) Undo(s gfn.State, b *Node) gfn.State { return e.blur(e.Env.Undo(s, b)) }
