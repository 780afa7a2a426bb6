package envs

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
)

// Set assembles a subset of any size of Items elements, one element at a time in any order, until it stops: k! trajectories
// lead to a set of k elements.
//
// A state is two tensors: the set, [B,Items] int32 of zeros and ones, and whether it is complete, [B] int32, 0 or 1. Action
// i < Items adds element i, action Items stops; backward actions have the same numbers.
type Set struct {
	Items int
	// Most is the largest number of elements of a set; 0 means Items.
	Most int
}

var (
	_ gfn.Env     = Set{}
	_ gfn.Product = Set{}
)

// set is a state.
type set struct{ In, Stopped *Node }

func setOf(s gfn.State) set { return program.Of[set](s) }

func (s set) state() gfn.State { return program.Nodes(s) }

// open marks the sets to which no stop has come, [B,1].
func (s set) open() *Node { return InsertAxes(IsZero(s.Stopped), 1) }

func (e Set) most() int {
	if e.Most == 0 {
		return e.Items
	}
	return e.Most
}

// Steps implements gfn.Env.
func (e Set) Steps() int { return e.most() + 1 }

// Actions implements gfn.Env.
func (e Set) Actions() int { return e.Items + 1 }

// BackActions implements gfn.Env.
func (e Set) BackActions() int { return e.Items + 1 }

// Initial implements gfn.Env: the empty set.
func (e Set) Initial(x gfn.Batch) gfn.State {
	if e.Items < 1 || e.Most < 0 || e.Most > e.Items {
		blame.Panicf("envs: a Set of at most %d out of %d elements", e.Most, e.Items)
	}
	g, b := x[0].Graph(), x.Size()
	return set{Zeros(g, shapes.Make(index, b, e.Items)), Zeros(g, shapes.Make(index, b))}.state()
}

// Legal implements gfn.Env.
func (e Set) Legal(state gfn.State) *Node {
	s := setOf(state)
	count := ReduceAndKeep(s.In, ReduceSum, 1)
	room := LogicalAnd(s.open(), LessThan(count, AddScalar(ZerosLike(count), e.most())))
	out := IsZero(s.In)
	return Concatenate([]*Node{LogicalAnd(out, BroadcastToShape(room, out.Shape())), s.open()}, 1)
}

// Step implements gfn.Env.
func (e Set) Step(s gfn.State, a *Node) gfn.State { return e.put(setOf(s), a, 1) }

// LegalBack implements gfn.Env.
func (e Set) LegalBack(state gfn.State) *Node {
	s := setOf(state)
	in := GreaterThan(s.In, ZerosLike(s.In))
	return Concatenate([]*Node{LogicalAnd(in, BroadcastToShape(s.open(), in.Shape())), LogicalNot(s.open())}, 1)
}

// Undo implements gfn.Env.
func (e Set) Undo(s gfn.State, b *Node) gfn.State { return e.put(setOf(s), b, 0) }

// put sets what an action is about to 0 or 1.
func (e Set) put(s set, a *Node, value int) gfn.State {
	v := AddScalar(ZerosLike(a), value)
	stop := Equal(a, AddScalar(ZerosLike(a), e.Items))
	return set{write(s.In, a, v), Where(stop, v, s.Stopped)}.state()
}

// Back implements gfn.Env.
func (e Set) Back(s gfn.State, a *Node) *Node { return a }

// Redo implements gfn.Env.
func (e Set) Redo(s gfn.State, b *Node) *Node { return b }

// Of returns objects: in is 1, or true, at the elements of a set, [B,Items]. It is for Sample of a model: no gradient flows
// back from objects.
func (e Set) Of(in *Node) gfn.State {
	in = constant(in)
	return set{in, Ones(in.Graph(), shapes.Make(index, in.Shape().Dim(0)))}.state()
}

// Choices implements gfn.Product: each element is in or out, unless sets have an upper bound.
func (e Set) Choices() []int {
	if e.most() < e.Items {
		return nil
	}
	return slices.Repeat([]int{2}, e.Items)
}

// Open implements gfn.Product.
func (e Set) Open(initial gfn.State) *Node { return IsZero(setOf(initial).In) }

// Choose implements gfn.Product.
func (e Set) Choose(_ gfn.State, values *Node) gfn.State { return e.Of(values) }
