package nn

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// LayerNorm normalises the last axis to mean 0 and variance 1, then scales and shifts it.
func LayerNorm(scope *model.Scope, x *Node) *Node {
	const epsilon = 1e-5
	n := x.Shape().Dim(-1)
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, -1))
	variance := ReduceAndKeep(Square(centred), ReduceMean, -1)
	y := Div(centred, Sqrt(AddScalar(variance, epsilon)))
	scale := OnePlus(Param(scope, x.Graph(), x.DType(), "scale", 0, n))
	shift := Param(scope, x.Graph(), x.DType(), "shift", 0, n)
	return Add(Mul(y, ExpandLeftToRank(scale, x.Rank())), ExpandLeftToRank(shift, x.Rank()))
}

// Attention is self-attention of x [batch, positions, width] with several heads. A mask [batch, positions], if there is one,
// is true where a position may be looked at.
type Attention struct{ Heads int }

// Apply returns what every position makes of those it looks at.
func (a Attention) Apply(scope *model.Scope, x, mask *Node) *Node {
	batch, n, width := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2)
	each := width / a.Heads
	qkv := Reshape(Linear(scope.At("qkv"), x, 3*width), batch, n, 3, a.Heads, each)
	part := func(i int) *Node { return Squeeze(SliceAxis(qkv, 2, AxisElem(i)), 2) } // [batch, positions, heads, each]
	q, k, v := MulScalar(part(0), 1/math.Sqrt(float64(each))), part(1), part(2)
	scores := DotGeneral(q, []int{3}, []int{0, 2}, k, []int{3}, []int{0, 2}) // [batch, heads, positions, positions]
	if mask != nil {
		scores = Where(BroadcastToShape(InsertAxes(mask, 1, 1), scores.Shape()), scores, MulScalar(OnesLike(scores), -1e9))
	}
	mixed := DotGeneral(Softmax(scores, -1), []int{3}, []int{0, 1}, v, []int{1}, []int{0, 2}) // [batch, heads, positions, each]
	return Linear(scope.At("out"), Reshape(TransposeAllAxes(mixed, 0, 2, 1, 3), batch, n, width), width)
}

// Encoder is a stack of transformer layers that normalise before attention and before the feed-forward network.
type Encoder struct{ Layers, Heads, FeedForward int }

// Apply maps x [batch, positions, width]; see Attention for the mask.
func (e Encoder) Apply(scope *model.Scope, x, mask *Node) *Node {
	width := x.Shape().Dim(2)
	for i := range e.Layers {
		s := scope.At("%d", i)
		x = Add(x, Attention{e.Heads}.Apply(s.At("attention"), LayerNorm(s.At("norm 1"), x), mask))
		x = Add(x, MLP{Widths: []int{e.FeedForward, width}}.Apply(s.At("feed-forward"), LayerNorm(s.At("norm 2"), x)))
	}
	return x
}
