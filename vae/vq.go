package vae

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/nn"
)

// VQ is the baseline, a VQ-VAE (van den Oord, Vinyals, Kavukcuoglu, "Neural Discrete Representation Learning", 2017): the
// encoder gives every position a number, which is replaced by the nearest of a codebook. Convolutions are normalised over
// the batch, and the codebook follows a moving average. Its variables live below the scope it is called with.
type VQ struct{ Size }

var _ Decoder = VQ{}

// Constants of the published baseline.
const (
	commitment    = 0.25  // weight of the encoder's distance from the codebook
	codebookDecay = 0.999 // of the moving averages
	countEpsilon  = 1e-5  // keeps counts of unused codes positive
)

// codebook is the numbers of the codes, [K] or [K,D], and the moving averages they come from: how often codes were used, and the sum
// of the numbers that they replaced.
type codebook struct{ entries, count, sum *model.Variable }

// codebook returns the variables; they have no gradient.
func (v VQ) codebook(scope *model.Scope, g *Graph) codebook {
	at := scope.At("codebook")
	nn.Param(at, g, v.float(), "entries", 1/float64(v.Codes), v.codeDims()...)
	c := codebook{entries: at.GetVariable("entries").SetTrainable(false)}
	c.count = constant(at, v.float(), "count", 0, v.Codes).SetTrainable(false)
	if c.sum = at.GetVariable("sum"); c.sum == nil {
		start, err := c.entries.MustValue().Clone()
		if err != nil {
			panic(err)
		}
		c.sum = at.VariableWithValue("sum", start).SetTrainable(false)
	}
	return c
}

// numbers gives every position a number, [B,n], or several, [B,n,D].
func (v VQ) numbers(scope *model.Scope, x *Node, norm norm) *Node {
	at := scope.At("encoder")
	y := v.shrink(at, x, norm)
	y = nn.Conv{Channels: v.codeWidth(), Window: nn.SquareWindow(1, 1, 0), Bias: true}.Apply(at.At("out"), y)
	dims := append([]int{x.Shape().Dim(0), v.Positions()}, v.codeDims()[1:]...)
	return Reshape(y, dims...)
}

// nearest returns the codes of the entries [K] or [K,D] that are nearest to y, [...] or [...,D], the first of equals.
func nearest(entries, y *Node) *Node {
	at := entries.Rank() - 1 // axes of a code
	dims := slices.Insert(slices.Clone(y.Shape().Dimensions), y.Rank()-at, entries.Shape().Dim(0))
	difference := Sub(BroadcastToDims(InsertAxes(y, -1-at), dims...), BroadcastToDims(ExpandLeftToRank(entries, len(dims)), dims...))
	distance := Square(difference)
	if at > 0 {
		distance = ReduceSum(distance, -1)
	}
	return ArgMin(distance, -1, dtypes.Int32)
}

// Encode returns z*(x), [B,n], with running statistics.
func (v VQ) Encode(scope *model.Scope, x *Node) *Node {
	entries := v.codebook(scope, x.Graph()).entries.NodeValue(x.Graph())
	return nearest(entries, v.numbers(scope, x, batchNorm(nil)))
}

// Logits implements Decoder, with running statistics.
func (v VQ) Logits(scope *model.Scope, z *Node) *Node {
	entries := v.codebook(scope, z.Graph()).entries.NodeValue(z.Graph())
	return v.enlarge(scope.At(decoderScope), v.lookUp(entries, z), v.decoderNorm(normBatch, nil))
}

// vqLoss is what one batch says.
type vqLoss struct {
	total          *Node // what is minimised
	reconstruction *Node // mean over images of -log p(x|z)
	commitment     *Node // the weighted distance from the codebook
	perplexity     *Node // of the usage of codes
	changes        changes
}

// loss builds the training graph.
func (v VQ) loss(scope *model.Scope, x *Node) vqLoss {
	var out vqLoss
	g := x.Graph()
	y := v.numbers(scope, x, batchNorm(&out.changes))
	book := v.codebook(scope, g)
	entries := book.entries.NodeValue(g)
	z := nearest(entries, StopGradient(y))
	e := Reshape(v.lookUp(entries, z), y.Shape().Dimensions...)
	through := v.onGrid(straightThrough(y, e))
	pixels := crossEntropy(v.enlarge(scope.At(decoderScope), through, v.decoderNorm(normBatch, &out.changes)), x)
	out.commitment = MulScalar(ReduceAllMean(Square(Sub(y, StopGradient(e)))), commitment)
	out.total = Add(ReduceAllMean(pixels), out.commitment)
	out.reconstruction = MulScalar(ReduceAllMean(pixels), v.Pixels())

	hot := Reshape(OneHot(z, v.Codes, v.float()), -1, v.Codes) // [B*n,K]
	out.perplexity = perplexity(ReduceMean(hot, 0))
	rows := append([]int{-1}, v.codeDims()[1:]...)
	out.changes = append(out.changes, book.follow(hot, StopGradient(Reshape(y, rows...)))...)
	return out
}

// straightThrough is e with the gradient of y.
func straightThrough(y, e *Node) *Node { return Add(y, StopGradient(Sub(e, y))) }

// perplexity is exp of the entropy of shares [K], as published.
func perplexity(share *Node) *Node {
	return Exp(Neg(ReduceAllSum(Mul(share, Log(AddScalar(share, 1e-10))))))
}

// follow moves the averages by a batch of numbers y, [N] or [N,D], with their codes, one-hot [N,K]. The counts start at zero, which
// throws entries far away at first: unused codes by a factor of about 1e5, from where they come back as the decay shrinks
// them. That is published behaviour, and it decides which codes end up in use.
func (c codebook) follow(hot, y *Node) changes {
	g, codes := y.Graph(), hot.Shape().Dim(1)
	blend := func(old *model.Variable, batch *Node) *Node {
		return Add(MulScalar(old.NodeValue(g), codebookDecay), MulScalar(batch, 1-codebookDecay))
	}
	count := blend(c.count, ReduceSum(hot, 0))
	total := ReduceAllSum(count)
	count = Mul(Div(AddScalar(count, countEpsilon), AddScalar(total, float64(codes)*countEpsilon)), total)
	var sum *Node
	each := count
	if y.Rank() == 1 {
		sum = blend(c.sum, DotGeneral(y, []int{0}, nil, hot, []int{0}, nil))
	} else {
		sum = blend(c.sum, DotGeneral(hot, []int{0}, nil, y, []int{0}, nil)) // [K,D]
		each = BroadcastToShape(InsertAxes(count, 1), sum.Shape())
	}
	return changes{
		{Variable: c.count, Value: count}, {Variable: c.sum, Value: sum}, {Variable: c.entries, Value: Div(sum, each)},
	}
}
