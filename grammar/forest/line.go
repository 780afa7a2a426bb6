package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/nn"
)

// line holds the trees of all forests of many paths, one after another, so that no padding is computed: the forests of
// a path before each of its steps, path by path. Matrix products see the line as it is. For attention it is cut into
// blocks that are at least as long as a forest; a block looks at itself and at its neighbours, as far as they belong to
// the same forest.
type line struct {
	steps
	plan        Plan
	size, block int
	base        *Node // [P,T]: where the forest before a step begins
	fits        *Node // bool scalar: all trees have a place

	// Of the tree at each place of the line, [C].
	node   *Node // the number of its embedding, counted through all paths
	rank   *Node // its place in its forest
	forest *Node // a number that trees of one forest share; 0 where the line is not used
	inner  *Node // bool: it has more than a leaf
}

// newLine lays paths of at most so many steps out on a line of the given size, which must hold all their Tokens.
func newLine(p History, most, size int) *line {
	l := &line{steps: p.steps(most), plan: NewPlan(p.Trees, p.live()), block: (most + 8) / 8 * 8}
	l.size = (size + l.block - 1) / l.block * l.block
	g, b := p.When.Graph(), p.When.Shape().Dim(0)
	square := shapes.Make(dtypes.Int32, b, b)
	others := BroadcastToDims(InsertAxes(p.Tokens(), 0), b, b)
	earlier := LessThan(Iota(g, square, 1), Iota(g, square, 0))
	first := ReduceSum(Where(earlier, others, ZerosLike(others)), 1) // [P]
	l.fits = LessOrEqual(ReduceAllSum(p.Tokens()), Const(g, int32(l.size)))
	// Before step t come forests of k+1, k, ..., k+2-t trees.
	t, k := Iota(g, shapes.Make(dtypes.Int32, b, most), 1), InsertAxes(p.Steps, -1)
	l.base = Add(InsertAxes(first, -1), Sub(tokens(k), tokens(Sub(k, t))))

	ranks := l.ranks()
	at := Add(InsertAxes(l.base, -1), ranks)
	at = Where(l.alive(), at, MulScalar(OnesLike(at), l.size)) // the last place takes what is not used
	spot := Zeros(g, shapes.Make(dtypes.Int32, l.size+1, 4))
	spot = ScatterSum(spot, Reshape(at, -1, 1), Reshape(l.entries(ranks), -1, 4), false, false)
	column := func(i int) *Node {
		return Squeeze(Slice(spot, AxisRange(0, l.size), AxisElem(i)), 1)
	}
	l.node, l.rank, l.forest = column(0), column(1), column(2)
	l.inner = GreaterThan(column(3), ScalarZero(g, dtypes.Int32))
	return l
}

// alive marks the nodes that are tops of trees before each step: [P,T,n+G].
func (l *line) alive() *Node {
	g := l.When.Graph()
	rows, k := l.When.Shape().Dim(0), l.When.Shape().Dim(1)
	live := l.live()
	// Leaves are there from the start, and a tree is a top until its parent is made.
	node := InsertAxes(Iota(g, shapes.Make(dtypes.Int32, rows, 2*k+1), 1), -1) // [P,n+G,1]
	takes := func(c *Node) *Node { return Equal(node, InsertAxes(c, 1)) }
	taken := LogicalAnd(LogicalOr(takes(l.Trees.Left), takes(l.Trees.Right)), InsertAxes(live, 1)) // [P,n+G,G]
	when := BroadcastToDims(InsertAxes(l.When, 1), rows, 2*k+1, k)
	until := ReduceMax(Where(taken, when, MulScalar(OnesLike(when), -2)), 2) // -2: never taken
	until = Where(LessThan(until, MulScalar(OnesLike(until), -1)), MulScalar(OnesLike(until), 1<<20), until)
	leaf := Iota(g, shapes.Make(dtypes.Int32, rows, k+1), 1)
	since := Concatenate([]*Node{Neg(OnesLike(leaf)), l.When}, 1)
	real := Concatenate([]*Node{LessThan(leaf, InsertAxes(l.Length, -1)), live}, 1)

	all := []int{rows, l.most, 2*k + 1}
	t := Iota(g, shapes.Make(dtypes.Int32, all...), 1)
	wide := func(x *Node) *Node { return BroadcastToDims(InsertAxes(x, 1), all...) }
	there := LogicalAnd(LessThan(wide(since), t), GreaterOrEqual(wide(until), t))
	return LogicalAnd(LogicalAnd(there, wide(real)), BroadcastToDims(InsertAxes(l.valid, 2), all...))
}

