package gfn_test

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestBuilt checks that sampled trajectories are built by legal actions, and that those which are not are found: states
// that the actions do not lead to, actions that are illegal, actions that do not exist.
func TestBuilt(t *testing.T) {
	const rows = 12
	seed := testkit.Seed(t)
	for _, env := range []gfn.Env{envs.Sequence{Sizes: []int{3, 2}}, envs.Set{Items: 4, Most: 2}, envs.Hypergrid{Side: 2, Dims: 2}} {
		p := newProblem(t, env, seed)
		p.randomise(seed)
		out := p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node {
			net := p.net()
			forward := net.Rollout(r, x, nil, gfn.Behaviour{})
			backward := net.Backtrack(r, x, forward.Last(), nil, gfn.Behaviour{})
			// In odd rows, and in every trajectory the first step is a real one.
			number := Iota(x[0].Graph(), forward.Action[0].Shape(), 0)
			odd := Mod(number, OnePlus(OnesLike(number)))
			act := func(change func(a *Node) *Node) gfn.Trajectory {
				tr := forward
				first := tr.Action[0]
				tr.Action = append([]*Node{Where(IsZero(odd), first, change(first))}, tr.Action[1:]...)
				return tr
			}
			elsewhere := forward
			elsewhere.States = append([]gfn.State{forward.States[0], {}}, forward.States[2:]...)
			for _, s := range forward.States[1] {
				elsewhere.States[1] = append(elsewhere.States[1], Where(IsZero(odd), s, AddScalar(s, 1)))
			}
			missing := act(func(a *Node) *Node { return AddScalar(ZerosLike(a), env.Actions()) })
			other := act(func(a *Node) *Node { return Where(IsZero(a), OnesLike(a), ZerosLike(a)) })
			large := forward.Last() // looks finished, and cannot be assembled
			large = append(gfn.State{Where(IsZero(odd), large[0], AddScalar(ZerosLike(large[0]), 2))}, large[1:]...)
			if _, ok := env.(envs.Set); ok {
				large[0] = MinScalar(large[0], 1)
			}
			unbuilt := net.Backtrack(r, x, large, nil, gfn.Behaviour{})
			var all []*Node
			for _, tr := range []gfn.Trajectory{forward, backward, elsewhere, missing, other, unbuilt} {
				all = append(all, net.Built(tr))
			}
			return all
		})(rows, rng.Key(seed, "built"))
		for i, built := range out {
			for row, ok := range built {
				if want := i < 2 || row%2 == 0; (ok == 1) != want {
					t.Errorf("%T, trajectories %d, row %d: built by legal actions: %g", env, i, row, ok)
				}
			}
		}
	}
}
