package forest

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// Walk is a batch of walks through forests: so many steps back by P_B, then forward to whole trees by P_F.
type Walk struct {
	Forest Forest // where the walks are
	Nodes  *Node  // [B,n+G,d]: embeddings of all nodes of these forests

	// The behaviour's log-probabilities, [B]: log P_B and log P_F of the steps that were undone, log P_F and log P_B of those that were made.
	// What a step has the other way round is added by the pass after it. A walk that does not rise must ask for one step back more than
	// it can make, or UndoneForward may lack the last one.
	UndoneBack, UndoneForward, MadeForward, MadeBack *Node
	// Undone and Made [B,G] number the steps at which a gap was opened and closed; -1 if it was not.
	Undone, Made *Node
}

// Embed starts walks at given forests, which it reads bottom-up. Leaves are [B,n].
func (m Network) Embed(scope *model.Scope, f Forest, leaves *Node) Walk {
	w, z := m.weights(scope, leaves.Graph()), f.Trees()
	order := NewPlan(z, GreaterThan(f.Label, ZerosLike(f.Label)))
	return newWalk(f, order.byNode(w.embed(order, leaves, z)))
}

// Begin starts walks at bare words [B,n]; later words than Length are padding.
func (m Network) Begin(scope *model.Scope, words, length *Node) Walk {
	leaves := m.weights(scope, words.Graph()).token(words) // [B,n,d]
	b, n := words.Shape().Dim(0), words.Shape().Dim(1)
	empty := Zeros(words.Graph(), shapes.Make(m.DType, b, n-1, m.Width))
	return newWalk(Start(n, length), Concatenate([]*Node{leaves, empty}, 1))
}

func newWalk(f Forest, nodes *Node) Walk {
	zero := Zeros(nodes.Graph(), shapes.Make(nodes.DType(), f.Length.Shape().Dim(0)))
	never := Neg(OnesLike(f.Label))
	return Walk{
		Forest: f, Nodes: nodes, UndoneBack: zero, UndoneForward: zero, MadeForward: zero, MadeBack: zero, Undone: never, Made: never,
	}
}

// Journey is a walk that is about to be made, or under way: the state of the loop that makes it.
//
// The loop uses reductions and scalars freely, so a program that makes journeys has to do little else (see nn.Loop): one
// program sets out, and another one goes.
type Journey struct {
	Walk
	more  *Node // bool scalar: whether to go on
	done  *Node // [B]: steps back so far, tried ones too
	ups   *Node // [B]: passes that were not for steps back, also those after the walk's end
	gap   *Node // [B]: where the last step was
	label *Node // [B]: its label
	kind  *Node // [B]: what the last step was
	key   *Node

	back, rise    *Node // [B]
	beta, epsilon *Node // [B], of the behaviour
}

// SetOut prepares a walk: first back for so many steps (int32; walks that reach bare words stay there), then, if rise (bool) holds,
// forward to whole trees. It starts from whole trees, or back is 0. How is the behaviour, with both its numbers given. All these are
// scalars or [B].
func (m Network) SetOut(from Walk, r *rng.Stream, back, rise *Node, how gfn.Behaviour) Journey {
	each := func(x *Node) *Node { return BroadcastToDims(x, from.Forest.Length.Shape().Dim(0)) }
	j := Journey{
		Walk: newWalk(from.Forest, from.Nodes), back: each(back), rise: each(rise), key: r.State(),
		beta: each(ConvertDType(how.Beta, m.DType)), epsilon: each(ConvertDType(how.Epsilon, m.DType)),
	}
	j.begin()
	return j
}

// Go makes journeys. No gradient flows.
//
// Each pass of the loop evaluates the network once for all walks. It settles what the pass before left open, since the forward
// probability of an undone step is read at the state that the step back leads to, and the other way round; and it makes a step.
// The top of a whole tree is the only thing to split, so the first step back, when setting out, needs no network.
func (m Network) Go(scope *model.Scope, j Journey) Walk {
	return m.GoOn(scope, j, nil, m.Positions).Walk
}

// GoOn makes a leg of journeys: so many passes (left, int32 scalar, at least 1; nil for all of them), or fewer if they end. No forest may have
// more trees than places in these passes, or what it returns is wrong without saying so; more places cost arithmetic and change
// nothing but how a backend may round sums. The loop cannot be one of nn.Repeat, whose rounds are fixed when a program is compiled.
func (m Network) GoOn(scope *model.Scope, j Journey, left *Node, places int) Journey {
	w := m.weights(scope, j.Nodes.Graph()).halved()
	var leg []*Node // whether it goes on, beside whether the journey does
	if left != nil {
		leg = []*Node{j.more, left}
	}
	out := nn.Loop(slices.Concat(leg, j.List(), w.list()), func(state []*Node) []*Node {
		rest := state[len(leg):]
		t := stepper{JourneyOf(rest), w.with(rest[journeySize:]), places}
		t.pass()
		var head []*Node
		if left != nil {
			still := SubScalar(state[1], 1)
			head = []*Node{LogicalAnd(t.more, GreaterThan(still, ZerosLike(still))), still}
		}
		return slices.Concat(head, t.List(), rest[journeySize:])
	})
	return JourneyOf(out[len(leg):])
}

