package main

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
)

const (
	integer = dtypes.Int32
	float   = dtypes.Float32
	hairpin = 3 // the least number of bases that a pair encloses
)

// Folding assembles a secondary structure helix by helix, in any order, until it stops. A helix of L pairs is (I,J),
// (I+1,J-1), ... with nothing in between, which pair A with U, C with G or G with U. Helices share no base, do not
// continue each other (so that equal structures are equal sets of helices) and, unless Knots, do not cross.
//
// Action k < K adds candidate k, action K stops; backward actions have the same numbers.
type Folding struct {
	N, K              int // the greatest numbers of bases and of candidates
	Shortest, Longest int // helices, in pairs
	Knots             bool
}

var _ gfn.Env = Folding{}

// sequences are observations, in a graph (T is *Node) or on the host (*tensors.Tensor).
type sequences[T any] struct {
	Bases T // 0 to 3, or -1 beyond the end, [B,N]
	Code  T // candidates, the helices that these bases can form, as numbers (see read), then -1, [B,K]
	Known T // 1 for the candidates of a known structure, [B,K]: for measures and learning with structures alone
}

func sequencesOf[T any](x []T) sequences[T] { return sequences[T]{x[0], x[1], x[2]} }
func (x sequences[T]) list() []T            { return []T{x.Bases, x.Code, x.Known} }

// structure is a state.
type structure[T any] struct {
	Chosen  T // 1 for the candidates that it has, [B,K]
	Blocked T // with how many of these each candidate is in conflict, [B,K]
	Done    T // whether it is complete, [B]
	Code    T // the candidates, [B,K]
}

func structureOf[T any](s []T) structure[T] { return structure[T]{s[0], s[1], s[2], s[3]} }
func (z structure[T]) list() []T            { return []T{z.Chosen, z.Blocked, z.Done, z.Code} }

// free marks the candidates that can be added, [B,K].
func free(z structure[*Node]) *Node {
	return all(IsZero(z.Chosen), IsZero(z.Blocked), GreaterOrEqual(z.Code, ZerosLike(z.Code)))
}

// least is the least number of bases from the first to the last of a helix.
func (e Folding) least() int { return 2*e.Shortest + hairpin }

// depth is the number of lengths that a helix can have.
func (e Folding) depth() int { return e.Longest - e.Shortest + 1 }

// most is a number of helices that no structure exceeds: those nested in each other have a bulge between two of them.
func (e Folding) most() int {
	if e.Knots {
		return max(1, e.N/(2*e.Shortest))
	}
	return max(1, (e.N-e.least())/(2*e.Shortest+1)+1)
}

// helices are given by their first base, their last one and the number of their pairs, which is 0 if there is none.
type helices struct{ I, J, L *Node }

// read takes the numbers of helices apart.
func (e Folding) read(code *Node) helices {
	code = MaxScalar(code, 0)
	n := Scalar(code.Graph(), integer, e.N)
	return helices{Mod(Div(code, n), n), Mod(code, n), Div(Div(code, n), n)}
}

// along puts the helices along an axis of a table.
func (h helices) along(axis int) helices {
	return helices{InsertAxes(h.I, axis), InsertAxes(h.J, axis), InsertAxes(h.L, axis)}
}

// closing is the first base of the second strand.
func (h helices) closing() *Node { return OnePlus(Sub(h.J, h.L)) }

func all(first *Node, rest ...*Node) *Node {
	for _, r := range rest {
		first = LogicalAnd(first, r)
	}
	return first
}

// inside marks where helices lie between the strands of others.
func (h helices) inside(o helices) *Node {
	return all(GreaterThan(h.I, o.I), LessThan(h.J, o.J), GreaterThan(h.L, ZerosLike(h.L)), GreaterThan(o.L, ZerosLike(o.L)))
}

// conflict marks where two helices cannot be in one structure.
func (e Folding) conflict(a, b helices) *Node {
	meet := func(p, q *Node) *Node { return LogicalAnd(LessThan(p, Add(q, b.L)), LessThan(q, Add(p, a.L))) }
	continues := func(a, b helices) *Node {
		return LogicalAnd(Equal(b.I, Add(a.I, a.L)), Equal(b.J, Sub(a.J, a.L)))
	}
	p, q := []*Node{a.I, a.closing()}, []*Node{b.I, b.closing()}
	bad := LogicalOr(continues(a, b), continues(b, a))
	for i := range 4 {
		bad = LogicalOr(bad, meet(p[i/2], q[i%2]))
	}
	if !e.Knots {
		cross := func(a, b helices) *Node {
			return all(LessThan(a.I, b.I), LessThan(b.I, a.J), LessThan(a.J, b.J))
		}
		bad = LogicalOr(bad, LogicalOr(cross(a, b), cross(b, a)))
	}
	return all(bad, GreaterThan(a.L, ZerosLike(a.L)), GreaterThan(b.L, ZerosLike(b.L)))
}

