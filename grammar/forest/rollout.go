package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// Rollout is walks that are about to be made, or under way: the state of the loop that makes them.
//
// The loop uses reductions and scalars freely, so a program that runs rollouts has to do little else (see nn.Loop): one
// program starts them, and another one runs them.
type Rollout struct {
	Walk
	More  *Node // bool scalar: whether to go on
	Done  *Node // [B]: steps back so far, tried ones too
	Ups   *Node // [B]: passes that were not for steps back, also those after the walk's end
	Gap   *Node // [B]: where the last step was
	Label *Node // [B]: its label
	Kind  *Node // [B]: what the last step was
	Key   *Node

	Back, Rise    *Node // [B]: how many steps back; whether to go forward to whole trees then
	Beta, Epsilon *Node // [B], of the behaviour
	Rules         *Node // probabilities, [N,S,S] or [N,K,S,S]; nil if merges have labels
}

// RolloutTensors is the same on the host.
type RolloutTensors struct {
	WalkTensors
	More, Done, Ups, Gap, Label, Kind, Key *tensors.Tensor
	Back, Rise, Beta, Epsilon, Rules       *tensors.Tensor
}

// Rollout prepares walks: first back for so many steps (int32; walks that reach bare words stay there), then, if rise
// (bool) holds, forward to whole trees. They start from whole trees, or back is 0. How is the behaviour. All these are
// scalars or [B].
func (m Network) Rollout(from Walk, r *rng.Stream, back, rise *Node, how gfn.Behaviour) Rollout {
	each := func(x *Node) *Node { return BroadcastToDims(x, from.Forest.Length.Shape().Dim(0)) }
	number := func(x *Node, otherwise float64) *Node {
		if x == nil {
			x = Scalar(from.Nodes.Graph(), m.DType, otherwise)
		}
		return each(ConvertDType(x, m.DType))
	}
	s := Rollout{
		Walk: newWalk(from.Forest, from.Inside, from.Nodes), Back: each(back), Rise: each(rise), Key: r.State(),
		Beta: number(how.Beta, 1), Epsilon: number(how.Epsilon, 0),
	}
	if m.Grammar != nil {
		s.Rules = m.ruleTable(m.Grammar(from.Nodes.Graph()))
	}
	// The first step back, from whole trees, if there is one to make.
	on := GreaterThan(s.Back, ZerosLike(s.Back))
	s.Gap = MaxScalar(SubScalar(Squeeze(SliceAxis(s.Forest.Root, 1, AxisElem(0)), 1), s.Forest.Words()), 0)
	s.Label = MaxScalar(SubScalar(rows(s.Forest.Label, s.Gap), 1), 0)
	s.Kind = Where(on, MulScalar(OnesLike(s.Gap), stepBack), ZerosLike(s.Gap))
	s.Undone = put(mark(s.Undone, s.Gap, on), ZerosLike(s.Gap), s.Undone)
	s.Forest = s.Forest.Split(s.Gap, on)
	s.Done = ConvertDType(on, dtypes.Int32)
	s.Ups = ZerosLike(s.Done)
	s.More = anywhere(LogicalOr(s.Rise, LessThan(s.Done, s.Back)))
	return s
}

// Run makes walks. No gradient flows.
//
// Each pass of the loop evaluates the network once for all walks. It completes the scores of the step before, since the
// forward probability of an undone step is read at the state that the step back leads to, and the other way round; and
// it makes a step. The top of a whole tree is the only thing to split, so the first step back needs no network.
//
// No forest may have more than maxTrees trees, or what it returns is wrong without saying so; a greater maximum costs
// arithmetic and changes nothing but how a backend may round sums.
func (m Network) Run(scope *model.Scope, s Rollout, maxTrees int) Walk {
	w := m.weights(scope, s.Nodes.Graph()).halved()
	type state struct {
		Rollout Rollout
		Weights []*Node
	}
	more := func(s state) *Node { return s.Rollout.More }
	return nn.Loop(state{s, w.list()}, more, func(s state) state {
		return state{w.with(s.Weights).pass(s.Rollout, maxTrees, Part{}), s.Weights}
	}).Rollout.Walk
}

