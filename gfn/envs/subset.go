package envs

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
)

// Subset assembles a set of Size out of Items elements, one element at a time in any order: Size! trajectories lead to each
// object, so the backward policy matters.
//
// A state is one tensor, [B,Items] int32 of zeros and ones.
type Subset struct{ Items, Size int }

var _ gfn.Env = Subset{}

// Steps implements gfn.Env.
func (e Subset) Steps() int { return e.Size }

// Actions implements gfn.Env: an action adds an element.
func (e Subset) Actions() int { return e.Items }

// BackActions implements gfn.Env: a backward action removes an element.
func (e Subset) BackActions() int { return e.Items }

// Initial implements gfn.Env.
func (e Subset) Initial(x gfn.Batch) gfn.State {
	if e.Size < 1 || e.Size > e.Items {
		blame.Panicf("envs: a Subset of %d out of %d elements", e.Size, e.Items)
	}
	return gfn.State{Zeros(x[0].Graph(), shapes.Make(index, x.Size(), e.Items))}
}

// Legal implements gfn.Env.
func (e Subset) Legal(s gfn.State) *Node {
	count := BroadcastToShape(ReduceAndKeep(s[0], ReduceSum, 1), s[0].Shape())
	return LogicalAnd(IsZero(s[0]), LessThan(count, AddScalar(ZerosLike(count), e.Size)))
}

// Step implements gfn.Env.
func (e Subset) Step(s gfn.State, a *Node) gfn.State { return e.set(s, a, 1) }

// LegalBack implements gfn.Env.
func (e Subset) LegalBack(s gfn.State) *Node { return GreaterThan(s[0], ZerosLike(s[0])) }

// Undo implements gfn.Env.
func (e Subset) Undo(s gfn.State, b *Node) gfn.State { return e.set(s, b, 0) }

func (e Subset) set(s gfn.State, item *Node, value int) gfn.State {
	return gfn.State{Where(at(s[0], item), AddScalar(ZerosLike(s[0]), value), s[0])}
}

// Back implements gfn.Env.
func (e Subset) Back(s gfn.State, a *Node) *Node { return a }

// Redo implements gfn.Env.
func (e Subset) Redo(s gfn.State, b *Node) *Node { return b }
