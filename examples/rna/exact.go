package main

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

const wide = dtypes.Float64

// Inside returns log p(x), [B], the sum over all structures without crossing helices by dynamic programming in the order of
// N^3 steps; and the weights of helices by length and first and last base, [B,D,N,N], whose gradient says how probable they
// are (see Marginals).
//
// Weights are numbers, not logarithms: those of a base are multiplied by 4, so that sequences of hundreds of bases stay
// within the range of float64.
func (m RNA) Inside(theta *model.Scope, bases *Node) (logP, weights *Node) {
	g, b, n := bases.Graph(), bases.Shape().Dim(0), m.N
	p := m.tables(theta, g)
	single := Exp(ConvertDType(times(OneHot(bases, 4, float), AddScalar(p.unpaired, math.Log(4))), wide)) // [B,N]
	weights = m.weights(p, bases)
	at := func(x *Node, axis, i int) *Node { return Squeeze(SliceAxis(x, axis, AxisElem(i)), axis) }
	var long []*Node // weights by length, [B,N,N]
	for l := range m.depth() {
		long = append(long, at(weights, 1, l))
	}

	// Of a span of some length that begins below a helix: what staying unpaired and beginning a helix weigh, [N+1]. The
	// whole span below a helix has less room, since no helix can fill it.
	some := m.steps(p, 1, 0)
	whole := m.steps(p, 1, 1)
	top := m.steps(p, 0, 0)
	number := count(bases)

	one := OneHot(Iota(g, shapes.Make(integer, n+1), 0), n+1, wide) // [N+1,N+1]
	span := Zeros(g, shapes.Make(wide, b, 1, n+1))                  // [B,N-i,N+1]: from j+1 for j >= i to e, empty ones apart
	full := make([]*Node, n+1)                                      // [B,N+1]: below a helix, from i to e
	outer := ConvertDType(InsertAxes(Equal(number, Scalar(g, integer, n)), 1), wide)
	for i := n - 1; i >= 0; i-- {
		helix := Zeros(g, shapes.Make(wide, b, n)) // from i to j
		for l := m.Shortest; l <= m.Longest && i+l < n; l++ {
			loops := later(SliceAxis(full[i+l], 1, AxisRange(0, n)), l-1) // at j from i+l to j+1-l
			helix = Add(helix, Mul(at(long[l-m.Shortest], 1, i), loops))
		}
		to := SliceAxis(helix, 1, AxisRange(i, n))                                       // [B,N-i]
		split := Einsum("bj,bje->be", to, span)                                          // a helix, and more behind it
		fill := Concatenate([]*Node{Zeros(g, shapes.Make(wide, b, 1)), helix}, 1)        // a helix alone
		rest := Mul(Add(at(span, 1, 0), at(InsertAxes(one, 0), 1, i+1)), at2(single, i)) // this base, and more behind it
		here := func(s steps) (stay, begin *Node) { return later0(s.stay, i), later0(s.begin, i) }
		stay, begin := here(whole)
		full[i] = Add(Mul(stay, rest), Mul(begin, split))
		stay, begin = here(some)
		row := Add(Mul(stay, rest), Mul(begin, Add(split, fill)))
		span = Concatenate([]*Node{InsertAxes(row, 1), span}, 1)

		left := AddScalar(number, -i) // bases
		choose := func(s *Node) *Node { return times(OneHot(left, n+1, wide), s) }
		next := Mul(Mul(choose(top.stay), Squeeze(at2(single, i), 1)), at(outer, 1, 0))
		next = Add(next, Mul(choose(top.begin), ReduceSum(Mul(to, outer), 1)))
		end := ConvertDType(IsZero(left), wide)
		outer = Concatenate([]*Node{InsertAxes(Add(next, end), 1), outer}, 1)
	}
	logP = Sub(Log(at(outer, 1, 0)), MulScalar(ConvertDType(number, wide), math.Log(4)))
	return Add(logP, ConvertDType(look(Const(g, m.Lengths), number), wide)), weights
}

func at2(x *Node, i int) *Node { return SliceAxis(x, 1, AxisElem(i)) }

// later0 puts what depends on a length where a span from i ends, [1,N+1].
func later0(x *Node, i int) *Node { return InsertAxes(later(x, i), 0) }

// steps are weights by the length of a span, [N+1].
type steps struct{ stay, begin *Node }

// steps returns those of a span at a level, in which less bases than there are have room for a helix.
func (m RNA) steps(p tables, level, less int) steps {
	g := p.start.Graph()
	room := AddScalar(Iota(g, shapes.Make(integer, m.N+1), 0), -less)
	can := GreaterOrEqual(room, Scalar(g, integer, m.least()))
	logit := Squeeze(SliceAxis(p.start, 0, AxisElem(level)), 0)
	zero, fits := ZerosLike(logit), look(m.fits(p), MaxScalar(room, 0))
	stay := Exp(ConvertDType(Where(can, Neg(Softplus(logit)), zero), wide))
	begin := Where(can, Sub(Neg(Softplus(Neg(logit))), Where(can, fits, zero)), MulScalar(OnesLike(zero), never))
	return steps{stay, Exp(ConvertDType(begin, wide))}
}

// weights are those of helices, by length and first and last base, [B,D,N,N]: their bases and how long they and their
// loops are.
func (m RNA) weights(p tables, bases *Node) *Node {
	g, n := bases.Graph(), m.N
	kind := m.pairs(bases)
	some := ReduceMax(kind, 3)
	outer := Mul(Exp(AddScalar(times(kind, p.outer), math.Log(16))), some) // [B,N,N]
	var shifted []*Node
	for c := range kinds {
		shifted = append(shifted, inward(Squeeze(SliceAxis(kind, 3, AxisElem(c)), 3), -1))
	}
	around := Stack(shifted, 3)
	next := ReduceSum(Mul(times(around, Exp(AddScalar(p.next, math.Log(16)))), kind), 3)
	loops := AddScalar(Neg(Sub(Iota(g, shapes.Make(integer, n, n), 0), Iota(g, shapes.Make(integer, n, n), 1))), 1)
	var out []*Node
	stack := ConvertDType(outer, wide)
	for l := 1; l <= m.Longest; l++ {
		if l > 1 {
			stack = Mul(stack, ConvertDType(inward(next, l-1), wide))
		}
		if l >= m.Shortest {
			length := Squeeze(SliceAxis(p.helix, 0, AxisElem(l-m.Shortest)), 0)
			story := Exp(Add(look(p.loop, AddScalar(loops, -2*l)), length))
			legal := Mul(InsertAxes(story, 0), m.loops(g, l))
			out = append(out, Mul(stack, ConvertDType(legal, wide)))
		}
	}
	return Stack(out, 1)
}

// Marginals returns log p(x), [B], and the probability of each pair, [B,N,N] with the first base before the second.
func (m RNA) Marginals(theta *model.Scope, bases *Node) (logP, pairs *Node) {
	logP, weights := m.Inside(theta, bases)
	helix := Mul(weights, Gradient(ReduceAllSum(logP), weights)[0]) // [B,D,N,N]
	for l := m.Shortest; l <= m.Longest; l++ {
		of := Squeeze(SliceAxis(helix, 1, AxisElem(l-m.Shortest)), 1)
		for s := range l {
			moved := of
			if s > 0 {
				moved = inward(of, -s)
			}
			if pairs == nil {
				pairs = moved
			} else {
				pairs = Add(pairs, moved)
			}
		}
	}
	return logP, pairs
}
