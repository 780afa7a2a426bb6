package forest

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// reading is what the network makes of a batch of forests, one state of each. The trees of a forest have places 0 to
// M-1 from the left, and later places are padding; M is at most the number of words and that of the network's
// positions.
type reading struct {
	*weights
	forest Forest
	place  *Node // [B,n]: the place of a word that is the first of its tree
	word   *Node // [B,M]: the first word of the tree at a place
	there  *Node // [B,M] bool
	hidden *Node // [B,M,d]
}

// read evaluates the transformer, given embeddings of all nodes [B,n+G,d]. No forest has more than maxTrees trees.
func (w *weights) read(f Forest, nodes *Node, maxTrees int) reading {
	starts := f.Starts()
	r := reading{weights: w, forest: f, place: before(starts)}
	g := nodes.Graph()
	b, n := f.Root.Shape().Dim(0), f.Words()
	m := min(maxTrees, n, w.Positions)
	// A product finds the words: this is read inside a loop and outside, and a sum can be had in one of them alone (see
	// nn.Loop).
	all := shapes.Make(dtypes.Int32, b, m, n)
	wide := func(x *Node) *Node { return BroadcastToDims(InsertAxes(x, 1), b, m, n) }
	is := LogicalAnd(wide(starts), Equal(wide(r.place), Iota(g, all, 1)))
	word, one := Iota(g, shapes.Make(dtypes.Int32, n), 0), Const(g, slices.Repeat([]int32{1}, n))
	columns := ConvertDType(Stack([]*Node{word, one}, 1), dtypes.Float32) // [n,2]
	found := ConvertDType(DotGeneral(ConvertDType(is, dtypes.Float32), []int{2}, nil, columns, []int{0}, nil), dtypes.Int32)
	of := func(i int) *Node { return Squeeze(SliceAxis(found, 2, AxisElem(i)), 2) }
	r.word, r.there = of(0), GreaterThan(of(1), Const(g, int32(0)))

	x := rows(nodes, rows(f.Root, r.word))
	x = Add(x, InsertAxes(SliceAxis(w.at[EncoderScope+"/positions"], 0, AxisRange(0, m)), 0))
	mask := BroadcastToDims(InsertAxes(r.there, 1), b, m, m)
	r.hidden = w.encode(x, func(q, k, v *Node) *Node {
		if w.Linear {
			return nn.LinearAttend(q, k, v, r.there)
		}
		return nn.Attend(q, k, v, mask)
	})
	return r
}

// before counts the marks before each place of the last axis, [...,n] int32.
func before(marks *Node) *Node {
	g, n := marks.Graph(), marks.Shape().Dim(-1)
	square := shapes.Make(dtypes.Int32, n, n)
	earlier := ConvertDType(LessThan(Iota(g, square, 0), Iota(g, square, 1)), dtypes.Float32)
	counted := DotGeneral(ConvertDType(marks, dtypes.Float32), []int{-1}, nil, earlier, []int{0}, nil)
	return ConvertDType(counted, dtypes.Int32)
}

// position returns the logits of joining each tree with the next, and where that is legal: [B,M].
func (r reading) position() (logits, legal *Node) {
	last := InsertAxes(SubScalar(r.forest.Length, 1), -1)
	return r.scalars(positionHead, r.hidden), LogicalAnd(r.there, LessThan(rows(r.forest.Last, r.word), last))
}

// split returns the logits of splitting each tree, and where that is legal: [B,M].
func (r reading) split() (logits, legal *Node) {
	inner := GreaterOrEqual(rows(r.forest.Root, r.word), Const(r.hidden.Graph(), int32(r.forest.Words())))
	return r.scalars(splitHead, r.hidden), LogicalAnd(r.there, inner)
}

// LogZ is the flow through bare words, [B]: what the network takes log p(x) for.
func (m Network) LogZ(scope *model.Scope, x Sentences) *Node {
	start := m.Begin(scope, x)
	return m.weights(scope, x.Words.Graph()).read(start.Forest, start.Nodes, m.Positions).flow()
}

// flow is the sum over trees, [B].
func (r reading) flow() *Node {
	each := r.scalars(flowHead, r.hidden)
	return ReduceSum(Where(r.there, each, ZerosLike(each)), 1)
}

// Policy is the network as a policy for Env, which computes every state from nothing: simple and slow, what the fast
// walks and scores of this package are tested against.
type Policy struct{ Network }

var _ gfn.Policy = Policy{}

// Heads implements gfn.Policy.
func (p Policy) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	w := p.weights(scope, s[0].Graph())
	f := FromState(s)
	r := w.read(f, p.Embed(scope, f, Observed(x.Repeat(k)).Words).Nodes, p.Positions)

	b, gaps := f.Label.Shape().Dim(0), f.Label.Shape().Dim(1)
	left := rows(r.place, SliceAxis(f.First, 1, AxisRange(0, gaps))) // the place of the tree that ends at a gap, or has it inside
	position, _ := r.position()
	split, _ := r.split()
	joint := InsertAxes(rows(position, left), -1)
	if p.Grammar == nil {
		label := LogSoftmax(r.head(labelHead, r.hidden)) // [B,M,N]
		joint = Add(joint, rows(label, left))
	}
	return gfn.Heads{Forward: Reshape(joint, b, gaps*p.kinds()), Backward: rows(split, left), Flow: r.flow()}
}
