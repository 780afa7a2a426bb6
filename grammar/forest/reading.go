package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// reading is what the network makes of a batch of forests, one state of each. A tree has the place of its first word; the other places
// are padding.
type reading struct {
	*weights
	forest Forest
	hidden *Node // [B,n,d]
}

// read evaluates the transformer, given embeddings of all nodes [B,n+G,d].
func (w *weights) read(f Forest, nodes *Node) reading {
	starts := f.Starts()
	x := w.places(rows(nodes, f.Root), before(starts))
	b, n := f.Root.Shape().Dim(0), f.Words()
	mask := BroadcastToDims(InsertAxes(starts, 1), b, n, n)
	return reading{w, f, w.encode(x, func(q, k, v *Node) *Node { return nn.Attend(q, k, v, mask) })}
}

// before counts the marks before each place of the last axis, [...,n] int32.
func before(marks *Node) *Node {
	g, n := marks.Graph(), marks.Shape().Dim(-1)
	square := shapes.Make(dtypes.Int32, n, n)
	earlier := ConvertDType(LessThan(Iota(g, square, 0), Iota(g, square, 1)), dtypes.Float32)
	counted := DotGeneral(ConvertDType(marks, dtypes.Float32), []int{-1}, nil, earlier, []int{0}, nil)
	return ConvertDType(counted, dtypes.Int32)
}

// position returns the logits of joining each tree with the next, and where that is legal: [B,n].
func (r reading) position() (logits, legal *Node) {
	last := InsertAxes(SubScalar(r.forest.Length, 1), -1)
	return r.scalars(positionHead), LogicalAnd(r.forest.Starts(), LessThan(r.forest.Last, last))
}

// split returns the logits of splitting each tree, and where that is legal: [B,n].
func (r reading) split() (logits, legal *Node) {
	return r.scalars(splitHead), LogicalAnd(r.forest.Starts(), GreaterOrEqual(r.forest.Root, Const(r.hidden.Graph(), int32(r.forest.Words()))))
}

func (r reading) scalars(head string) *Node { return Squeeze(r.head(head, r.hidden), -1) }

// LogZ is the flow through bare words, [B]: what the network takes log p(x) for.
func (m Network) LogZ(scope *model.Scope, words, length *Node) *Node {
	start := m.Begin(scope, words, length)
	return m.weights(scope, words.Graph()).read(start.Forest, start.Nodes).flow()
}

// flow is the sum over trees, [B].
func (r reading) flow() *Node {
	each := r.scalars(flowHead)
	return ReduceSum(Where(r.forest.Starts(), each, ZerosLike(each)), 1)
}

// Policy is the network as a policy for Env, which computes every state from nothing: simple and slow, what the fast walks and scores
// of this package are tested against.
type Policy struct{ Network }

var _ gfn.Policy = Policy{}

// Heads implements gfn.Policy.
func (p Policy) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	w := p.weights(scope, s[0].Graph())
	f := FromState(s)
	z := f.Trees()
	order := NewPlan(z, GreaterThan(f.Label, ZerosLike(f.Label)))
	r := w.read(f, order.byNode(w.embed(order, x.Repeat(k)[0], z)))

	b, gaps := z.Label.Shape().Dim(0), z.Label.Shape().Dim(1)
	left := SliceAxis(f.First, 1, AxisRange(0, gaps)) // the place of the tree that ends at a gap, or has it inside
	position, _ := r.position()
	split, _ := r.split()
	label := LogSoftmax(r.head(labelHead, r.hidden)) // [B,n,N]
	joint := Add(InsertAxes(rows(position, left), -1), rows(label, left))
	return gfn.Heads{Forward: Reshape(joint, b, gaps*p.Labels), Backward: rows(split, left), Flow: r.flow()}
}
