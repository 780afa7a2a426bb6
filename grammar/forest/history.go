package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/program"
)

// History is a batch of trajectories, each of which ends in a whole tree: the tree, and the step at which each gap was
// closed. One of k steps goes through forests of k+1, k, ..., 1 trees.
type History struct {
	Trees  grammar.Trees // in order of gaps, [P,G]
	Leaves *Node         // [P,n]
	// Symbols are Inside.Symbols of the trees, if labels are summed out, and nil if they are not.
	Symbols *Node
	Length  *Node // [P]
	When    *Node // [P,G] int32: -1 for gaps that are closed from the start
	Steps   *Node // [P] int32
}

// Built is what a walk from bare words made, or the second half of a move.
func (r Route) Built(leaves *Node) History {
	return History{
		Trees: r.Forest.Trees(), Leaves: leaves, Symbols: r.Inside.Symbols, Length: r.Forest.Length, When: r.Made, Steps: made(r.Made),
	}
}

// UndoneHistory is what a walk undid, in forward order, given its numbers of steps: from is the walk's start, and in
// what is known of its nodes if labels are summed out.
func UndoneHistory(undone *Node, from Forest, in Inside, leaves *Node) History {
	steps := made(undone)
	when := Where(GreaterOrEqual(undone, ZerosLike(undone)), Sub(InsertAxes(SubScalar(steps, 1), -1), undone), undone)
	return History{Trees: from.Trees(), Leaves: leaves, Symbols: in.Symbols, Length: from.Length, When: when, Steps: steps}
}

// widen makes room for more words, which are padding.
func (p History) widen(words int) History {
	rows, n := p.Leaves.Shape().Dim(0), p.Leaves.Shape().Dim(1)
	if n == words {
		return p
	}
	pad := func(x *Node) *Node {
		return Concatenate([]*Node{x, Zeros(x.Graph(), shapes.Make(dtypes.Int32, rows, words-n))}, 1)
	}
	node := func(x *Node) *Node {
		return pad(Where(GreaterOrEqual(x, Const(x.Graph(), int32(n))), AddScalar(x, words-n), x))
	}
	z := grammar.Trees{Left: node(p.Trees.Left), Right: node(p.Trees.Right), Label: pad(p.Trees.Label)}
	out := History{Trees: z, Leaves: pad(p.Leaves), Length: p.Length, When: pad(p.When), Steps: p.Steps}
	if p.Symbols != nil {
		out.Symbols = spread(p.Symbols, n, words)
	}
	return out
}

// join puts histories below each other.
func join(all []History) History {
	words := 0
	for _, h := range all {
		words = max(words, h.Leaves.Shape().Dim(1))
	}
	out := all[0].widen(words)
	for _, h := range all[1:] {
		out = program.Zip(out, h.widen(words), below)
	}
	return out
}

// below puts the rows of y after those of x.
func below(x, y *Node) *Node { return Concatenate([]*Node{x, y}, 0) }

// made counts steps.
func made(when *Node) *Node { return OnePlus(ReduceMax(when, 1)) }

// Tokens is the number of trees that all forests of a path have, the last one left out, which has one and nothing to
// decide: k+1, k, ..., 2 for k steps.
func Tokens(steps int) int { return steps * (steps + 3) / 2 }

// Tokens is that of each path.
func (p History) Tokens() *Node { return tokens(p.Steps) }

func tokens(steps *Node) *Node {
	return Div(Mul(steps, AddScalar(steps, 3)), Const(steps.Graph(), int32(2)))
}

// live marks the gaps within sentences.
func (p History) live() *Node {
	return LessThan(count(p.When), InsertAxes(SubScalar(p.Length, 1), -1))
}

// steps are the forests that paths are at before each of their steps; shapes are [P,T] unless said otherwise.
type steps struct {
	History
	most    int   // T
	valid   *Node // bool: the step is one of the path
	trees   *Node // how many trees there are
	gap     *Node // the gap that the step closes
	label   *Node // and its label
	place   *Node // the place of the tree left of the gap, and after the step of the joined tree
	pending *Node // [P,T,G] bool: gaps that are open before a step
}

// steps lays out the steps of paths, at most so many.
func (p History) steps(most int) steps {
	g := p.When.Graph()
	rows, k := p.When.Shape().Dim(0), p.When.Shape().Dim(1)
	t := Iota(g, shapes.Make(dtypes.Int32, rows, most), 1)
	all := []int{rows, most, k}
	when, at := BroadcastToDims(InsertAxes(p.When, 1), all...), BroadcastToDims(InsertAxes(t, 2), all...)
	live := BroadcastToDims(InsertAxes(p.live(), 1), all...)
	now := LogicalAnd(live, Equal(when, at))
	total := func(marks, x *Node) *Node {
		x = BroadcastToDims(x, all...)
		return ReduceSum(Where(marks, x, ZerosLike(x)), 2)
	}
	s := steps{History: p, most: most, valid: LessThan(t, InsertAxes(p.Steps, -1))}
	s.trees = OnePlus(Sub(InsertAxes(p.Steps, -1), t))
	s.pending = LogicalAnd(live, GreaterOrEqual(when, at))
	gaps := Iota(g, shapes.Make(dtypes.Int32, 1, 1, k), 2)
	s.gap = total(now, gaps)
	s.label = total(now, InsertAxes(p.Trees.Label, 1))
	earlier := LessThan(BroadcastToDims(gaps, all...), BroadcastToDims(InsertAxes(s.gap, 2), all...))
	s.place = total(LogicalAnd(s.pending, earlier), Const(g, [][][]int32{{{1}}}))
	return s
}
