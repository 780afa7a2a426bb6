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

// before is 1 at (i,j) if i < j: with it a product adds up all that comes before.
func before(g *Graph, n int) *Node {
	shape := shapes.Make(integer, n, n)
	return ConvertDType(LessThan(Iota(g, shape, 0), Iota(g, shape, 1)), float)
}

// inward moves a table, so that at (i,j) there is what was at (i+s,j-s), and 0 if there is no such place.
func inward(table *Node, s int) *Node {
	if s == 0 {
		return table
	}
	r, n := table.Rank(), table.Shape().Dim(-1)
	rows := SliceAxis(table, r-2, AxisRange(max(s, 0), n+min(s, 0)))
	rows = SliceAxis(rows, r-1, AxisRange(max(-s, 0), n-max(s, 0)))
	wide := []*Node{zeros(rows, r-1, max(s, 0)), rows, zeros(rows, r-1, max(-s, 0))}
	rows = joined(wide, r-1)
	return joined([]*Node{zeros(rows, r-2, max(-s, 0)), rows, zeros(rows, r-2, max(s, 0))}, r-2)
}

// zeros are n zeros along an axis, beside a table; nil if n is 0.
func zeros(table *Node, axis, n int) *Node {
	if n == 0 {
		return nil
	}
	shape := table.Shape().Clone()
	shape.Dimensions[axis] = n
	return Zeros(table.Graph(), shape)
}

func joined(parts []*Node, axis int) *Node {
	var some []*Node
	for _, p := range parts {
		if p != nil {
			some = append(some, p)
		}
	}
	return Concatenate(some, axis)
}

// Observe makes an observation of bases and their partners, both [B,N]; a partner of -1 is none. If there are more than K
// candidates, then those of the structure alone are listed; this can befall a dream, never data.
func (e Folding) Observe(bases, partner *Node) gfn.Batch {
	g, b := bases.Graph(), bases.Shape().Dim(0)
	canonical := ReduceMax(e.pairs(bases), 3) // [B,N,N]
	paired := OneHot(partner, e.N, float)
	var can, known []*Node
	stack, own := canonical, paired
	for l := 1; l <= e.Longest; l++ {
		if l > 1 {
			stack, own = Mul(stack, inward(canonical, l-1)), Mul(own, inward(paired, l-1))
		}
		if l < e.Shortest {
			continue
		}
		legal := Mul(stack, e.loops(g, l))
		can = append(can, legal)
		whole := Mul(OneMinus(inward(paired, -1)), OneMinus(inward(paired, l)))
		known = append(known, Mul(Mul(legal, own), whole))
	}
	rows := e.depth() * e.N
	list, in := Reshape(Stack(can, 1), b, rows, e.N), Reshape(Stack(known, 1), b, rows, e.N)
	many := GreaterThan(ReduceSum(list, 1, 2), Scalar(g, float, e.K))
	list = Where(many, in, list)

	rank := times(list, before(g, e.N)) // within a row
	rank = Add(rank, InsertAxes(times(ReduceSum(list, 2), before(g, rows)), 2))
	rank = MinScalar(Where(GreaterThan(list, ZerosLike(list)), rank, MulScalar(OnesLike(rank), e.K)), e.K)
	to := Add(ConvertDType(rank, integer), MulScalar(Iota(g, shapes.Make(integer, b, 1, 1), 0), e.K+1))
	number := Reshape(Iota(g, shapes.Make(integer, rows*e.N), 0), 1, rows, e.N)
	number = BroadcastToDims(AddScalar(number, e.Shortest*e.N*e.N+1), b, rows, e.N) // as read takes it apart, and 1
	place := func(values *Node) *Node {
		out := Scatter(Reshape(to, b*rows*e.N, 1), Reshape(values, b*rows*e.N), shapes.Make(integer, b*(e.K+1)), false, false)
		return SliceAxis(Reshape(out, b, e.K+1), 1, AxisRange(0, e.K))
	}
	return sequences[*Node]{bases, MinusOne(place(number)), place(ConvertDType(in, integer))}.list()
}

// loops is 1 at (i,j) where a helix of l pairs can begin, [1,N,N].
func (e Folding) loops(g *Graph, l int) *Node {
	shape := shapes.Make(integer, 1, e.N, e.N)
	inside := OnePlus(Sub(Iota(g, shape, 2), Iota(g, shape, 1)))
	return ConvertDType(GreaterOrEqual(inside, Scalar(g, integer, 2*l+hairpin)), float)
}

// left and right are the bases of the kinds of pairs.
var left, right = []int32{0, 3, 1, 2, 2, 3}, []int32{3, 0, 2, 1, 3, 2} // AU UA CG GC GU UG

const kinds = 6

// pairs is 1 where two bases form a pair of a kind, [B,N,N,6].
func (e Folding) pairs(bases *Node) *Node {
	of := func(base []int32, axis int) *Node {
		return InsertAxes(ConvertDType(Equal(InsertAxes(bases, 2), Const(bases.Graph(), [][][]int32{{base}})), float), axis)
	}
	return Mul(of(left, 2), of(right, 1))
}

// times multiplies the last axis of x with the first one of a table.
func times(x, table *Node) *Node { return DotGeneral(x, []int{-1}, nil, table, []int{0}, nil) }