// Segment runs so many passes (int32 scalar, at least 1) of the loop, or fewer if the rollouts end. It cannot be
// nn.Repeat, whose rounds are fixed when a program is compiled.
func (m Network) Segment(scope *model.Scope, s Rollout, passes *Node, maxTrees int, part Part) Rollout {
	w := m.weights(scope, s.Nodes.Graph()).halved()
	type state struct {
		GoesOn, Left *Node // whether the segment does, and passes that are left to it
		Rollout      Rollout
		Weights      []*Node
	}
	more := func(s state) *Node { return s.GoesOn }
	return nn.Loop(state{s.More, passes, s, w.list()}, more, func(s state) state {
		next := w.with(s.Weights).pass(s.Rollout, maxTrees, part)
		left := SubScalar(s.Left, 1)
		return state{LogicalAnd(next.More, GreaterThan(left, ZerosLike(left))), left, next, s.Weights}
	}).Rollout
}

// pass makes one pass of the loop.
func (w *weights) pass(r Rollout, maxTrees int, part Part) Rollout {
	s := stepper{r, w, maxTrees, part}
	s.pass()
	return s.Rollout
}

// stepper makes the steps of rollouts.
type stepper struct {
	Rollout
	*weights
	maxTrees int
	part     Part
}

// Part says which rows of a larger batch of rollouts, with room for so many words, are made apart from the others: so
// that they draw the random numbers that they would draw there. The zero value is no part.
type Part struct{ First, Of, Words int }

// draws are uniform numbers for a pass, [B,most+kinds]: as many as for the most trees, so that draws do not depend on
// the maximum.
func (s *stepper) draws() (u *Node, most int) {
	rows, words := s.Gap.Shape().Dim(0), s.Forest.Words()
	p := s.part
	if p == (Part{}) {
		p = Part{0, rows, words}
	}
	most = min(p.Words, s.Positions)
	random := rng.In(s.Key)
	u = random.Uniform(s.DType, p.Of, most+s.kinds())
	s.Key = random.State()
	if p.Of > rows {
		u = SliceAxis(u, 0, AxisRange(p.First, p.First+rows))
	}
	return u, most
}

// Kinds of steps.
const (
	noStep = iota
	stepBack
	stepForward
)

// anywhere says whether a mark is set at all, a scalar.
func anywhere(marks *Node) *Node {
	n := ReduceAllMax(ConvertDType(marks, dtypes.Int32))
	return GreaterThan(n, ZerosLike(n))
}

// pass evaluates the network once, completes the scores of the last step and makes the next.
func (s *stepper) pass() {
	r := s.read(s.Forest, s.Nodes, s.maxTrees)
	position, mayJoin := r.position()
	split, maySplit := r.split()
	legal := Stack([]*Node{mayJoin, maySplit}, 1)
	logP := s.logProbs(Stack([]*Node{position, split}, 1), legal) // [B,2,M]
	part := func(x *Node, i int) *Node { return Squeeze(SliceAxis(x, 1, AxisElem(i)), 1) }
	logJoin, logSplit := part(logP, 0), part(logP, 1)
	down := LessThan(s.Done, s.Back) // [B]
	choice := func(ifDown, ifUp *Node) *Node {
		return Where(BroadcastToShape(InsertAxes(down, -1), ifDown.Shape()), ifDown, ifUp)
	}

	// Where the last step was, and where the next one will be. Both read a label.
	g, m := r.hidden.Graph(), mayJoin.Shape().Dim(1)
	u, most := s.draws()
	was := rows(r.place, rows(s.Forest.First, s.Gap))
	next := rng.Choose(SliceAxis(u, 1, AxisRange(0, m)), Exp(choice(logSplit, logJoin)))
	logWas, logNext := rows(logJoin, was), rows(logJoin, next) // of the last step and the next
	label := ZerosLike(next)
	if s.Grammar == nil {
		logits := s.head(labelHead, rows(r.hidden, Stack([]*Node{was, next}, 1))) // [B,2,N]
		logLabel := s.logProbs(logits, always(logits))
		label = rng.Choose(SliceAxis(u, 1, AxisRangeToEnd(most)), Exp(part(logLabel, 1)))
		logWas = Add(logWas, rows(part(logLabel, 0), s.Label))
		logNext = Add(logNext, rows(part(logLabel, 1), label))
	}
	add := func(to **Node, on, value *Node) { *to = Add(*to, Where(on, value, ZerosLike(value))) }
	last := func(kind int32) *Node { return Equal(s.Kind, Const(g, kind)) }
	add(&s.UndoneForward, last(stepBack), logWas)
	add(&s.MadeBack, last(stepForward), rows(logSplit, was))

	can := rows(choice(maySplit, mayJoin), next)
	parts, joins := LogicalAnd(down, can), LogicalAnd(LogicalAnd(LogicalNot(down), s.Rise), can)
	add(&s.MadeForward, joins, logNext)
	add(&s.UndoneBack, parts, rows(logSplit, next))
	word := rows(r.word, next)
	top := MaxScalar(SubScalar(rows(s.Forest.Root, word), s.Forest.Words()), 0)
	s.move(joins, parts, rows(s.Forest.Last, word), top, label)
	s.Done = Add(s.Done, ConvertDType(down, dtypes.Int32))
	s.Ups = Add(s.Ups, ConvertDType(LogicalNot(down), dtypes.Int32))
	// A walk that rises goes on while it has a gap to close: its first tree does not end with its last word. A network
	// that says nothing finite closes none, and must not keep it for ever.
	first := Squeeze(SliceAxis(s.Forest.Last, 1, AxisElem(0)), 1)
	rises := LogicalAnd(s.Rise, LessThan(first, SubScalar(s.Forest.Length, 1)))
	rises = LogicalAnd(rises, LessThan(s.Ups, Const(g, int32(s.Forest.Words()))))
	s.More = anywhere(LogicalOr(LessThan(s.Done, s.Back), rises))
}

