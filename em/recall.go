package em

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/rng"
)

// The scopes of what is kept.
const (
	replayScope = Kept + "/replay"
	memoryScope = Kept + "/memory"
	chainScope  = Kept + "/chains"
)

// kept is a variable of rows like those of a tensor, with other first axes; zero at first.
func (g *graphs) kept(at, name string, like *Node, dims ...int) *model.Variable {
	shape := shapes.Make(like.DType(), append(slices.Clone(dims), like.Shape().Dimensions[1:]...)...)
	scope := g.store.Scope(at)
	v := scope.GetVariable(name)
	if v == nil {
		memory.Must("what steps keep", append([]int{2 * shape.DType.Size()}, shape.Dimensions...)...) // one is a copy
		v = scope.VariableWithValue(name, tensors.FromShape(shape))
	} else if !v.Shape().Equal(shape) {
		blame.Panicf("em: %s/%s is %s, and of this batch %s: with Wake.Replay, Wake.Memory or MStep.Persist all batches have "+
			"rows of one shape", at, name, v.Shape(), shape)
	}
	return v.SetTrainable(false)
}

// recall draws ways to latents z of observations x, of which the policy sees u. What is not used fills the batch. A
// latent that has become impossible is not used either.
func (g *graphs) recall(r *rng.Stream, x, u gfn.Batch, z gfn.State, used *Node, w *wakes) (gfn.Path, gfn.State) {
	net := g.net()
	tr := net.Backtrack(r, u, z, nil, gfn.Behaviour{})
	logR := StopGradient(g.reward(x, z))
	used = LogicalAnd(used, LogicalNot(impossible(logR)))
	logR = Where(used, logR, ZerosLike(logR))
	w.scored = append(w.scored, logR)
	p := net.Path(tr, net.Score(tr, gfn.Behaviour{}), logR, g.partials(tr, x))
	p.Used = used
	return p, tr.States[0]
}

// picked takes rows of given numbers, [n] int32.
func picked(t, numbers *Node) *Node { return Gather(t, InsertAxes(numbers, -1)) }
