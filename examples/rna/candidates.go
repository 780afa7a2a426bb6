package main

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
)

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

// before is 1 at (i,j) if i < j: with it a product adds up all that comes before.
func before(g *Graph, n int) *Node {
	shape := shapes.Make(integer, n, n)
	return ConvertDType(LessThan(Iota(g, shape, 0), Iota(g, shape, 1)), float)
}

// times multiplies the last axis of x with the first one of a table.
func times(x, table *Node) *Node { return DotGeneral(x, []int{-1}, nil, table, []int{0}, nil) }
