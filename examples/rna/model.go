package main

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// RNA is p(x,z) of a sequence and its structure. A story tells both from the first base to the last: a base that no helix
// has claimed stays unpaired, or a helix begins there, whose length and loop are drawn, and claims its bases. The helix
// fits before the next claimed base and does not continue another one; with Knots it may, by another choice, close
// anywhere behind that base, where bases are free. Then unpaired bases are drawn, the outer pair of each helix, and every
// other pair given the one around it (stacking).
type RNA struct {
	Folding
	// Lengths are log-probabilities of the number of bases, [N+1].
	Lengths []float32
}

var _ lvm.Model = RNA{}

// tables are logits of the choices, in float32; all are learned.
type tables struct {
	helix, loop, start    *Node // by length [D], by length [N], by level and distance to the next claimed base [2,N+1]
	bend, knot            *Node // by length [D], [1]: of helices that cross others
	unpaired, outer, next *Node // [4] bases, [6] pairs, [6,6] pairs by the pair around
}

const (
	distances = 12 // that start tells apart
	never     = -1e9
)

func (m RNA) tables(theta *model.Scope, g *Graph) (t tables) {
	p := func(name string, dims ...int) *Node { return nn.Param(theta, g, float, name, 0.1, dims...) }
	t.helix, t.bend = LogSoftmax(p("helix", m.depth())), LogSoftmax(p("bend", m.depth()))
	length := ConvertDType(Iota(g, shapes.Make(integer, m.N), 0), float)
	t.loop = Sub(p("loop", m.N), MulScalar(length, 0.05))
	t.knot = AddScalar(p("knot", 1), -3)
	bucket := MinScalar(DivScalar(Iota(g, shapes.Make(integer, m.N+1), 0), 6), distances-1)
	t.start = AddScalar(times(p("start", 2, distances), TransposeAllAxes(OneHot(bucket, distances, float), 1, 0)), -2)
	t.unpaired, t.outer = LogSoftmax(p("unpaired", 4)), LogSoftmax(p("outer", kinds))
	t.next = LogSoftmax(p("next", kinds, kinds))
	return t
}

// fits is the log-sum of all helices and loops that fit into a number of bases, [N+1].
func (m RNA) fits(t tables) *Node {
	g := t.helix.Graph()
	shape := shapes.Make(integer, m.N+1, m.depth(), m.N)
	loop, l := Iota(g, shape, 2), AddScalar(Iota(g, shape, 1), m.Shortest)
	fit := all(GreaterOrEqual(Iota(g, shape, 0), Add(loop, MulScalar(l, 2))), GreaterOrEqual(loop, Scalar(g, integer, hairpin)))
	sum := BroadcastToShape(Add(Reshape(t.helix, 1, -1, 1), Reshape(t.loop, 1, 1, -1)), shapes.Make(float, shape.Dimensions...))
	sum = Where(fit, sum, MulScalar(OnesLike(sum), never))
	return nn.LogSumExp(Reshape(sum, m.N+1, -1), 1)
}

// turn is what is known at bases t when it is their turn, [B,R].
type turn struct {
	end   *Node // the next claimed base, or the number of bases
	room  *Node // for a helix that does not cross
	level *Node // 1 below another helix, else 0
	bends *Node // marks where helices that cross can close, by the first base and by length [B,R,D,N]; nil unless Knots
}

// turns says what is known at bases t, [1,R], by what is claimed then, [B,R,N] bool, and where the helix closes that
// begins just before t, [B,R], 0 if there is none.
func (m RNA) turns(n, t, claimed, closes *Node) (s turn) {
	g := n.Graph()
	at, q := InsertAxes(t, 2), Iota(g, shapes.Make(integer, 1, 1, m.N), 2)
	ahead := LogicalAnd(claimed, GreaterThan(q, at))
	dims := ahead.Shape().Dimensions
	s.end = ReduceMin(Where(ahead, BroadcastToDims(q, dims...), BroadcastToDims(InsertAxes(n, 1, 1), dims...)), 2)
	s.level = ConvertDType(LessThan(s.end, InsertAxes(n, 1)), integer)
	s.room = Sub(Sub(s.end, t), ConvertDType(Equal(s.end, closes), integer))
	if !m.Knots {
		return s
	}
	free := OneMinus(ConvertDType(claimed, float))
	var legal []*Node
	for l, run := 1, free; l <= m.Longest; l++ {
		if l > 1 {
			run = Mul(run, sooner(free, l-1))
		}
		if l >= m.Shortest {
			fit := all(GreaterThan(q, InsertAxes(s.end, 2)), LessOrEqual(AddScalar(q, l), InsertAxes(n, 1, 1)),
				GreaterOrEqual(q, AddScalar(at, l+hairpin)), GreaterOrEqual(InsertAxes(s.end, 2), AddScalar(at, l)))
			legal = append(legal, Mul(run, ConvertDType(fit, float)))
		}
	}
	s.bends = Stack(legal, 2)
	return s
}

