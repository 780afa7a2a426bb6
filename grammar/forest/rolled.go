package forest

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/nn"
)

// rolled computes embeddings of all nodes by slot, as Fold does with tree, in a loop over steps: a program of few operations, where one
// that is unrolled has dozens for each step. Leaves are [B,n,d], labels by step [B,G].
//
// No gradient goes through a loop. So all nodes are computed once more, all at once, from the embeddings of their children that
// the loop has found, and that can be differentiated; and gradients go down from node to node in a loop of their own, the other way round.
func (w *weights) rolled(p Plan, leaves, labels *Node) *Node {
	found := StopGradient(w.up(p, leaves, labels))
	children := func(slot *Node) *Node { return rows(found, slot) }
	e, left, right := w.symbol(labels), children(p.left), children(p.right)
	h := w.layers(e, left, right)
	all := Concatenate([]*Node{leaves, h.out}, 1)
	return IdentityWithCustomGradient(all, func(_, v *Node) *Node { return w.down(p, h, v) })
}

// up is the loop from leaves to tops. What nodes owe to their labels alone is computed before it.
func (w *weights) up(p Plan, leaves, labels *Node) *Node {
	n, d := leaves.Shape().Dim(1), w.Width
	b, steps := labels.Shape().Dim(0), labels.Shape().Dim(1)
	e := w.symbol(labels) // [B,G,d]
	first := w.treeWeights(0)
	own := DotGeneral(e, []int{2}, nil, SliceAxis(first, 0, AxisRange(0, d)), []int{0}, nil)
	own = Add(own, w.treeBias(0, 3))
	out := Add(e, w.treeBias(2, 3))
	middle := BroadcastToDims(w.treeBias(1, 2), b, d)
	done := Concatenate([]*Node{leaves, Zeros(leaves.Graph(), shapes.Make(w.DType, b, steps, d))}, 1)
	state := []*Node{
		done, own, out, middle, Stack([]*Node{p.left, p.right}, 2), ScalarZero(leaves.Graph(), w.DType),
		SliceAxis(first, 0, AxisRangeToEnd(d)), w.treeWeights(1), w.treeWeights(2),
	}
	on := func(x, weights *Node) *Node { return DotGeneral(x, []int{1}, nil, weights, []int{0}, nil) }
	return nn.Repeat(steps, state, func(step *Node, s []*Node) []*Node {
		done, own, out, middle, children, zero := s[0], s[1], s[2], s[3], s[4], s[5]
		both := Reshape(rows(done, column(children, step)), b, 2*d)
		h := nn.ELUAbove(zero, Add(column(own, step), on(both, s[6])))
		h = nn.ELUAbove(zero, Add(middle, on(h, s[7])))
		y := Add(column(out, step), on(h, s[8]))
		return append([]*Node{setColumn(done, y, Add(step, Const(y.Graph(), int32(n))))}, s[1:]...)
	})[0]
}

// down is the loop from tops to leaves. Given gradients of embeddings as they were used, v [B,n+G,d], it adds to each what comes through the
// parent.
func (w *weights) down(p Plan, h treeLayers, v *Node) *Node {
	d, steps := w.Width, p.gap.Shape().Dim(1)
	b, n := v.Shape().Dim(0), v.Shape().Dim(1)-steps
	g := v.Graph()
	above := p.above()                                                              // [B,n+G]
	through := Zeros(g, shapes.Make(w.DType, b, 2*steps+1, d))                      // by above: what a node gives to its children; the last stays 0
	slope := func(h *Node) *Node { return OnePlus(Min(h, ScalarZero(g, w.DType))) } // of ELU, from its result
	inner := func(x *Node) *Node { return SliceAxis(x, 1, AxisRangeToEnd(n)) }
	state := []*Node{
		through, inner(v), inner(above), slope(h.first), slope(h.second),
		SliceAxis(w.treeWeights(0), 0, AxisRangeToEnd(d)), w.treeWeights(1), w.treeWeights(2),
	}
	back := func(dy, weights *Node) *Node { return DotGeneral(dy, []int{1}, nil, weights, []int{1}, nil) }
	through = nn.Repeat(steps, state, func(round *Node, s []*Node) []*Node {
		through, v, above, first, second := s[0], s[1], s[2], s[3], s[4]
		step := Sub(Const(g, int32(steps-1)), round)
		dy := Add(column(v, step), rows(through, column(above, step)))
		dy = Mul(back(dy, s[7]), column(second, step))
		dy = Mul(back(dy, s[6]), column(first, step))
		both := Reshape(back(dy, s[5]), b, 2, d)
		return append([]*Node{setColumns(through, both, Add(step, step))}, s[1:]...)
	})[0]
	return Add(v, rows(through, above))
}

// above says, for each slot [B,n+G], the step of its parent and which child it is: 2 step, or 2 step+1 for the right one; 2G where there is no parent.
func (p Plan) above() *Node {
	g := p.gap.Graph()
	b, steps, slots := p.gap.Shape().Dim(0), p.gap.Shape().Dim(1), p.slot.Shape().Dim(1)
	all := shapes.Make(dtypes.Int32, b, slots, steps)
	slot, step := Iota(g, all, 1), Iota(g, all, 2)
	wide := func(x *Node) *Node { return BroadcastToDims(InsertAxes(x, 1), all.Dimensions...) }
	live := LessThan(step, BroadcastToDims(InsertAxes(p.live, -1, -1), all.Dimensions...))
	none := MulScalar(OnesLike(step), 2*steps)
	number := MulScalar(step, 2)
	of := Where(Equal(wide(p.left), slot), number, Where(Equal(wide(p.right), slot), OnePlus(number), none))
	return ReduceMin(Where(live, of, none), 2)
}

// column reads a place of the second axis of x, which a scalar says.
func column(x, place *Node) *Node {
	dims := x.Shape().Clone().Dimensions
	dims[1] = 1
	return Squeeze(DynamicSlice(x, starts(x, place), dims), 1)
}

func setColumn(x, value, place *Node) *Node { return setColumns(x, InsertAxes(value, 1), place) }

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