// ranks counts the trees before that of a node: one for each open gap before its first word. [P,T,n+G]
func (l *line) ranks() *Node {
	rows, k := l.When.Shape().Dim(0), l.When.Shape().Dim(1)
	first, _ := spans(l.Trees, l.live())
	first = Concatenate([]*Node{Iota(first.Graph(), shapes.Make(dtypes.Int32, rows, k+1), 1), first}, 1) // [P,n+G]
	// The gap before word i is i-1.
	open := ConvertDType(l.pending, dtypes.Float32) // [P,T,G]
	before := LessThan(Iota(first.Graph(), shapes.Make(dtypes.Int32, rows, k, 2*k+1), 1),
		BroadcastToDims(InsertAxes(first, 1), rows, k, 2*k+1))
	n := DotGeneral(open, []int{2}, []int{0}, ConvertDType(before, dtypes.Float32), []int{1}, []int{0}) // [P,T,n+G]
	return ConvertDType(n, dtypes.Int32)
}

// entries are what the line says of each top: the number of its embedding, its place, the number of its forest, and
// whether it is an inner node.
func (l *line) entries(ranks *Node) *Node {
	g := l.When.Graph()
	rows, k := l.When.Shape().Dim(0), l.When.Shape().Dim(1)
	all := shapes.Make(dtypes.Int32, rows, l.most, 2*k+1)
	slot := Add(BroadcastToDims(InsertAxes(l.plan.slot, 1), all.Dimensions...), MulScalar(Iota(g, all, 0), 2*k+1))
	forest := Add(MulScalar(Iota(g, all, 0), l.most), Iota(g, all, 1))
	inner := ConvertDType(GreaterThan(Iota(g, all, 2), Const(g, int32(k))), dtypes.Int32)
	return Stack([]*Node{slot, ranks, AddScalar(forest, 1), inner}, -1)
}

// encode evaluates the transformer on the line, given all embeddings by slot, [P,n+G,d]: [C,d].
func (l *line) encode(w *weights, embeddings *Node) *Node {
	x := w.placed(Gather(Reshape(embeddings, -1, w.Width), InsertAxes(l.node, -1)), l.rank)
	blocks := l.size / l.block
	query := Reshape(l.forest, blocks, l.block)
	key := l.window(query)
	mask := LogicalAnd(Equal(InsertAxes(query, 2), InsertAxes(key, 1)), GreaterThan(InsertAxes(query, 2), ScalarZero(x.Graph(), dtypes.Int32)))
	x = w.encode(Reshape(x, blocks, l.block, w.Width), func(q, k, v *Node) *Node {
		if w.Linear {
			return nn.LinearAttendPairs(q, l.window(k), l.window(v), mask)
		}
		return nn.Attend(q, l.window(k), l.window(v), mask)
	})
	return Reshape(x, l.size, w.Width)
}

// window joins each block [blocks, block, ...] with the one before it and the one after it.
func (l *line) window(x *Node) *Node {
	if x.Shape().Dim(0) == 1 {
		return x
	}
	edge := ZerosLike(SliceAxis(x, 0, AxisRange(0, 1)))
	last := x.Shape().Dim(0) - 1
	prior := Concatenate([]*Node{edge, SliceAxis(x, 0, AxisRange(0, last))}, 0)
	later := Concatenate([]*Node{SliceAxis(x, 0, AxisRangeToEnd(1)), edge}, 0)
	return Concatenate([]*Node{prior, x, later}, 1)
}
