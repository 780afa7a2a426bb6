package vae

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/nn"
)

// norm normalises what a convolution returns; the VQ-VAE has batch-norm, the GFlowNet models have plain.
type norm func(scope *model.Scope, y *Node) *Node

func plain(_ *model.Scope, y *Node) *Node { return y }

// residual returns r = relu(x) plus two convolutions of r with a rectifier between them. The skip carries r, not x: the
// published blocks rectify their input in place.
func residual(scope *model.Scope, x *Node, norm norm) *Node {
	channels := x.Shape().Dim(-1)
	r := nn.ReLU(x)
	y := norm(scope.At("3x3"), nn.Conv{Channels: channels, Window: nn.SquareWindow(3, 1, 1)}.Apply(scope.At("3x3"), r))
	y = nn.Conv{Channels: channels, Window: nn.SquareWindow(1, 1, 0)}.Apply(scope.At("1x1"), nn.ReLU(y))
	return Add(r, norm(scope.At("1x1"), y))
}

// shrink is the image encoder: images [B,H,W,1] become features [B,h,w,C]. As published, the last two convolutions follow
// each other without a rectifier, and none comes after the residual blocks.
func (s Size) shrink(scope *model.Scope, x *Node, norm norm) *Node {
	windows := s.windows()
	y := x
	for i, w := range windows {
		at := scope.At("down %d", i+1)
		y = norm(at, nn.Conv{Channels: s.Channels, Window: w}.Apply(at, y))
		if last := len(windows) - 1; i == 0 && last > 0 || i < last-1 {
			y = nn.ReLU(y)
		}
	}
	return residual(scope.At("residual 2"), residual(scope.At("residual 1"), y, norm), norm)
}

// crossEntropy is -log p(x) of each pixel under Bernoulli variables with given logits, elementwise. Its gradient is
// sigmoid(logit) - x.
func crossEntropy(logits, x *Node) *Node {
	x = StopGradient(x)
	soft := Add(Max(logits, ZerosLike(logits)), Log1P(Exp(Neg(Abs(logits)))))
	return nn.WithGradients(Sub(soft, Mul(x, logits)), []*Node{logits}, func(dy *Node) *Node {
		return Mul(dy, Sub(Sigmoid(logits), x))
	})
}

// logBernoulli is log p(x|z) of whole images, [B], from the logits of their pixels.
func logBernoulli(logits, x *Node) *Node { return Neg(ReduceSum(crossEntropy(logits, x), 1, 2, 3)) }

// constant is a variable whose entries all start at one value.
func constant(scope *model.Scope, dtype dtypes.DType, name string, start float64, dims ...int) *model.Variable {
	if v := scope.GetVariable(name); v != nil {
		return v
	}
	value := tensors.FromScalarAndDimensions(float32(start), dims...)
	if dtype == dtypes.Float64 {
		value = tensors.FromScalarAndDimensions(start, dims...)
	}
	return scope.VariableWithValue(name, value)
}