// stepper makes the steps of journeys.
type stepper struct {
	Journey
	*weights
	places int
}

// Kinds of steps.
const (
	noStep = iota
	stepBack
	stepForward
)

// begin makes the first step back, from whole trees, if there is one to make.
func (s *Journey) begin() {
	n := s.Forest.Words()
	on := GreaterThan(s.back, ZerosLike(s.back))
	s.gap = MaxScalar(SubScalar(Squeeze(SliceAxis(s.Forest.Root, 1, AxisElem(0)), 1), n), 0)
	s.label = MaxScalar(SubScalar(at(s.Forest.Label, s.gap), 1), 0)
	s.kind = Where(on, MulScalar(OnesLike(s.gap), stepBack), ZerosLike(s.gap))
	s.Undone = put(LogicalAnd(is(s.Undone, s.gap), InsertAxes(on, -1)), ZerosLike(s.gap), s.Undone)
	s.Forest = s.Forest.Split(s.gap, on)
	s.done = ConvertDType(on, dtypes.Int32)
	s.ups = ZerosLike(s.done)
	s.more = anywhere(LogicalOr(s.rise, LessThan(s.done, s.back)))
}

// anywhere says whether a mark is set at all, a scalar.
func anywhere(marks *Node) *Node {
	n := ReduceAllMax(ConvertDType(marks, dtypes.Int32))
	return GreaterThan(n, ZerosLike(n))
}

// JourneyWalk is where the walk begins in the list of a journey, which is the rest of it.
const JourneyWalk = 11

const journeySize = JourneyWalk + WalkSize

// List is what a journey is made of, for the program that makes it; its first element is the one that nn.Loop looks at.
func (s Journey) List() []*Node {
	return append([]*Node{s.more, s.done, s.ups, s.gap, s.label, s.kind, s.key, s.back, s.rise, s.beta, s.epsilon}, s.Walk.List()...)
}

// JourneyOf undoes List.
func JourneyOf(x []*Node) Journey {
	return Journey{
		more: x[0], done: x[1], ups: x[2], gap: x[3], label: x[4], kind: x[5], key: x[6], back: x[7], rise: x[8], beta: x[9], epsilon: x[10],
		Walk: WalkOf(x[JourneyWalk:]),
	}
}

// pass evaluates the network once, settles the last step and makes the next.
func (s *stepper) pass() {
	r := s.read(s.Forest, s.Nodes, s.places)
	position, mayJoin := r.position()
	split, maySplit := r.split()
	legal := Stack([]*Node{mayJoin, maySplit}, 1)
	logP := s.logProbs(Stack([]*Node{position, split}, 1), legal) // [B,2,M]
	part := func(x *Node, i int) *Node { return Squeeze(SliceAxis(x, 1, AxisElem(i)), 1) }
	logJoin, logSplit := part(logP, 0), part(logP, 1)
	down := LessThan(s.done, s.back) // [B]
	choice := func(ifDown, ifUp *Node) *Node {
		return Where(BroadcastToShape(InsertAxes(down, -1), ifDown.Shape()), ifDown, ifUp)
	}

	// Where the last step was, and where the next one will be. Both read a label.
	g, b, m, most := r.hidden.Graph(), s.gap.Shape().Dim(0), mayJoin.Shape().Dim(1), min(s.Forest.Words(), s.Positions)
	// As many random numbers as for the most places, so that draws do not depend on places.
	random := rng.In(s.key)
	u := random.Uniform(s.DType, b, most+s.Labels)
	s.key = random.State()
	was := at(r.place, at(s.Forest.First, s.gap))
	next := rng.Choose(SliceAxis(u, 1, AxisRange(0, m)), Exp(choice(logSplit, logJoin)))
	logits := s.head(labelHead, rows(r.hidden, Stack([]*Node{was, next}, 1))) // [B,2,N]
	logLabel := s.logProbs(logits, always(logits))
	label := rng.Choose(SliceAxis(u, 1, AxisRangeToEnd(most)), Exp(part(logLabel, 1)))
	add := func(to **Node, on, value *Node) { *to = Add(*to, Where(on, value, ZerosLike(value))) }
	last := func(kind int32) *Node { return Equal(s.kind, Const(g, kind)) }
	add(&s.UndoneForward, last(stepBack), Add(at(logJoin, was), at(part(logLabel, 0), s.label)))
	add(&s.MadeBack, last(stepForward), at(logSplit, was))

	can := at(choice(maySplit, mayJoin), next)
	parts, joins := LogicalAnd(down, can), LogicalAnd(LogicalAnd(LogicalNot(down), s.rise), can)
	add(&s.MadeForward, joins, Add(at(logJoin, next), at(part(logLabel, 1), label)))
	add(&s.UndoneBack, parts, at(logSplit, next))
	word := at(r.word, next)
	s.move(joins, parts, at(s.Forest.Last, word), MaxScalar(SubScalar(at(s.Forest.Root, word), s.Forest.Words()), 0), label)
	s.done = Add(s.done, ConvertDType(down, dtypes.Int32))
	s.ups = Add(s.ups, ConvertDType(LogicalNot(down), dtypes.Int32))
	// A walk that rises goes on while it has a gap to close: its first tree does not end with its last word. A network that says nothing
	// finite closes none, and must not keep it for ever.
	first := Squeeze(SliceAxis(s.Forest.Last, 1, AxisElem(0)), 1)
	rises := LogicalAnd(s.rise, LessThan(first, SubScalar(s.Forest.Length, 1)))
	rises = LogicalAnd(rises, LessThan(s.ups, Const(g, int32(s.Forest.Words()))))
	s.more = anywhere(LogicalOr(LessThan(s.done, s.back), rises))
}