// choices are the log-probabilities of staying unpaired and of beginning a helix that does not cross or does, [B,R,3].
func (m RNA) choices(p tables, t *Node, s turn) *Node {
	start := times(OneHot(Sub(s.end, t), m.N+1, float), TransposeAllAxes(p.start, 1, 0)) // [B,R,2]
	logit := gfn.Pick(start, s.level)
	no := MulScalar(OnesLike(logit), never)
	below := Where(GreaterOrEqual(s.room, Scalar(t.Graph(), integer, m.least())), logit, no)
	across := no
	if m.Knots {
		across = Where(GreaterThan(ReduceSum(s.bends, 2, 3), ZerosLike(no)), Add(InsertAxes(p.knot, 0), ZerosLike(no)), no)
	}
	return LogSoftmax(Stack([]*Node{ZerosLike(no), below, across}, 2))
}

// LogJoint implements lvm.Model.
func (m RNA) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	bases := sequencesOf(x).Bases
	g, b := bases.Graph(), x.Size()
	p := m.tables(theta, g)
	n := count(bases)
	t := Iota(g, shapes.Make(integer, 1, m.N), 1)

	// Helices, [B,T,N], and what they are at the base where they begin, [B,N].
	h, at := m.helices(structureOf(z)).along(2), InsertAxes(t, 1)
	whole := GreaterThan(h.L, ZerosLike(h.L))
	first := all(whole, Equal(h.I, at))
	begins := func(value *Node) *Node { return ReduceSum(Mul(ConvertDType(first, integer), value), 1) }
	opens := all(GreaterOrEqual(at, h.I), LessThan(at, Add(h.I, h.L)))
	shuts := all(whole, GreaterOrEqual(at, h.closing()), LessOrEqual(at, h.J))
	sum := func(mask, value *Node) *Node { return ReduceSum(Mul(ConvertDType(mask, integer), value), 1) }
	length, last := begins(h.L), begins(h.J)
	open := ReduceSum(ConvertDType(opens, float), 1)
	free := all(IsZero(open), IsZero(ReduceSum(ConvertDType(shuts, float), 1)), LessThan(t, InsertAxes(n, 1)))

	// The structure.
	claims := ConvertDType(all(whole, LessThan(h.I, at)), float)
	claimed := Einsum("btr,btq->brq", claims, ConvertDType(shuts, float))
	s := m.turns(n, t, GreaterThan(claimed, ZerosLike(claimed)), sum(all(whole, Equal(at, Add(h.I, h.L))), h.closing()))
	choice := m.choices(p, t, s)
	is := func(i int) *Node { return Squeeze(SliceAxis(choice, 2, AxisElem(i)), 2) }
	loop := Sub(OnePlus(Sub(last, t)), MulScalar(length, 2))
	below := Add(look(p.helix, AddScalar(length, -m.Shortest)), look(p.loop, loop))
	below = Add(is(1), Sub(below, look(m.fits(p), MaxScalar(s.room, 0))))
	helix := below
	if m.Knots {
		ways := ReduceSum(Mul(ReduceSum(s.bends, 3), Exp(InsertAxes(p.bend, 0, 0))), 2)
		ways = Where(GreaterThan(ways, ZerosLike(ways)), ways, OnesLike(ways))
		across := Add(is(2), Sub(look(p.bend, AddScalar(length, -m.Shortest)), Log(ways)))
		helix = Where(LessThan(last, s.end), below, across)
	}
	begin := GreaterThan(length, ZerosLike(length))

	// The bases.
	base := OneHot(bases, 4, float) // [B,N,4]
	partner := Einsum("bij,bjc->bic", OneHot(sum(opens, Sub(Add(h.I, h.J), at)), m.N, float), base)
	kind := Mul(times(base, oneHot(g, left)), times(partner, oneHot(g, right))) // [B,N,6]
	around := Concatenate([]*Node{Zeros(g, shapes.Make(float, b, 1, kinds)), SliceAxis(kind, 1, AxisRange(0, m.N-1))}, 1)
	outer := ReduceSum(Mul(kind, InsertAxes(p.outer, 0, 0)), 2)
	next := ReduceSum(Mul(times(around, p.next), kind), 2)
	pair := Mul(open, Where(begin, outer, next))
	single := Add(is(0), ReduceSum(Mul(base, InsertAxes(p.unpaired, 0, 0)), 2))

	zero := ZerosLike(single)
	logP := ReduceSum(Add(Add(Where(free, single, zero), Where(begin, helix, zero)), pair), 1)
	return Add(logP, look(Const(g, m.Lengths), n))
}

// count is the number of bases, [B].
func count(bases *Node) *Node {
	return ReduceSum(ConvertDType(GreaterOrEqual(bases, ZerosLike(bases)), integer), 1)
}

// look reads a table, [V], at places [...]; beyond it there is 0.
func look(table, at *Node) *Node {
	return times(OneHot(at, table.Shape().Dim(0), float), table)
}

// oneHot is [4,6] of the bases of the kinds of pairs.
func oneHot(g *Graph, base []int32) *Node {
	return TransposeAllAxes(OneHot(Const(g, base), 4, float), 1, 0)
}

