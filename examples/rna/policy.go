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
	Bases  *Node // log odds of the bases of a candidate and of its lengths, [B,K]
	Hidden *Node // what a network says of each candidate, [B,K,width]
	Rivals *Node // 1 for two in conflict, [B,K,K]
}

func encodedOf(x gfn.Batch) encoded { return encoded{x[0], x[1], x[2], x[3], x[4]} }

// Encode implements gfn.Encoder.
func (p policy) Encode(phi *model.Scope, x gfn.Batch) gfn.Batch {
	in := sequencesOf(x)
	h, n := p.read(in.Code), MaxScalar(count(in.Bases), 1)
	odds := p.bases(p.tables(phi.Store().Scope(em.Theta), in.Bases.Graph()), in)
	length := OneHot(AddScalar(h.L, -p.Shortest), p.depth(), float)
	loop := ConvertDType(Sub(h.closing(), Add(h.I, h.L)), float)
	at := func(i *Node) *Node { return Div(ConvertDType(i, float), ConvertDType(InsertAxes(n, 1), float)) }
	numbers := []*Node{DivScalar(odds, 4), at(h.I), at(h.J), Log1P(MaxScalar(loop, 0)), DivScalar(loop, 20)}
	hidden := nn.MLP{Widths: []int{width, width}}.Apply(phi.At("candidate"), Concatenate([]*Node{length, Stack(numbers, 2)}, 2))
	return gfn.Batch{n, in.Code, odds, hidden, ConvertDType(p.conflict(h.along(2), h.along(1)), float)}
}

// bases are log odds: of the pairs of each candidate and its lengths, beside the same bases unpaired, [B,K].
func (p policy) bases(t tables, x sequences[*Node]) *Node {
	g, b := x.Bases.Graph(), x.Bases.Shape().Dim(0)
	h := p.read(x.Code)
	first, size := p.Shortest*p.N*p.N, p.depth()*p.N*p.N
	place := AddScalar(MaxScalar(x.Code, first), -first)
	place = Add(place, MulScalar(Iota(g, shapes.Make(integer, b, 1), 0), size))
	weight := Log(MaxScalar(p.weights(t, x.Bases), 1e-30)) // [B,D,N,N]
	pairs := Gather(Reshape(ConvertDType(weight, float), b*size), InsertAxes(place, 2))
	single := sums(times(OneHot(x.Bases, 4, float), AddScalar(t.unpaired, math.Log(4)))) // [B,N+1]
	sum := func(from, to *Node) *Node {
		return Einsum("bkn,bn->bk", Sub(OneHot(to, p.N+1, float), OneHot(from, p.N+1, float)), single)
	}
	odds := Sub(pairs, Add(sum(h.I, Add(h.I, h.L)), sum(h.closing(), OnePlus(h.J))))
	return StopGradient(Where(GreaterThan(h.L, ZerosLike(h.L)), odds, ZerosLike(odds)))
}

// sums adds up what comes before each place of the last axis, and all of it, [...,N+1].
func sums(x *Node) *Node {
	n := x.Shape().Dim(-1)
	return times(x, SliceAxis(before(x.Graph(), n+1), 0, AxisRange(0, n)))
}

// stories are log-probabilities by the distance to the next claimed base, [3*(N+1)]: first below no helix, then below one, then
// just behind the strand of one.
type stories struct {
	stay  *Node // of a base that stays unpaired
	stays *Node // of all bases up to that distance
	begin *Node // of a helix that begins, less that of staying unpaired
}

func (p policy) stories(t tables) (s stories) {
	var stay, stays, begin []*Node
	for _, kind := range [][2]int{{0, 0}, {1, 0}, {1, 1}} {
		of := p.steps(t, kind[0], kind[1])
		here := ConvertDType(Log(of.stay), float)
		begin = append(begin, Sub(ConvertDType(Log(MaxScalar(of.begin, 1e-30)), float), here))
		if p.Knots && kind[0] == 1 {
			here = Sub(here, p.lessBelow(t, here))
		}
		stay, stays = append(stay, here), append(stays, SliceAxis(sums(here), 0, AxisRange(1, p.N+2)))
	}
	return stories{Concatenate(stay, 0), Concatenate(stays, 0), Concatenate(begin, 0)}
}

