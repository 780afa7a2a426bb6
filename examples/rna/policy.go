package main

import (
	"math"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// policy is q(z|x). It asks the model what each candidate adds to log p(x,z), and learns what that means beside all others: a
// helix that is probable alone may be in conflict with better ones, of which the policy adds up the weights.
type policy struct{ RNA }

const (
	width    = 32 // of the network
	channels = 8  // what a candidate tells those it is in conflict with
)

// encoded is what Encode hands on.
type encoded struct {
	Number *Node // of bases, [B]
	Code   *Node // [B,K]
	Alone  *Node // log odds of a candidate without its beginning, if there is no other, [B,K]
	Hidden *Node // what a network says of each candidate, [B,K,width]
	Rivals *Node // 1 for two in conflict, [B,K,K]
}

func encodedOf(x gfn.Batch) encoded { return encoded{x[0], x[1], x[2], x[3], x[4]} }

// Encode implements gfn.Encoder.
func (p policy) Encode(phi *model.Scope, x gfn.Batch) gfn.Batch {
	bases, code := sequencesOf(x).Bases, sequencesOf(x).Code
	h, n := p.read(code), MaxScalar(count(bases), 1)
	alone := p.alone(p.tables(phi.Store().Scope(em.Theta), bases.Graph()), bases, code)
	kind := OneHot(AddScalar(h.L, -p.Shortest), p.depth(), float)
	loop := ConvertDType(Sub(h.closing(), Add(h.I, h.L)), float)
	at := func(i *Node) *Node { return Div(ConvertDType(i, float), ConvertDType(InsertAxes(n, 1), float)) }
	in := Concatenate([]*Node{kind, Stack([]*Node{
		DivScalar(alone, 4), at(h.I), at(h.J), Log1P(MaxScalar(loop, 0)), DivScalar(loop, 20)}, 2)}, 2)
	hidden := nn.MLP{Widths: []int{width, width}}.Apply(phi.At("candidate"), in)
	rivals := ConvertDType(p.conflict(h.along(2), h.along(1)), float)
	return gfn.Batch{n, code, alone, hidden, rivals}
}

// alone is the log odds of each candidate as the only helix, without that of its beginning, [B,K].
func (p policy) alone(t tables, bases, code *Node) *Node {
	g, b, n := bases.Graph(), bases.Shape().Dim(0), count(bases)
	h := p.read(code)
	place := AddScalar(MaxScalar(code, p.Shortest*p.N*p.N), -p.Shortest*p.N*p.N)
	size := p.depth() * p.N * p.N
	place = Add(place, MulScalar(Iota(g, shapes.Make(integer, b, 1), 0), size))
	weight := Log(MaxScalar(p.weights(t, bases), 1e-30)) // [B,D,N,N]
	pairs := Gather(Reshape(ConvertDType(weight, float), b*size), InsertAxes(place, 2))

	upTo := func(x *Node) *Node { // sums before each place, [...,N+1]
		g, v := x.Graph(), x.Shape().Dim(-1)
		return times(x, SliceAxis(before(g, p.N+1), 0, AxisRange(0, v)))
	}
	single := times(OneHot(bases, 4, float), AddScalar(t.unpaired, math.Log(4)))
	sum := func(from, to *Node) *Node {
		read := func(at *Node) *Node { return Einsum("bkn,bn->bk", OneHot(at, p.N+1, float), upTo(single)) }
		return Sub(read(to), read(from))
	}
	bare := Add(sum(h.I, Add(h.I, h.L)), sum(h.closing(), OnePlus(h.J)))
	stay := func(level, less int) *Node { return ConvertDType(Log(p.steps(t, level, less).stay), float) }
	sums := func(x *Node) *Node { return upTo(SliceAxis(x, 0, AxisRange(1, p.N+1))) }
	top, below := sums(stay(0, 0)), sums(stay(1, 0))
	left := Sub(InsertAxes(n, 1), h.I)
	gone := Sub(look(top, left), look(top, Sub(left, OnePlus(Sub(h.J, h.I)))))
	loop := Sub(h.closing(), Add(h.I, h.L))
	inner := Add(look(stay(1, 1), loop), look(below, MinusOne(loop)))
	odds := Add(Sub(pairs, bare), Sub(inner, gone))
	return StopGradient(Where(GreaterThan(h.L, ZerosLike(h.L)), odds, ZerosLike(odds)))
}

// odds are what each candidate adds to log p(x,z) in N states, [N,K], as far as its beginning knows of the helices there; n is
// the number of bases, [N]. Besides, they come with numbers that say where a candidate is among these, each [N,K].
func (p policy) odds(t tables, n, alone *Node, z structure[*Node]) (odds *Node, where []*Node) {
	h, chosen := p.read(z.Code).along(2), p.helices(z).along(1) // [N,K,1], [N,1,T]
	over := all(LessThan(chosen.I, h.I), LessThan(h.I, chosen.closing()), GreaterThan(chosen.L, ZerosLike(chosen.L)))
	next := Where(over, Add(chosen.closing(), ZerosLike(h.I)), BroadcastToShape(InsertAxes(n, 1, 1), over.Shape()))
	end := ReduceMin(next, 2) // the next base that is claimed
	level := ReduceMax(ConvertDType(over, integer), 2)
	below := ReduceSum(ConvertDType(chosen.inside(h), float), 2)

	begin := func(level int) *Node { return Log(MaxScalar(p.steps(t, level, 0).begin, 1e-30)) }
	begins := ConvertDType(Concatenate([]*Node{begin(0), begin(1)}, 0), float)
	at := Add(MulScalar(level, p.N+1), Sub(end, Squeeze(h.I, 2)))
	odds = Add(alone, Gather(begins, InsertAxes(at, 2)))
	where = []*Node{below, ConvertDType(level, float)}
	if p.Knots {
		change, crossings := p.crossing(t, h, chosen, n, end)
		odds, where = Add(odds, change), append(where, crossings...)
	}
	return StopGradient(odds), where
}

// Heads implements gfn.Policy.
func (p policy) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	e, z := encodedOf(x), structureOf(s)
	states := func(x *Node) *Node { return Reshape(ConvertDType(x, float), e.Code.Shape().Dim(0), k, -1) }
	t := p.tables(phi.Store().Scope(em.Theta), z.Code.Graph())
	many := gfn.Batch{e.Number, e.Alone}.Repeat(k)
	odds, where := p.odds(t, many[0], many[1], z)
	odds = states(odds)

	// What those in conflict add, and what they say.
	open := states(free(z))
	rivals := OnePlus(Einsum("bsj,bjk->bsk", Mul(open, Exp(MinScalar(odds, 20))), e.Rivals))
	share := Sub(odds, Log(rivals))
	number := ReduceAndKeep(states(z.Chosen), ReduceSum, 2)
	in := []*Node{DivScalar(odds, 4), DivScalar(share, 4), Sigmoid(share), BroadcastToShape(number, share.Shape())}
	for _, w := range where {
		in = append(in, states(w))
	}
	hidden := Add(nn.Linear(phi.At("state"), Stack(in, 3), width), InsertAxes(e.Hidden, 1))
	says := Mul(Softplus(nn.Linear(phi.At("says"), nn.ReLU(hidden), channels)), InsertAxes(open, 3)) // [B,k,K,channels]
	heard := Einsum("bsjc,bjk->bskc", says, e.Rivals)
	total := ReduceAndKeep(says, ReduceSum, 2)
	hidden = Add(hidden, nn.Linear(phi.At("heard"), Log1P(heard), width))
	hidden = Add(hidden, nn.Linear(phi.At("left"), Log1P(MaxScalar(Sub(total, heard), 0)), width))
	logit := Add(Squeeze(nn.Linear(phi.At("logit"), nn.ReLU(hidden), 1), 3), odds)
	stop := nn.MLP{Widths: []int{width, 1}}.Apply(phi.At("stop"), Concatenate([]*Node{Log1P(Squeeze(total, 2)), number}, 2))
	return gfn.Heads{Forward: Reshape(Concatenate([]*Node{logit, stop}, 2), -1, p.K+1)}
}
