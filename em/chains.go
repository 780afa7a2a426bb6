package em

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// goOn returns the latents at which the chains of observations with given numbers have arrived, or the fresh ones where
// there is no chain yet, and how many of them are of other observations.
func (g *graphs) goOn(r *rng.Stream, fresh learnt, numbers *Node) (z gfn.State, displaced *Node) {
	spec, graph, c := g.MStep.Persist, numbers.Graph(), g.each()
	b := fresh.x.Size() / c
	checkNumbered(persistField, b, numbers, spec.Rows == nil)
	begun := picked(g.kept(chainScope, "begun", numbers, spec.Data).NodeValue(graph), numbers) // [B]
	going := Reshape(along(LogicalNot(IsZero(begun)), 1, c), b*c)
	z = make(gfn.State, len(fresh.z))
	for i, t := range fresh.z {
		table := picked(g.kept(chainScope, slotName(i), t, spec.Data, c).NodeValue(graph), numbers) // [B,C,...]
		z[i] = Where(going, Reshape(table, t.Shape().Dimensions...), t)
	}
	start := gfn.Net{Env: g.Env, Policy: blind{g.Env}}.Backtrack(r, fresh.x, z, nil, gfn.Behaviour{}).States[0]
	return z, unlike(LogicalOr(LogicalNot(going), gfn.Same(start, gfn.Initial(g.Env, fresh.x))))
}

// persist keeps the latents of observations with given numbers.
func (g *graphs) persist(z gfn.State, numbers *Node) (keep []optim.Assignment) {
	spec, b, c := g.MStep.Persist, numbers.Shape().Dim(0), g.each()
	for i, t := range z {
		table := g.kept(chainScope, slotName(i), t, spec.Data, c)
		value := Reshape(t, append([]int{b, c}, t.Shape().Dimensions[1:]...)...)
		keep = append(keep, optim.Assignment{Variable: table, Value: value, Rows: numbers})
	}
	begun := g.kept(chainScope, "begun", numbers, spec.Data)
	return append(keep, optim.Assignment{Variable: begun, Value: OnesLike(numbers), Rows: numbers})
}

// blind takes any legal action, looking at nothing.
type blind struct{ gfn.Env }

// Heads implements gfn.Policy.
func (p blind) Heads(_ *model.Scope, _ gfn.Batch, s gfn.State, _ int) gfn.Heads {
	n := gfn.Batch(s).Size()
	return gfn.Heads{Forward: Zeros(s[0].Graph(), shapes.Make(dtypes.Float32, n, p.Actions()))}
}
