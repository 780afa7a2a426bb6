package nn

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// LayerNorm normalises the last axis to mean 0 and variance 1, then scales and shifts it.
func LayerNorm(scope *model.Scope, x *Node) *Node {
	n := x.Shape().Dim(-1)
	scale := OnePlus(Param(scope, x.Graph(), x.DType(), "scale", 0, n))
	return Normalize(x, scale, Param(scope, x.Graph(), x.DType(), "shift", 0, n))
}

// Normalize is LayerNorm with a given scale and shift, of the last axis.
func Normalize(x, scale, shift *Node) *Node {
	const epsilon = 1e-5
	centred := Sub(x, ReduceAndKeep(x, ReduceMean, -1))
	variance := ReduceAndKeep(Square(centred), ReduceMean, -1)
	y := Div(centred, Sqrt(AddScalar(variance, epsilon)))
	return Add(Mul(y, ExpandLeftToRank(scale, x.Rank())), ExpandLeftToRank(shift, x.Rank()))
}

// SplitHeads cuts the last axis of [batch, positions, 3 width] into queries, keys and values [batch, positions, heads, each].
func SplitHeads(qkv *Node, heads int) (q, k, v *Node) {
	d := qkv.Shape().Dimensions
	qkv = Reshape(qkv, d[0], d[1], 3, heads, d[2]/3/heads)
	part := func(i int) *Node { return Squeeze(SliceAxis(qkv, 2, AxisElem(i)), 2) }
	return part(0), part(1), part(2)
}

// Attend mixes values by how well their keys match the queries: [batch, queries, width]. A mask [batch, queries, keys], if there
// is one, is true where a query may look.
func Attend(q, k, v, mask *Node) *Node {
	d := q.Shape().Dimensions
	each := d[3]
	q = MulScalar(q, 1/math.Sqrt(float64(each)))
	scores := DotGeneral(q, []int{3}, []int{0, 2}, k, []int{3}, []int{0, 2}) // [batch, heads, queries, keys]
	if mask != nil {
		scores = Where(BroadcastToShape(InsertAxes(mask, 1), scores.Shape()), scores, MulScalar(OnesLike(scores), -1e9))
	}
	mixed := DotGeneral(Softmax(scores, -1), []int{3}, []int{0, 1}, v, []int{1}, []int{0, 2}) // [batch, heads, queries, each]
	return Reshape(TransposeAllAxes(mixed, 0, 2, 1, 3), d[0], d[1], d[2]*each)
}

// LinearAttend is attention without a softmax: a value counts in proportion to f(query)·f(key), with f = 1+elu (Katharopoulos, Vyas,
// Pappas, Fleuret, "Transformers are RNNs", 2020, eq. 5 to 7). Its cost grows with the number of positions, not with its square. The
// mask [batch, keys] is true where a key may be looked at.
func LinearAttend(q, k, v, mask *Node) *Node {
	d := q.Shape().Dimensions
	fq, fk := OnePlus(ELU(q)), OnePlus(ELU(k))
	fk = Mul(fk, ConvertDType(InsertAxes(mask, -1, -1), k.DType()))
	sums := DotGeneral(fk, []int{1}, []int{0, 2}, v, []int{1}, []int{0, 2})       // [batch, heads, each, each]
	mixed := DotGeneral(fq, []int{3}, []int{0, 2}, sums, []int{2}, []int{0, 1})   // [batch, heads, queries, each]
	ones := OnesLike(SliceAxis(v, 3, AxisRange(0, 1)))                            // [batch, keys, heads, 1]
	total := DotGeneral(fk, []int{1}, []int{0, 2}, ones, []int{1}, []int{0, 2})   // [batch, heads, each, 1]
	weight := DotGeneral(fq, []int{3}, []int{0, 2}, total, []int{2}, []int{0, 1}) // [batch, heads, queries, 1]
	mixed = Div(mixed, AddScalar(weight, 1e-6))
	return Reshape(TransposeAllAxes(mixed, 0, 2, 1, 3), d[0], d[1], d[2]*d[3])
}

// LinearAttendPairs is LinearAttend with a mask [batch, queries, keys], pair by pair.
func LinearAttendPairs(q, k, v, mask *Node) *Node {
	d := q.Shape().Dimensions
	scores := DotGeneral(OnePlus(ELU(q)), []int{3}, []int{0, 2}, OnePlus(ELU(k)), []int{3}, []int{0, 2}) // [batch, heads, queries, keys]
	scores = Mul(scores, ConvertDType(InsertAxes(mask, 1), scores.DType()))
	mixed := DotGeneral(scores, []int{3}, []int{0, 1}, v, []int{1}, []int{0, 2})
	mixed = Div(mixed, AddScalar(ReduceAndKeep(scores, ReduceSum, -1), 1e-6))
	return Reshape(TransposeAllAxes(mixed, 0, 2, 1, 3), d[0], d[1], d[2]*d[3])
}

// Transformer is a stack of transformer layers that normalise before attention and before the feed-forward network.
type Transformer struct {
	Layers, Heads, FeedForward int
	// Causal keeps positions from looking at later ones.
	Causal bool
}

// Apply maps x [batch, positions, width]. A mask [batch, positions], if there is one, is true where a position may be
// looked at. In each row of the batch there must be such a position; if the transformer is Causal it must be the first
// one, which has nothing but itself to look at.
func (e Transformer) Apply(scope *model.Scope, x, mask *Node) *Node {
	batch, n, width := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2)
	if mask != nil {
		mask = BroadcastToDims(InsertAxes(mask, 1), batch, n, n)
	}
	if e.Causal {
		shape := shapes.Make(dtypes.Int32, batch, n, n)
		earlier := LessOrEqual(Iota(x.Graph(), shape, 2), Iota(x.Graph(), shape, 1))
		if mask != nil {
			earlier = LogicalAnd(earlier, mask)
		}
		mask = earlier
	}
	for i := range e.Layers {
		s := scope.At("%d", i)
		attention := s.At("attention")
		q, k, v := SplitHeads(Linear(attention.At("qkv"), LayerNorm(s.At("norm 1"), x), 3*width), e.Heads)
		x = Add(x, Linear(attention.At("out"), Attend(q, k, v, mask), width))
		x = Add(x, MLP{Widths: []int{e.FeedForward, width}}.Apply(s.At("feed-forward"), LayerNorm(s.At("norm 2"), x)))
	}
	return x
}
