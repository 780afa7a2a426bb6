package nn

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Conv is a two-dimensional convolution of images [batch, rows, columns, channels] with a square kernel.
type Conv struct {
	Channels, Kernel, Stride, Pad int
	Bias                          bool
}

// Apply convolves x. Weights are [kernel, kernel, in, out], uniform in ±1/sqrt(fan-in), as are biases.
func (c Conv) Apply(scope *model.Scope, x *Node) *Node {
	in := x.Shape().Dim(-1)
	bound := 1 / math.Sqrt(float64(in*c.Kernel*c.Kernel))
	w := Param(scope, x.Graph(), x.DType(), "weights", bound, c.Kernel, c.Kernel, in, c.Channels)
	var y *Node
	if c.Kernel == 1 && c.Stride == 1 && c.Pad == 0 {
		y = DotGeneral(x, []int{-1}, nil, Reshape(w, in, c.Channels), []int{0}, nil)
	} else {
		g := geometry{kernel: c.Kernel, stride: c.Stride, pad: c.Pad, size: [2]int{x.Shape().Dim(1), x.Shape().Dim(2)}}
		y = WithGradients(g.gather(x, w), []*Node{x, w},
			func(dy *Node) *Node { return g.spread(dy, w) },
			func(dy *Node) *Node { return g.weigh(x, dy) })
	}
	if !c.Bias {
		return y
	}
	b := Param(scope, x.Graph(), x.DType(), "bias", bound, c.Channels)
	return Add(y, ExpandLeftToRank(b, y.Rank()))
}

// ConvTranspose is the adjoint of a strided convolution: every pixel of x adds its multiple of the kernel to the output,
// Stride pixels apart, and Pad pixels are cut off at every side. It has no bias.
type ConvTranspose struct{ Channels, Kernel, Stride, Pad int }

// Apply enlarges x. Weights are [kernel, kernel, out, in], those of the convolution it is the adjoint of, uniform in
// ±1/sqrt(kernel^2 out).
func (c ConvTranspose) Apply(scope *model.Scope, x *Node) *Node {
	in := x.Shape().Dim(-1)
	bound := 1 / math.Sqrt(float64(c.Channels*c.Kernel*c.Kernel))
	w := Param(scope, x.Graph(), x.DType(), "weights", bound, c.Kernel, c.Kernel, c.Channels, in)
	g := geometry{kernel: c.Kernel, stride: c.Stride, pad: c.Pad}
	for i := range g.size {
		g.size[i] = (x.Shape().Dim(1+i)-1)*c.Stride - 2*c.Pad + c.Kernel
	}
	return WithGradients(g.spread(x, w), []*Node{x, w},
		func(dy *Node) *Node { return g.gather(dy, w) },
		func(dy *Node) *Node { return g.weigh(dy, x) })
}

// Residual is the residual block of the image networks: with r = relu(x), it returns r plus a 3x3 and a 1x1 convolution
// of r, with a rectifier between them. The skip carries r, not x.
func Residual(scope *model.Scope, x *Node) *Node {
	channels := x.Shape().Dim(-1)
	r := ReLU(x)
	y := Conv{Channels: channels, Kernel: 3, Stride: 1, Pad: 1}.Apply(scope.At("3x3"), r)
	return Add(r, Conv{Channels: channels, Kernel: 1, Stride: 1}.Apply(scope.At("1x1"), ReLU(y)))
}
