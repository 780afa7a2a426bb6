package vae

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// Constants of batch normalisation.
const (
	normEpsilon  = 1e-5
	normMomentum = 0.1 // weight of a batch in the running statistics
)

// batchNorm normalises channels over images and pixels, then scales and shifts them. While training it uses the mean and the
// variance of the batch and appends what becomes of the running ones to changes; with nil changes it uses the running ones.
func batchNorm(changes *changes) norm {
	return func(scope *model.Scope, y *Node) *Node {
		scope = scope.At("norm")
		g, dtype, channels := y.Graph(), y.DType(), y.Shape().Dim(-1)
		scale := constant(scope, dtype, "scale", 1, channels).NodeValue(g)
		shift := constant(scope, dtype, "shift", 0, channels).NodeValue(g)
		mean := constant(scope, dtype, "mean", 0, channels).SetTrainable(false)
		variance := constant(scope, dtype, "variance", 1, channels).SetTrainable(false)
		if changes == nil {
			return normalised(y, mean.NodeValue(g), variance.NodeValue(g), scale, shift)
		}
		batchMean, batchVariance := moments(y)
		count := float64(y.Shape().Size() / channels)
		unbiased := MulScalar(batchVariance, count/max(count-1, 1))
		for _, s := range []optim.Assignment{{Variable: mean, Value: batchMean}, {Variable: variance, Value: unbiased}} {
			old := s.Variable.NodeValue(g)
			next := Add(MulScalar(old, 1-normMomentum), MulScalar(StopGradient(s.Value), normMomentum))
			*changes = append(*changes, optim.Assignment{Variable: s.Variable, Value: next})
		}
		return withNormGradients(y, batchMean, batchVariance, scale, shift)
	}
}

// moments are the mean and the biased variance of channels, [C].
func moments(y *Node) (mean, variance *Node) {
	mean = ReduceMean(y, 0, 1, 2)
	return mean, ReduceMean(Square(Sub(y, wide(mean, y))), 0, 1, 2)
}

// wide repeats numbers of channels over images and pixels.
func wide(channels, like *Node) *Node {
	return BroadcastToShape(ExpandLeftToRank(channels, like.Rank()), like.Shape())
}

func normalised(y, mean, variance, scale, shift *Node) *Node {
	factor := Div(scale, Sqrt(AddScalar(variance, normEpsilon)))
	return Add(Mul(Sub(y, wide(mean, y)), wide(factor, y)), wide(shift, y))
}

// withNormGradients is normalised with the gradient written out, where y moves its own mean and variance.
func withNormGradients(y, mean, variance, scale, shift *Node) *Node {
	deviation := Sqrt(AddScalar(variance, normEpsilon))
	unit := Div(Sub(y, wide(mean, y)), wide(deviation, y))
	count := float64(y.Shape().Size() / y.Shape().Dim(-1))
	return nn.WithGradients(normalised(y, mean, variance, scale, shift), []*Node{y, scale, shift},
		func(dy *Node) *Node {
			common := DivScalar(ReduceSum(dy, 0, 1, 2), count)
			along := DivScalar(ReduceSum(Mul(dy, unit), 0, 1, 2), count)
			free := Sub(Sub(dy, wide(common, y)), Mul(unit, wide(along, y)))
			return Mul(free, wide(Div(scale, deviation), y))
		},
		func(dy *Node) *Node { return ReduceSum(Mul(dy, unit), 0, 1, 2) },
		func(dy *Node) *Node { return ReduceSum(dy, 0, 1, 2) })
}
