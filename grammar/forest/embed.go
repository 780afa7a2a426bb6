package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/grammar"
)

// Plan says in which order the nodes of trees can be computed, children first: by the number of their words.
type Plan struct {
	slot *Node // [B,n+G]: where the value of a node is found, leaves first
	// By step [B,G]: the gap of the node, its children by slot.
	gap, left, right *Node
}

// NewPlan orders the live nodes [B,G] of trees in order of gaps; the others come last, and what they become means
// nothing.
func NewPlan(z grammar.Trees, live *Node) Plan {
	g := z.Label.Graph()
	b, k := z.Label.Shape().Dim(0), z.Label.Shape().Dim(1)
	n := k + 1
	first, last := spans(z, live)
	width := Where(live, Sub(last, first), MulScalar(OnesLike(first), n)) // [B,G]
	mine, other := InsertAxes(width, 2), InsertAxes(width, 1)
	square := shapes.Make(dtypes.Int32, 1, k, k)
	earlier := LessThan(Iota(g, square, 2), Iota(g, square, 1))
	precedes := LogicalOr(LessThan(other, mine), LogicalAnd(Equal(other, mine), BroadcastToDims(earlier, b, k, k)))
	step := ReduceSum(ConvertDType(precedes, dtypes.Int32), 2) // [B,G]
	p := Plan{slot: Concatenate([]*Node{Iota(g, shapes.Make(dtypes.Int32, b, n), 1), AddScalar(step, n)}, 1)}

	is := Equal(InsertAxes(step, 1), BroadcastToDims(Iota(g, square, 1), b, k, k)) // [B,step,gap]
	byStep := func(x *Node) *Node {
		x = BroadcastToDims(InsertAxes(x, 1), b, k, k)
		return ReduceSum(Where(is, x, ZerosLike(x)), 2)
	}
	p.gap = byStep(count(z.Label))
	p.left, p.right = byStep(rows(p.slot, z.Left)), byStep(rows(p.slot, z.Right))
	return p
}

// spans are the first and last words of the live nodes of trees: what their leftmost and rightmost descendants are,
// found by jumps that double.
func spans(z grammar.Trees, live *Node) (first, last *Node) {
	k := z.Label.Shape().Dim(1)
	follow := func(child *Node) *Node {
		words := Iota(child.Graph(), shapes.Make(dtypes.Int32, child.Shape().Dim(0), k+1), 1)
		to := Concatenate([]*Node{words, Where(live, child, ZerosLike(child))}, 1) // [B,n+G]
		for reach := 1; reach < k; reach *= 2 {
			to = rows(to, to)
		}
		return SliceAxis(to, 1, AxisRangeToEnd(k+1))
	}
	return follow(z.Left), follow(z.Right)
}

// Fold computes a value [B,w] of every node from those of its children, step by step: [B,n+G,w] by slot. Leaves are
// [B,n,w].
func (p Plan) Fold(leaves *Node, node func(step int, left, right *Node) *Node) *Node {
	done := leaves
	for step := range p.gap.Shape().Dim(1) {
		of := func(x *Node) *Node { return Squeeze(SliceAxis(x, 1, AxisElem(step)), 1) }
		pair := Stack([]*Node{of(p.left), of(p.right)}, 1)                    // [B,2]
		hot := OneHot(pair, done.Shape().Dim(1), done.DType())                // [B,2,n+step]
		both := DotGeneral(hot, []int{2}, []int{0}, done, []int{1}, []int{0}) // [B,2,w]
		child := func(i int) *Node { return Squeeze(SliceAxis(both, 1, AxisElem(i)), 1) }
		done = Concatenate([]*Node{done, InsertAxes(node(step, child(0), child(1)), 1)}, 1)
	}
	return done
}

// embed computes embeddings of all nodes of trees over leaves [B,n], by slot. Symbols are Inside.Symbols where labels
// are summed out, and nil where trees have them.
func (w *weights) embed(p Plan, leaves *Node, z grammar.Trees, symbols *Node) *Node {
	var labels *Node // [B,G,d] by step
	if symbols != nil {
		byGap := w.expected(w.labels(SliceAxis(symbols, 1, AxisRangeToEnd(leaves.Shape().Dim(1)))))
		labels = rows(byGap, p.gap)
	} else {
		labels = w.symbol(rows(z.Label, p.gap))
	}
	if w.Rolled {
		return w.rolled(p, w.token(leaves), labels)
	}
	return p.Fold(w.token(leaves), func(step int, left, right *Node) *Node {
		return w.layers(Squeeze(SliceAxis(labels, 1, AxisElem(step)), 1), left, right).out
	})
}

// Top reads values by slot [B,n+G,w] at the tops of whole trees over so many words [B].
func (p Plan) Top(x, length *Node) *Node {
	words := p.slot.Shape().Dim(1)/2 + 1
	return rows(x, AddScalar(length, words-2)) // the node of most words comes last
}