// logProbs are those of the behaviour, [B,2,...]. Without epsilon they come from the logits alone, exact where
// probabilities are tiny.
func (s *stepper) logProbs(logits, legal *Node) *Node {
	how := gfn.Behaviour{Beta: InsertAxes(s.Beta, -1, -1)}
	if s.Mixes {
		how.Epsilon = InsertAxes(s.Epsilon, -1, -1)
	}
	return how.LogProbs(logits, legal)
}

// move joins trees at a gap under a label in some rows and splits the node at another gap in others.
func (s *stepper) move(joins, parts, join, part, label *Node) {
	f := s.Forest
	s.Gap = Where(joins, join, part)
	s.Label = Where(joins, label, MaxScalar(SubScalar(rows(f.Label, part), 1), 0))
	s.Kind = Where(joins, MulScalar(OnesLike(s.Kind), stepForward), Where(parts, MulScalar(OnesLike(s.Kind), stepBack), ZerosLike(s.Kind)))

	children := rows(s.Nodes, Stack([]*Node{rows(f.Root, join), rows(f.Root, AddScalar(join, 1))}, 1)) // [B,2,d]
	child := func(i int) *Node { return Squeeze(SliceAxis(children, 1, AxisElem(i)), 1) }
	made := s.embedding(label, join, joins, child) // [B,d]
	all := s.Nodes.Shape().Dimensions
	node := Iota(made.Graph(), shapes.Make(dtypes.Int32, all[0], all[1]), 1)
	here := LogicalAnd(Equal(node, InsertAxes(AddScalar(join, f.Words()), -1)), InsertAxes(joins, -1))
	s.Nodes = Where(BroadcastToDims(InsertAxes(here, -1), all...), BroadcastToDims(InsertAxes(made, 1), all...), s.Nodes)

	s.Made = put(mark(s.Made, join, joins), s.Ups, s.Made)
	s.Undone = put(mark(s.Undone, part, parts), s.Done, s.Undone)
	s.Forest = f.Merge(join, label, joins).Split(part, parts)
}

// embedding is that of the trees that are joined. Where labels are summed out, it also says what they are as symbols.
func (s *stepper) embedding(label, join, joins *Node, child func(i int) *Node) *Node {
	if s.Grammar == nil {
		return s.tree(label, child(0), child(1))
	}
	f, in := s.Forest, s.Inside
	part := func(gap *Node) (symbols, log *Node) {
		return rows(in.Symbols, rows(f.Root, gap)), rows(in.Log, rows(f.Root, gap))
	}
	left, logLeft := part(join)
	right, logRight := part(AddScalar(join, 1))
	symbols, added := s.merged(s.Rules, left, right)
	here := mark(in.Log, AddScalar(join, f.Words()), joins)
	s.Inside.Log = put(here, Add(added, Add(logLeft, logRight)), in.Log)
	wide := in.Symbols.Shape().Dimensions
	s.Inside.Symbols = Where(BroadcastToDims(InsertAxes(here, -1), wide...), BroadcastToDims(InsertAxes(symbols, 1), wide...), in.Symbols)
	return s.layers(s.expected(s.labels(symbols)), child(0), child(1)).out
}
