package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/grammar"
)

// Path is a batch of trajectories, each of which ends in a whole tree: the tree, and the step at which each gap was closed. A path of k
// steps goes through forests of k+1, k, ..., 1 trees.
type Path struct {
	Trees  grammar.Trees // in order of gaps, [P,G]
	Leaves *Node         // [P,n]
	Length *Node         // [P]
	When   *Node         // [P,G] int32: -1 for gaps that are closed from the start
	Steps  *Node         // [P] int32
}

// Path is the path that a walk from bare words made, or that the second half of a move made.
func (w Walk) Path(leaves *Node) Path {
	return Path{Trees: w.Forest.Trees(), Leaves: leaves, Length: w.Forest.Length, When: w.Made, Steps: made(w.Made)}
}

// UndonePath is the path that a walk undid, in forward order; from is the walk's start.
func (w Walk) UndonePath(from Forest, leaves *Node) Path {
	steps := made(w.Undone)
	when := Where(GreaterOrEqual(w.Undone, ZerosLike(w.Undone)), Sub(InsertAxes(SubScalar(steps, 1), -1), w.Undone), w.Undone)
	return Path{Trees: from.Trees(), Leaves: leaves, Length: from.Length, When: when, Steps: steps}
}

// widen makes room for more words, which are padding.
func (p Path) widen(words int) Path {
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
	return Path{Trees: z, Leaves: pad(p.Leaves), Length: p.Length, When: pad(p.When), Steps: p.Steps}
}

// join puts paths below each other.
func join(paths []Path) Path {
	words := 0
	for _, p := range paths {
		words = max(words, p.Leaves.Shape().Dim(1))
	}
	all := make([][]*Node, 7)
	for _, p := range paths {
		p = p.widen(words)
		for i, x := range []*Node{p.Trees.Left, p.Trees.Right, p.Trees.Label, p.Leaves, p.Length, p.When, p.Steps} {
			all[i] = append(all[i], x)
		}
	}
	of := func(i int) *Node {
		if len(all[i]) == 1 {
			return all[i][0]
		}
		return Concatenate(all[i], 0)
	}
	return Path{
		Trees: grammar.Trees{Left: of(0), Right: of(1), Label: of(2)}, Leaves: of(3), Length: of(4), When: of(5), Steps: of(6),
	}
}

// made counts steps.
func made(when *Node) *Node { return OnePlus(ReduceMax(when, 1)) }

// Tokens is the number of trees that all forests of a path have, the last one left out, which has one and nothing to decide: k+1, k, ..., 2
// for k steps.
func Tokens(steps int) int { return steps * (steps + 3) / 2 }

// Tokens is that of each path.
func (p Path) Tokens() *Node { return tokens(p.Steps) }

func tokens(steps *Node) *Node {
	return Div(Mul(steps, AddScalar(steps, 3)), Const(steps.Graph(), int32(2)))
}

// live marks the gaps within sentences.
func (p Path) live() *Node {
	return LessThan(count(p.When), InsertAxes(SubScalar(p.Length, 1), -1))
}

// steps are the forests that paths are at before each of their steps; shapes are [P,T] unless said otherwise.
type steps struct {
	Path
	most    int   // T
	valid   *Node // bool: the step is one of the path
	trees   *Node // how many trees there are
	gap     *Node // the gap that the step closes
	label   *Node // and its label
	place   *Node // the place of the tree left of the gap, and after the step of the joined tree
	pending *Node // [P,T,G] bool: gaps that are open before a step
}

// steps lays out the steps of paths, at most so many.
func (p Path) steps(most int) steps {
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
	s := steps{Path: p, most: most, valid: LessThan(t, InsertAxes(p.Steps, -1))}
	s.trees = OnePlus(Sub(InsertAxes(p.Steps, -1), t))
	s.pending = LogicalAnd(live, GreaterOrEqual(when, at))
	gaps := Iota(g, shapes.Make(dtypes.Int32, 1, 1, k), 2)
	s.gap = total(now, gaps)
	s.label = total(now, InsertAxes(p.Trees.Label, 1))
	earlier := LessThan(BroadcastToDims(gaps, all...), BroadcastToDims(InsertAxes(s.gap, 2), all...))
	s.place = total(LogicalAnd(s.pending, earlier), Const(g, [][][]int32{{{1}}}))
	return s
}