// logProbs are those of the behaviour, [B,2,...]. Without epsilon they come from the logits alone, exact where probabilities are tiny.
func (s *stepper) logProbs(logits, legal *Node) *Node {
	how := gfn.Behaviour{Beta: InsertAxes(s.beta, -1, -1)}
	if s.Mixes {
		how.Epsilon = InsertAxes(s.epsilon, -1, -1)
	}
	return how.LogProbs(logits, legal)
}

// move joins trees at a gap under a label in some rows and splits the node at another gap in others.
func (s *stepper) move(joins, parts, join, part, label *Node) {
	f := s.Forest
	s.gap = Where(joins, join, part)
	s.label = Where(joins, label, MaxScalar(SubScalar(at(f.Label, part), 1), 0))
	s.kind = Where(joins, MulScalar(OnesLike(s.kind), stepForward), Where(parts, MulScalar(OnesLike(s.kind), stepBack), ZerosLike(s.kind)))

	children := rows(s.Nodes, Stack([]*Node{at(f.Root, join), at(f.Root, AddScalar(join, 1))}, 1)) // [B,2,d]
	child := func(i int) *Node { return Squeeze(SliceAxis(children, 1, AxisElem(i)), 1) }
	made := s.tree(label, child(0), child(1)) // [B,d]
	all := s.Nodes.Shape().Dimensions
	node := Iota(made.Graph(), shapes.Make(dtypes.Int32, all[0], all[1]), 1)
	here := LogicalAnd(Equal(node, InsertAxes(AddScalar(join, f.Words()), -1)), InsertAxes(joins, -1))
	s.Nodes = Where(BroadcastToDims(InsertAxes(here, -1), all...), BroadcastToDims(InsertAxes(made, 1), all...), s.Nodes)

	mark := func(old, on, gap, step *Node) *Node {
		return put(LogicalAnd(is(old, gap), InsertAxes(on, -1)), step, old)
	}
	s.Made = mark(s.Made, joins, join, s.ups)
	s.Undone = mark(s.Undone, parts, part, s.done)
	s.Forest = f.Merge(join, label, joins)
	s.Forest = s.Forest.Split(part, parts)
}

// Where the tensors of a walk are in its list.
const (
	WalkNodes = iota
	WalkUndoneBack
	WalkUndoneForward
	WalkMadeForward
	WalkMadeBack
	WalkUndone
	WalkMade
	WalkLabel
	WalkLeft
	WalkRight
	WalkRoot
	WalkFirst
	WalkLast
	WalkLength
	WalkSize // the number of them

	WalkForest = WalkLabel // where the forest begins, which is the rest
)

// List is what a walk is made of, for programs that hand it on.
func (w Walk) List() []*Node {
	return append([]*Node{w.Nodes, w.UndoneBack, w.UndoneForward, w.MadeForward, w.MadeBack, w.Undone, w.Made}, w.Forest.State()...)
}

// WalkOf undoes List.
func WalkOf(x []*Node) Walk {
	w := RouteOf(x[WalkUndone:])
	w.Nodes, w.UndoneBack, w.UndoneForward = x[WalkNodes], x[WalkUndoneBack], x[WalkUndoneForward]
	w.MadeForward, w.MadeBack = x[WalkMadeForward], x[WalkMadeBack]
	return w
}

// RouteSize is the number of tensors of a walk that its paths depend on.
const RouteSize = WalkSize - WalkUndone

// RouteOf returns a walk without embeddings and probabilities, from its list after these: enough for its paths.
func RouteOf(x []*Node) Walk {
	return Walk{Undone: x[0], Made: x[1], Forest: FromState(gfn.State(x[WalkForest-WalkUndone : RouteSize]))}
}
