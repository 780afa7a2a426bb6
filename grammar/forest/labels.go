package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/rng"
)

// drawLabels draws the labels of whole shapes from the grammar's posterior given the shape, exactly, from the top down:
// one more than the label of the node at each gap, as in Forest.Label, and 0 for padding.
//
// The top is A with a probability in proportion to p(A | ROOT) v_top[A], and what is below A is B and C in proportion
// to p(B,C | A) v_left[B] v_right[C], with the weights v of Inside; where the parent matters, all are seen from there.
func (m Network) drawLabels(t grammar.LogProbs, r *rng.Stream, f Forest, in Inside) *Node {
	g := f.Label.Graph()
	b, gaps, n := f.Label.Shape().Dim(0), f.Label.Shape().Dim(1), f.Words()
	table := m.ruleTable(t)
	k, s := contexts(table), m.Labels+m.Preterminals
	table = Reshape(table, m.Labels*k, s*s)
	seen := Reshape(in.Symbols, b, 2*gaps+1, k, s)
	z := f.Trees()
	order := NewPlan(z, GreaterThan(f.Label, ZerosLike(f.Label)))

	root := ConvertDType(Exp(t.Root), m.DType)
	topNode := Squeeze(SliceAxis(f.Root, 1, AxisElem(0)), 1)
	top := r.Categorical(Mul(BroadcastToDims(InsertAxes(root, 0), b, m.Labels),
		SliceAxis(rows(in.Symbols, topNode), 1, AxisRangeFromStart(m.Labels))))
	none := Zeros(g, shapes.Make(dtypes.Int32, b, gaps))
	here := Equal(AddScalar(count(none), n), InsertAxes(topNode, -1))
	label, context := put(here, AddScalar(top, 1), none), none // of the node at a gap, and what it is seen from
	for step := gaps - 1; step >= 0; step-- {
		gap := Squeeze(SliceAxis(order.gap, 1, AxisElem(step)), 1)
		live := GreaterThan(rows(f.Label, gap), ZerosLike(gap))
		own := rows(label, gap)
		row := MaxScalar(SubScalar(own, 1), 0)
		from := ZerosLike(own)
		if k > 1 {
			row, from = Add(MulScalar(row, k), rows(context, gap)), own
		}
		left, right := rows(f.Left, gap), rows(f.Right, gap)
		weigh := func(node *Node) *Node { // [B,S]
			return rows(rows(seen, node), from)
		}
		rules := Reshape(Gather(table, InsertAxes(row, -1)), b, s, s)
		pair := r.Categorical(Reshape(Mul(rules, Mul(InsertAxes(weigh(left), 2), InsertAxes(weigh(right), 1))), b, s*s))
		first := Div(pair, Scalar(g, pair.DType(), s))
		set := func(node, symbol *Node) {
			is := LogicalAnd(Equal(AddScalar(count(none), n), InsertAxes(node, -1)), InsertAxes(live, -1))
			label, context = put(is, AddScalar(symbol, 1), label), put(is, own, context)
		}
		set(left, first)
		set(right, Sub(pair, MulScalar(first, s)))
	}
	return label
}
