package forest

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/nn"
)

// rolled computes embeddings of all nodes by slot, as Fold does with tree, in a loop over steps: a program of few
// operations, where one that is unrolled has dozens for each step. Leaves are [B,n,d], and e, embeddings of labels,
// [B,G,d] by step.
//
// No gradient goes through a loop. So all nodes are computed once more, all at once, from the embeddings of their
// children that the loop has found, and that can be differentiated; and gradients go down from node to node in a loop
// of their own, the other way round.
func (w *weights) rolled(p Plan, leaves, e *Node) *Node {
	found := w.up(p, leaves, e)
	h := w.layers(e, rows(found, p.left), rows(found, p.right))
	all := Concatenate([]*Node{leaves, h.out}, 1)
	return IdentityWithCustomGradient(all, func(_, v *Node) *Node { return w.down(p, h, v) })
}

// up is the loop from leaves to tops. What nodes owe to their labels alone is computed before it.
func (w *weights) up(p Plan, leaves, e *Node) *Node {
	n, d := leaves.Shape().Dim(1), w.Width
	b, steps := e.Shape().Dim(0), e.Shape().Dim(1)
	first := w.treeWeights(0)
	inFirst := DotGeneral(e, []int{2}, nil, SliceAxis(first, 0, AxisRange(0, d)), []int{0}, nil)
	inFirst = Add(inFirst, w.treeBias(0, 3))            // [B,G,d]
	inSecond := BroadcastToDims(w.treeBias(1, 2), b, d) // [B,d]
	inThird := Add(e, w.treeBias(2, 3))                 // [B,G,d]
	children := p.children()                            // [B,G,2]
	empty := Zeros(leaves.Graph(), shapes.Make(w.DType, b, steps, d))
	state := rising{
		Done: Concatenate([]*Node{leaves, empty}, 1), InFirst: inFirst, InThird: inThird, InSecond: inSecond, Children: children,
		Zero: ScalarZero(leaves.Graph(), w.DType), First: SliceAxis(first, 0, AxisRangeToEnd(d)),
		Second: w.treeWeights(1), Third: w.treeWeights(2),
	}
	times := func(x, weights *Node) *Node { return DotGeneral(x, []int{1}, nil, weights, []int{0}, nil) }
	return nn.Repeat(steps, state, func(step *Node, s rising) rising {
		both := Reshape(rows(s.Done, column(s.Children, step)), b, 2*d)
		h := nn.ELUAbove(s.Zero, Add(column(s.InFirst, step), times(both, s.First)))
		h = nn.ELUAbove(s.Zero, Add(s.InSecond, times(h, s.Second)))
		made := Add(column(s.InThird, step), times(h, s.Third))
		s.Done = setColumns(s.Done, InsertAxes(made, 1), Add(step, Const(made.Graph(), int32(n))))
		return s
	}).Done
}

// rising is the state of the loop from leaves to tops. Only Done changes.
type rising struct {
	Done                       *Node // [B,n+G,d]: embeddings, as far as they are made
	InFirst, InThird, InSecond *Node // what a node adds in each layer, apart from its children
	Children, Zero             *Node
	First, Second, Third       *Node // weights
}

// down is the loop from tops to leaves. Given gradients of embeddings as they were used, v [B,n+G,d], it adds to each
// what comes through the parent.
func (w *weights) down(p Plan, h treeLayers, v *Node) *Node {
	d, steps := w.Width, p.gap.Shape().Dim(1)
	b, n := v.Shape().Dim(0), v.Shape().Dim(1)-steps
	g := v.Graph()
	above := p.above() // [B,n+G]
	inner := func(x *Node) *Node { return SliceAxis(x, 1, AxisRangeToEnd(n)) }
	given := Zeros(g, shapes.Make(w.DType, b, 2*steps+1, d)) // what children get from parents, numbered as by above; the last stays 0
	state := falling{
		Given: given, Used: inner(v), Parent: inner(above), Slope1: nn.ELUSlope(h.first), Slope2: nn.ELUSlope(h.second),
		First: SliceAxis(w.treeWeights(0), 0, AxisRangeToEnd(d)), Second: w.treeWeights(1), Third: w.treeWeights(2),
	}
	back := func(dy, weights *Node) *Node { return DotGeneral(dy, []int{1}, nil, weights, []int{1}, nil) }
	given = nn.Repeat(steps, state, func(round *Node, s falling) falling {
		step := Sub(Const(g, int32(steps-1)), round)
		dy := Add(column(s.Used, step), rows(s.Given, column(s.Parent, step)))
		dy = Mul(back(dy, s.Third), column(s.Slope2, step))
		dy = Mul(back(dy, s.Second), column(s.Slope1, step))
		both := Reshape(back(dy, s.First), b, 2, d)
		s.Given = setColumns(s.Given, both, Add(step, step))
		return s
	}).Given
	return Add(v, rows(given, above))
}

// falling is the state of the loop from tops to leaves. Only Given changes.
type falling struct {
	Given                *Node // [B,2G+1,d]: gradients that children get from parents
	Used, Parent         *Node
	Slope1, Slope2       *Node
	First, Second, Third *Node // weights
}

// above says, for each slot [B,n+G], the step of its parent and which child it is: 2 step, or 2 step+1 for the right
// one; 2G where there is no parent. Steps of nodes that are not live come last, so they count where no other step has
// the slot for a child, and what they give is 0.
func (p Plan) above() *Node {
	b, steps, slots := p.gap.Shape().Dim(0), p.gap.Shape().Dim(1), p.slot.Shape().Dim(1)
	all := shapes.Make(dtypes.Int32, b, slots, 2*steps)
	slot, number := Iota(p.gap.Graph(), all, 1), Iota(p.gap.Graph(), all, 2)
	child := BroadcastToDims(Reshape(p.children(), b, 1, 2*steps), all.Dimensions...)
	return ReduceMin(Where(Equal(child, slot), number, MulScalar(OnesLike(number), 2*steps)), 2)
}

// children are both of every node by slot, [B,G,2].
func (p Plan) children() *Node { return Stack([]*Node{p.left, p.right}, 2) }

// column reads a place of the second axis of x, which a scalar says.
func column(x, place *Node) *Node {
	dims := x.Shape().Clone().Dimensions
	dims[1] = 1
	return Squeeze(DynamicSlice(x, starts(x, place), dims), 1)
}

// setColumns replaces places of the second axis of x.
func setColumns(x, values, place *Node) *Node { return DynamicUpdateSlice(x, values, starts(x, place)) }

func starts(x, place *Node) []*Node {
	out := make([]*Node, x.Rank())
	for i := range out {
		out[i] = Const(x.Graph(), int32(0))
	}
	out[1] = place
	return out
}

func (w *weights) treeWeights(layer int) *Node {
	return w.at[fmt.Sprintf("%s/tree/%d/weights", EncoderScope, layer)]
}

func (w *weights) treeBias(layer, rank int) *Node {
	return ExpandLeftToRank(w.at[fmt.Sprintf("%s/tree/%d/bias", EncoderScope, layer)], rank)
}
