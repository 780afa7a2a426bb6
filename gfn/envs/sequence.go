// Package envs holds environments that many problems share.
package envs

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
)

const index = dtypes.Int32

// Sequence assembles a sequence of tokens one after the other, so that every object has exactly one trajectory. Its length
// is fixed, and position t takes one of Sizes[t] values.
//
// A state is one tensor, [B,T] int32, with Unset where no token has been chosen yet.
type Sequence struct {
	Sizes []int
	// Order is that in which positions get their tokens, each position once; nil means from left to right.
	Order []int
}

// Unset marks a position without a token.
const Unset = -1

var (
	_ gfn.Env     = Sequence{}
	_ gfn.Product = Sequence{}
)

// Uniform returns a sequence of length positions with size values each.
func Uniform(length, size int) Sequence {
	return Sequence{Sizes: slices.Repeat([]int{size}, length)}
}

// Steps implements gfn.Env.
func (e Sequence) Steps() int { return len(e.Sizes) }

// Actions implements gfn.Env.
func (e Sequence) Actions() int { return slices.Max(e.Sizes) }

// BackActions implements gfn.Env: the only way back is to drop the last token.
func (e Sequence) BackActions() int { return 1 }

// Initial implements gfn.Env.
func (e Sequence) Initial(x gfn.Batch) gfn.State {
	if len(e.Sizes) == 0 || slices.Min(e.Sizes) < 1 {
		blame.Panicf("envs: the sizes %v of a Sequence are not all 1 or more", e.Sizes)
	}
	sorted := slices.Clone(e.Order)
	slices.Sort(sorted)
	for i, at := range sorted {
		if at != i || len(sorted) != len(e.Sizes) {
			blame.Panicf("envs: the order %v of a Sequence has not each of its %d positions once", e.Order, len(e.Sizes))
		}
	}
	return gfn.State{unset(x[0].Graph(), x.Size(), len(e.Sizes))}
}

// place is the position of token number t, [B]; of numbers that no token has, none.
func (e Sequence) place(t *Node) *Node {
	if e.Order == nil {
		return t
	}
	const none = -2
	table := []int32{none}
	for _, at := range e.Order {
		table = append(table, int32(at))
	}
	return Gather(Const(t.Graph(), append(table, none)), InsertAxes(OnePlus(t), 1))
}

// length returns the number of tokens chosen, [B].
func (e Sequence) length(s gfn.State) *Node { return chosen(s[0]) }

// chosen counts the entries of every row that are set, [B].
func chosen(tokens *Node) *Node {
	return ReduceSum(ConvertDType(GreaterOrEqual(tokens, ZerosLike(tokens)), index), 1)
}

// unset is [b,n] without any entry that is set.
func unset(g *Graph, b, n int) *Node { return AddScalar(Zeros(g, shapes.Make(index, b, n)), Unset) }

// constant makes indices of what was drawn. Gradients of bools, which cannot be added up, are kept out.
func constant(x *Node) *Node { return StopGradient(ConvertDType(StopGradient(x), index)) }

// write puts a value, [B], at a position of every row; nowhere if there is no such position.
func write(tokens, pos, value *Node) *Node {
	return Where(at(tokens, pos), BroadcastToShape(InsertAxes(value, 1), tokens.Shape()), tokens)
}

// at marks position pos of every row, [B,T] bool.
func at(tokens, pos *Node) *Node {
	return Equal(Iota(tokens.Graph(), tokens.Shape(), 1), BroadcastToShape(InsertAxes(pos, 1), tokens.Shape()))
}

// Legal implements gfn.Env.
func (e Sequence) Legal(s gfn.State) *Node {
	g, b := s[0].Graph(), s[0].Shape().Dim(0)
	if slices.Min(e.Sizes) == e.Actions() { // all the same: every value, as long as the last token is not chosen
		end := len(e.Sizes) - 1
		if e.Order != nil {
			end = e.Order[end]
		}
		last := SliceAxis(s[0], 1, AxisElem(end)) // [B,1]
		return BroadcastToDims(LessThan(last, ZerosLike(last)), b, e.Actions())
	}
	room := make([]int32, len(e.Sizes)) // how many values the next token can take
	for t, n := range e.Sizes {
		room[t] = int32(n)
	}
	sizes := BroadcastToShape(InsertAxes(Const(g, room), 0), s[0].Shape())
	next := Where(at(s[0], e.place(e.length(s))), sizes, ZerosLike(sizes))
	shape := shapes.Make(index, b, e.Actions())
	return LessThan(Iota(g, shape, 1), BroadcastToShape(ReduceAndKeep(next, ReduceSum, 1), shape))
}

// Step implements gfn.Env.
func (e Sequence) Step(s gfn.State, a *Node) gfn.State {
	return gfn.State{write(s[0], e.place(e.length(s)), a)}
}

// LegalBack implements gfn.Env.
func (e Sequence) LegalBack(s gfn.State) *Node {
	n := e.length(s)
	return InsertAxes(GreaterThan(n, ZerosLike(n)), 1)
}

// Undo implements gfn.Env.
func (e Sequence) Undo(s gfn.State, b *Node) gfn.State {
	return gfn.State{Where(at(s[0], e.place(MinusOne(e.length(s)))), AddScalar(ZerosLike(s[0]), Unset), s[0])}
}

// Back implements gfn.Env.
func (e Sequence) Back(s gfn.State, a *Node) *Node { return ZerosLike(a) }

// Redo implements gfn.Env.
func (e Sequence) Redo(s gfn.State, b *Node) *Node {
	last := at(s[0], e.place(MinusOne(e.length(s))))
	return ReduceSum(Where(last, s[0], ZerosLike(s[0])), 1)
}

// Choices implements gfn.Product: each token is a choice.
func (e Sequence) Choices() []int { return e.Sizes }

// Open implements gfn.Product.
func (e Sequence) Open(initial gfn.State) *Node { return LessThan(initial[0], ZerosLike(initial[0])) }

// Choose implements gfn.Product.
func (e Sequence) Choose(_ gfn.State, values *Node) gfn.State { return gfn.State{values} }