// Steps implements gfn.Env.
func (e Folding) Steps() int { return e.most() + 1 }

// Actions implements gfn.Env.
func (e Folding) Actions() int { return e.K + 1 }

// BackActions implements gfn.Env.
func (e Folding) BackActions() int { return e.K + 1 }

// Initial implements gfn.Env: no helix.
func (e Folding) Initial(x gfn.Batch) gfn.State {
	code := sequencesOf(x).Code
	zero := ZerosLike(code)
	return structure[*Node]{zero, zero, ReduceSum(zero, 1), code}.list()
}

// Legal implements gfn.Env.
func (e Folding) Legal(s gfn.State) *Node {
	z := structureOf(s)
	free, open := free(z), InsertAxes(IsZero(z.Done), 1)
	return Concatenate([]*Node{LogicalAnd(free, BroadcastToShape(open, free.Shape())), open}, 1)
}

// LegalBack implements gfn.Env.
func (e Folding) LegalBack(s gfn.State) *Node {
	z := structureOf(s)
	open := InsertAxes(IsZero(z.Done), 1)
	in := GreaterThan(z.Chosen, ZerosLike(z.Chosen))
	return Concatenate([]*Node{LogicalAnd(in, BroadcastToShape(open, in.Shape())), LogicalNot(open)}, 1)
}

// Step implements gfn.Env.
func (e Folding) Step(s gfn.State, a *Node) gfn.State { return e.put(s, a, 1) }

// Undo implements gfn.Env.
func (e Folding) Undo(s gfn.State, b *Node) gfn.State { return e.put(s, b, -1) }

// put adds a helix or a stop, or takes it away.
func (e Folding) put(s gfn.State, a *Node, sign int) gfn.State {
	z := structureOf(s)
	hit := ConvertDType(Equal(Iota(a.Graph(), z.Code.Shape(), 1), InsertAxes(a, 1)), integer) // [B,K]
	code := ReduceAndKeep(Mul(hit, z.Code), ReduceSum, 1)                                     // [B,1], 0 is no helix
	against := ConvertDType(e.conflict(e.read(z.Code), e.read(code)), integer)
	stop := ConvertDType(Equal(a, Scalar(a.Graph(), integer, e.K)), integer)
	z.Chosen, z.Blocked = Add(z.Chosen, MulScalar(hit, sign)), Add(z.Blocked, MulScalar(against, sign))
	z.Done = Add(z.Done, MulScalar(stop, sign))
	return z.list()
}

// Back implements gfn.Env.
func (e Folding) Back(s gfn.State, a *Node) *Node { return a }

// Redo implements gfn.Env.
func (e Folding) Redo(s gfn.State, b *Node) *Node { return b }

// Of returns the complete structures of candidates that are chosen, [B,K] of zeros and ones.
func (e Folding) Of(chosen, code *Node) gfn.State {
	helix := e.helices(structure[*Node]{Chosen: chosen, Code: code})
	against := e.conflict(e.read(code).along(2), helix.along(1)) // [B,K,T]
	blocked := ReduceSum(ConvertDType(against, integer), 2)
	return structure[*Node]{chosen, blocked, OnesLike(ReduceSum(chosen, 1)), code}.list()
}

// helices lists those that are chosen, [B,T], first of all the ones with the lowest numbers.
func (e Folding) helices(z structure[*Node]) helices {
	g, in := z.Chosen.Graph(), ConvertDType(z.Chosen, float)
	rank := ConvertDType(times(in, before(g, e.K)), integer) // [B,K]
	slot := Iota(g, shapes.Make(integer, 1, 1, e.most()), 2)
	hit := ConvertDType(Equal(InsertAxes(rank, 2), slot), integer)
	hit = Mul(hit, InsertAxes(z.Chosen, 2)) // [B,K,T]
	return e.read(ReduceSum(Mul(hit, InsertAxes(z.Code, 2)), 1))
}