// sooner moves the last axis, so that at q there is what was at q+s, and 0 beyond the end; later is the other way round.
func sooner(x *Node, s int) *Node { return moved(x, s, 0) }
func later(x *Node, s int) *Node  { return moved(x, 0, s) }

func moved(x *Node, drop, add int) *Node {
	axis, n := x.Rank()-1, x.Shape().Dim(-1)
	if drop+add >= n {
		return ZerosLike(x)
	}
	kept := SliceAxis(x, axis, AxisRange(drop, n-add))
	return joined([]*Node{zeros(x, axis, add), kept, zeros(x, axis, drop)}, axis)
}

// Sample implements lvm.Model: the story, base by base.
func (m RNA) Sample(theta *model.Scope, r *rng.Stream, b int) (gfn.Batch, gfn.State) {
	g := r.State().Graph()
	p := m.tables(theta, g)
	fill := func(v int, dims ...int) *Node { return AddScalar(Zeros(g, shapes.Make(integer, dims...)), v) }
	draw := func(logits *Node, dims ...int) *Node { return r.Categorical(Exp(BroadcastToDims(logits, dims...))) }
	n := draw(InsertAxes(Const(g, m.Lengths), 0), b, m.N+1)
	partner, claimed, kind := fill(-1, b, m.N), fill(0, b, m.N), make([]*Node, m.N)
	busy, shut := fill(0, b), fill(0, b) // of the last helix: where its loop begins, and where it closes
	q := Iota(g, shapes.Make(integer, 1, m.N), 1)
	col := func(x *Node) *Node { return InsertAxes(x, 1) }
	for i := range m.N {
		t := fill(i, 1, 1)
		taken := GreaterThan(claimed, ZerosLike(claimed))
		s := m.turns(n, t, InsertAxes(taken, 1), col(Where(Equal(busy, fill(i, b)), shut, fill(0, b))))
		choice := draw(Squeeze(m.choices(p, t, s), 1), b, 3)
		mine := Squeeze(SliceAxis(taken, 1, AxisElem(i)), 1)
		begun := all(GreaterThan(choice, fill(0, b)), LessOrEqual(busy, fill(i, b)), LogicalNot(mine), LessThan(fill(i, b), n))

		var below []*Node // by length, [B,N] of the first base of the second strand
		for l := m.Shortest; l <= m.Longest; l++ {
			w := later(Exp(p.loop), min(i+l, m.N))
			w = Mul(w, Exp(Squeeze(SliceAxis(p.helix, 0, AxisElem(l-m.Shortest)), 0)))
			fit := all(GreaterOrEqual(q, fill(i+l+hairpin, 1, 1)), LessOrEqual(AddScalar(q, l), Add(s.room, t)))
			below = append(below, Mul(ConvertDType(fit, float), col2(w)))
		}
		w := Stack(below, 1) // [B,D,N]
		if m.Knots {
			across := Mul(Squeeze(s.bends, 1), Exp(InsertAxes(p.bend, 0, 2)))
			w = Where(Equal(choice, fill(2, b)), across, w)
		}
		place := r.Categorical(Reshape(w, b, m.depth()*m.N))
		l, c := AddScalar(Div(place, fill(m.N, b)), m.Shortest), Mod(place, fill(m.N, b))
		j := MinusOne(Add(c, l))
		one := all(GreaterOrEqual(q, t), LessThan(q, col(AddScalar(l, i))), col(begun))
		two := all(GreaterOrEqual(q, col(c)), LessOrEqual(q, col(j)), col(begun))
		partner = Where(LogicalOr(one, two), Sub(col(AddScalar(j, i)), q), partner)
		claimed = Where(two, OnesLike(claimed), claimed)
		busy, shut = Where(begun, AddScalar(l, i), busy), Where(begun, c, shut)

		logits := InsertAxes(p.outer, 0)
		if i > 0 {
			stacked := times(OneHot(kind[i-1], kinds, float), p.next)
			logits = Where(begun, BroadcastToShape(logits, stacked.Shape()), stacked)
		}
		kind[i] = draw(logits, b, kinds)
	}
	which := Stack(kind, 1)
	free, opens := LessThan(partner, ZerosLike(partner)), GreaterThan(partner, Add(q, ZerosLike(partner)))
	closing := ReduceSum(Mul(OneHot(partner, m.N, integer), InsertAxes(which, 1)), 2) // the kind at the partner
	base := func(of []int32, at *Node) *Node { return Gather(Const(g, of), InsertAxes(at, -1)) }
	bases := Where(free, draw(InsertAxes(p.unpaired, 0, 0), b, m.N, 4), Where(opens, base(left, which), base(right, closing)))
	bases = Where(LessThan(q, col(n)), bases, fill(-1, b, m.N))
	x := sequencesOf(m.Observe(bases, partner))
	z := m.Of(x.Known, x.Code)
	x.Known = ZerosLike(x.Known)
	return x.list(), z
}

func col2(x *Node) *Node { return InsertAxes(x, 0) }