// odds are what each candidate adds to log p(x,z) in N states, [N,K], exactly if it crosses no other; n is the number of bases,
// [N]. Besides, they come with numbers that say where a candidate is among those chosen, each [N,K].
func (p policy) odds(t tables, n, bases *Node, z structure[*Node]) (odds *Node, where []*Node) {
	s := p.stories(t)
	h, c := p.read(z.Code), p.helices(z)                    // [N,K], [N,T]
	end, kind, level := p.around(n, h, c)                   // [N,K]
	chosenEnd, chosenKind, chosenLevel := p.around(n, c, c) // [N,T]
	at := func(table, kind, distance *Node) *Node {
		return Gather(table, InsertAxes(Add(MulScalar(kind, p.N+1), MaxScalar(distance, 0)), -1))
	}
	stays := func(kind, end, from, to *Node) *Node { // bases from one to another
		return Sub(at(s.stays, kind, Sub(end, from)), at(s.stays, kind, Sub(end, OnePlus(to))))
	}
	one := OnesLike(h.I)
	two := OnePlus(one)

	// The helix begins, and its bases no longer stay unpaired; those below it do so for another reason.
	closing, inner := h.closing(), Add(h.I, h.L)
	begins := at(s.begin, kind, Sub(end, h.I))
	come := Add(at(s.stay, two, Sub(closing, inner)), stays(one, closing, OnePlus(inner), MinusOne(closing)))
	odds = Add(Add(bases, begins), Sub(come, stays(level, end, OnePlus(h.I), h.J)))

	// Chosen helices directly below it begin for another reason, too, and no base of theirs stays unpaired.
	old := Add(at(s.begin, chosenKind, Sub(chosenEnd, c.I)), at(s.stay, chosenKind, Sub(chosenEnd, c.I)))
	old = Sub(old, stays(chosenLevel, chosenEnd, c.I, c.J))
	hk, ct := h.along(2), c.along(1)
	direct := all(ct.inside(hk), Equal(InsertAxes(end, 2), InsertAxes(chosenEnd, 1)))
	wide := func(x *Node) *Node { return BroadcastToShape(x, direct.Shape()) }
	first := ConvertDType(Equal(wide(ct.I), wide(InsertAxes(inner, 2))), integer)
	part := func(table *Node, kind int) *Node {
		return SliceAxis(table, 0, AxisRange(kind*(p.N+1), (kind+1)*(p.N+1)))
	}
	upTo := part(s.stays, 1)
	begun := Concatenate([]*Node{Sub(part(s.begin, 1), Sub(upTo, part(s.stay, 1))), Sub(part(s.begin, 2), Sub(upTo, part(s.stay, 1)))}, 0)
	now := at(begun, first, Sub(wide(InsertAxes(closing, 2)), wide(ct.I)))
	now = Add(now, at(upTo, ZerosLike(first), Sub(wide(InsertAxes(closing, 2)), wide(OnePlus(ct.J)))))
	change := Sub(now, wide(InsertAxes(old, 1)))
	odds = Add(odds, ReduceSum(Where(direct, change, ZerosLike(change)), 2))
	where = []*Node{ReduceSum(ConvertDType(direct, float), 2), ConvertDType(level, float)}

	if p.Knots {
		across := Add(bases, Sub(p.across(t, n, h, end), stays(level, end, OnePlus(h.I), MinusOne(inner))))
		ahead := GreaterThan(h.J, end) // it closes behind the next claimed base
		odds = Where(ahead, across, odds)

		// Chosen helices that will cross this one begin for another reason.
		instead := Sub(p.across(t, n, c, chosenEnd), at(s.begin, chosenKind, Sub(chosenEnd, c.I)))
		instead = Where(GreaterThan(c.J, chosenEnd), ZerosLike(instead), instead)
		cross := all(LessThan(hk.I, ct.I), LessThan(ct.I, hk.closing()), GreaterThan(ct.J, hk.J))
		odds = Add(odds, ReduceSum(Where(cross, wide(InsertAxes(instead, 1)), ZerosLike(change)), 2))
		where = append(where, ConvertDType(ahead, float), ReduceSum(ConvertDType(cross, float), 2))
	}
	odds = Where(GreaterThan(h.L, ZerosLike(h.L)), odds, ZerosLike(odds))
	return StopGradient(MaxScalar(MinScalar(odds, 30), -30)), where
}

// around finds the helix c, [N,T], that a helix h, [N,K], is directly below: the next base that is claimed where h begins, the
// kind of story there, and whether there is such a helix.
func (p policy) around(n *Node, h, c helices) (end, kind, level *Node) {
	hk, ct := h.along(2), c.along(1)
	over := all(LessThan(ct.I, hk.I), LessThan(hk.I, ct.closing()), GreaterThan(ct.L, ZerosLike(ct.L)))
	next := Where(over, Add(ct.closing(), ZerosLike(hk.I)), BroadcastToShape(InsertAxes(n, 1, 1), over.Shape()))
	end = ReduceMin(next, 2)
	level = ReduceMax(ConvertDType(over, integer), 2)
	behind := all(over, Equal(next, InsertAxes(end, 2)), Equal(BroadcastToShape(hk.I, over.Shape()), Add(ct.I, ct.L)))
	return end, Add(level, ReduceMax(ConvertDType(behind, integer), 2)), level
}

// Heads implements gfn.Policy.
func (p policy) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	e, z := encodedOf(x), structureOf(s)
	states := func(x *Node) *Node { return Reshape(ConvertDType(x, float), e.Code.Shape().Dim(0), k, -1) }
	t := p.tables(phi.Store().Scope(em.Theta), z.Code.Graph())
	many := gfn.Batch{e.Number, e.Bases}.Repeat(k)
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
