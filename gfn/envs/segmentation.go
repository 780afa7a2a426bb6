package envs

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
)

// Segmentation cuts a string of at most Max letters into segments. From left to right it decides for each gap between two
// letters whether a segment ends there (action 1) or goes on (action 0). So a string of n letters takes n-1 actions, and
// every object has exactly one trajectory.
//
// A state is two tensors: the decisions [B,Max-1] int32, with Unset where none has been made yet, and in the gaps beyond
// the end of the string; and the number of letters [B] int32, which comes from the observation and never changes.
type Segmentation struct {
	// Max is 2 or more.
	Max int
	// Longest is the largest number of letters in a segment; 0 means any.
	Longest int
	// Length reads the number of letters from observations, [B] int32, from 0 to Max; nil means Max for all. Of a greater
	// number it is an error of training that trajectories do not end.
	Length func(x gfn.Batch) *Node
}

var (
	_ gfn.Env     = Segmentation{}
	_ gfn.Product = Segmentation{}
)

// cuts is a state.
type cuts struct{ Cut, Length *Node }

func cutsOf(s gfn.State) cuts { return program.Of[cuts](s) }

func (s cuts) state() gfn.State { return program.Nodes(s) }

// decided returns the number of decisions, [B].
func (s cuts) decided() *Node { return chosen(s.Cut) }

// inside marks the gaps between letters, [B,Max-1].
func (s cuts) inside() *Node {
	last := BroadcastToShape(InsertAxes(MinusOne(s.Length), 1), s.Cut.Shape())
	return LessThan(Iota(s.Cut.Graph(), s.Cut.Shape(), 1), last)
}

// Steps implements gfn.Env.
func (e Segmentation) Steps() int { return e.Max - 1 }

// Actions implements gfn.Env.
func (e Segmentation) Actions() int { return 2 }

// BackActions implements gfn.Env: the only way back is to forget the last decision.
func (e Segmentation) BackActions() int { return 1 }

// Initial implements gfn.Env.
func (e Segmentation) Initial(x gfn.Batch) gfn.State {
	if e.Max < 2 || e.Longest < 0 {
		blame.Panicf("envs: a Segmentation of at most %d letters into segments of at most %d", e.Max, e.Longest)
	}
	g, b := x[0].Graph(), x.Size()
	s := cuts{unset(g, b, e.Max-1), AddScalar(Zeros(g, shapes.Make(index, b)), e.Max)}
	if e.Length != nil {
		s.Length = blame.Field(e.Length, "Segmentation.Length").Typed(e.Length(x), index, b)
	}
	return s.state()
}

// Legal implements gfn.Env.
func (e Segmentation) Legal(state gfn.State) *Node {
	s := cutsOf(state)
	gap := s.decided() // that is next, [B]
	more := LessThan(gap, MinusOne(s.Length))
	on := more
	if e.Longest > 0 {
		where := Iota(gap.Graph(), s.Cut.Shape(), 1)
		cut := Equal(s.Cut, OnesLike(s.Cut))
		last := ReduceMax(Where(cut, where, AddScalar(ZerosLike(where), -1)), 1) // where the segment before ended, [B]
		on = LogicalAnd(on, LessThan(Sub(gap, last), AddScalar(ZerosLike(gap), e.Longest)))
	}
	return Stack([]*Node{on, more}, 1)
}

// Step implements gfn.Env.
func (e Segmentation) Step(state gfn.State, a *Node) gfn.State {
	s := cutsOf(state)
	return cuts{write(s.Cut, s.decided(), a), s.Length}.state()
}

// LegalBack implements gfn.Env.
func (e Segmentation) LegalBack(s gfn.State) *Node {
	n := cutsOf(s).decided()
	return InsertAxes(GreaterThan(n, ZerosLike(n)), 1)
}

// Undo implements gfn.Env.
func (e Segmentation) Undo(state gfn.State, b *Node) gfn.State {
	s := cutsOf(state)
	n := s.decided()
	return cuts{write(s.Cut, MinusOne(n), AddScalar(ZerosLike(n), Unset)), s.Length}.state()
}

// Back implements gfn.Env.
func (e Segmentation) Back(s gfn.State, a *Node) *Node { return ZerosLike(a) }

// Redo implements gfn.Env.
func (e Segmentation) Redo(state gfn.State, b *Node) *Node {
	s := cutsOf(state)
	return gfn.Pick(s.Cut, MinusOne(s.decided()))
}

// Of returns objects: cut is 1, or true, in the gaps where a segment ends, [B,Max-1], and does not matter beyond the end
// of the string; length [B] int32. It is for Sample of a model: no gradient flows back from objects.
func (e Segmentation) Of(cut, length *Node) gfn.State {
	s := cuts{constant(cut), StopGradient(length)}
	s.Cut = Where(s.inside(), s.Cut, AddScalar(ZerosLike(s.Cut), Unset))
	return s.state()
}

// Ends marks the letters that are the last of a segment of objects z, [B,Max] bool: at those that are cut off, and at the
// last one of the string.
func (e Segmentation) Ends(z gfn.State) *Node {
	s := cutsOf(z)
	cut := Concatenate([]*Node{s.Cut, InsertAxes(ZerosLike(s.Length), 1)}, 1)
	return StopGradient(LogicalOr(Equal(cut, OnesLike(cut)), at(cut, MinusOne(s.Length))))
}

// Choices implements gfn.Product: each gap is a choice, unless segments have an upper bound.
func (e Segmentation) Choices() []int {
	if e.Longest > 0 && e.Longest < e.Max {
		return nil
	}
	return slices.Repeat([]int{2}, e.Max-1)
}

// Open implements gfn.Product.
func (e Segmentation) Open(initial gfn.State) *Node { return cutsOf(initial).inside() }

// Choose implements gfn.Product.
func (e Segmentation) Choose(initial gfn.State, values *Node) gfn.State {
	return e.Of(values, cutsOf(initial).Length)
}
