package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/grammar"
)

// Forest is a batch of ordered lists of trees, int32 throughout.
type Forest struct {
	Label       *Node // [B,G]: one more than the label of the node at a gap; 0 where the gap is open
	Left, Right *Node // [B,G]: its children; 0 where the gap is open
	Root        *Node // [B,n]: the top of the tree that a word belongs to
	First, Last *Node // [B,n]: the first and the last word of that tree
	Length      *Node // [B]: the number of words; later ones are padding
}

// Start is the forest of bare words.
func Start(words int, length *Node) Forest {
	g, b := length.Graph(), length.Shape().Dim(0)
	open := Zeros(g, shapes.Make(dtypes.Int32, b, words-1))
	each := Iota(g, shapes.Make(dtypes.Int32, b, words), 1)
	return Forest{Label: open, Left: open, Right: open, Root: each, First: each, Last: each, Length: length}
}

// Words is n.
func (f Forest) Words() int { return f.Root.Shape().Dim(1) }

// Open marks the gaps that can be closed: [B,G].
func (f Forest) Open() *Node {
	last := InsertAxes(SubScalar(f.Length, 1), -1)
	return LogicalAnd(LessThan(count(f.Label), last), Equal(f.Label, ZerosLike(f.Label)))
}

// Tops marks the gaps whose nodes are tops of trees: [B,G].
func (f Forest) Tops() *Node {
	n := f.Words()
	return Equal(SliceAxis(f.Root, 1, AxisRange(0, n-1)), AddScalar(count(f.Label), n))
}

// Starts marks the words that are the first of their tree: [B,n].
func (f Forest) Starts() *Node {
	word := count(f.First)
	return LogicalAnd(Equal(f.First, word), LessThan(word, InsertAxes(f.Length, -1)))
}

// Merge closes open gaps [B] under labels [B], in the rows where on [B] holds.
func (f Forest) Merge(gap, label, on *Node) Forest {
	next := AddScalar(gap, 1)
	first, last := rows(f.First, gap), rows(f.Last, next)
	here := mark(f.Label, gap, on)
	inside := LogicalAnd(between(f.Root, first, last), InsertAxes(on, -1))
	node := AddScalar(gap, f.Words())
	return Forest{
		Label: put(here, AddScalar(label, 1), f.Label),
		Left:  put(here, rows(f.Root, gap), f.Left),
		Right: put(here, rows(f.Root, next), f.Right),
		Root:  put(inside, node, f.Root), First: put(inside, first, f.First), Last: put(inside, last, f.Last),
		Length: f.Length,
	}
}

// Split takes the nodes at gaps [B], which are tops, apart again, in the rows where on [B] holds.
func (f Forest) Split(gap, on *Node) Forest {
	next, none := AddScalar(gap, 1), ZerosLike(gap)
	first, last := rows(f.First, gap), rows(f.Last, gap)
	here := mark(f.Label, gap, on)
	onLeft := LogicalAnd(between(f.Root, first, gap), InsertAxes(on, -1))
	onRight := LogicalAnd(between(f.Root, next, last), InsertAxes(on, -1))
	set := func(left, right, old *Node) *Node { return put(onLeft, left, put(onRight, right, old)) }
	return Forest{
		Label: put(here, none, f.Label), Left: put(here, none, f.Left), Right: put(here, none, f.Right),
		Root:  set(rows(f.Left, gap), rows(f.Right, gap), f.Root),
		First: set(first, next, f.First), Last: set(gap, last, f.Last),
		Length: f.Length,
	}
}

// Trees are the forests as trees, in order of gaps: whole trees where no gap is open.
func (f Forest) Trees() grammar.Trees {
	return grammar.Trees{Left: f.Left, Right: f.Right, Label: MaxScalar(SubScalar(f.Label, 1), 0)}
}

// FromTrees turns whole trees, in order of gaps, into forests of one tree each.
func FromTrees(z grammar.Trees, length *Node) Forest {
	k := z.Label.Shape().Dim(1)
	live := LessThan(count(z.Label), InsertAxes(SubScalar(length, 1), -1))
	zero := ZerosLike(z.Label)
	node := AddScalar(count(z.Label), k+1)
	taken := children(z, live, func(is *Node) *Node { return ReduceMax(ConvertDType(is, dtypes.Int32), -1) })
	top := ReduceSum(Where(LogicalAnd(live, Equal(taken, zero)), node, zero), 1)
	f := Start(k+1, length)
	inside := LessThan(f.Root, InsertAxes(length, -1))
	return Forest{
		Label: Where(live, AddScalar(z.Label, 1), zero), Left: Where(live, z.Left, zero), Right: Where(live, z.Right, zero),
		Root: put(inside, top, f.Root), First: put(inside, ZerosLike(top), f.First), Last: put(inside, SubScalar(length, 1), f.Last),
		Length: length,
	}
}

// children reduces, for every node [B,G] in order of gaps, over the nodes that may have taken it as a child: [B,G,G].
func children(z grammar.Trees, live *Node, reduce func(is *Node) *Node) *Node {
	node := InsertAxes(AddScalar(count(z.Label), z.Label.Shape().Dim(1)+1), -1)
	takes := func(c *Node) *Node { return Equal(node, InsertAxes(c, 1)) }
	return reduce(LogicalAnd(LogicalOr(takes(z.Left), takes(z.Right)), InsertAxes(live, 1)))
}

// count numbers the last axis of x.
func count(x *Node) *Node {
	return Iota(x.Graph(), shapes.Make(dtypes.Int32, x.Shape().Dimensions...), -1)
}

// rows reads, for each row of x [B,k,...], the element at a place [B,...] along the second axis.
func rows(x, place *Node) *Node {
	row := Iota(x.Graph(), shapes.Make(dtypes.Int32, place.Shape().Dimensions...), 0)
	return Gather(x, Stack([]*Node{row, place}, -1))
}

// mark marks one place of each row of x, in the rows where on [B] holds.
func mark(x, at, on *Node) *Node {
	return LogicalAnd(Equal(count(x), InsertAxes(at, -1)), InsertAxes(on, -1))
}

// between marks the places from first to last of each row of x.
func between(x, first, last *Node) *Node {
	at := count(x)
	return LogicalAnd(GreaterOrEqual(at, InsertAxes(first, -1)), LessOrEqual(at, InsertAxes(last, -1)))
}

// put sets the marked places of each row to the row's value [B].
func put(where, value, old *Node) *Node {
	return Where(where, BroadcastToShape(InsertAxes(value, -1), old.Shape()), old)
}
