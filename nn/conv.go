package nn

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Window says how a convolution moves over an image: the sizes of its kernel, of its steps and of the zeros around the
// image, each for rows and for columns.
type Window struct{ Kernel, Stride, Pad [2]int }

// SquareWindow is a window that treats rows and columns alike.
func SquareWindow(kernel, stride, pad int) Window {
	return Window{Kernel: [2]int{kernel, kernel}, Stride: [2]int{stride, stride}, Pad: [2]int{pad, pad}}
}

// GainParam is the store parameter that multiplies the bounds of the initial values of convolutions, a float64; absent means 1.
const GainParam = "convolution gain"

// bound is that of the initial values of a kernel with so many inputs.
func (w Window) bound(scope *model.Scope, channels int) float64 {
	return model.GetParamOr(scope, GainParam, 1.0) / math.Sqrt(float64(channels*w.taps()))
}

// taps is the number of pixels that a kernel sees.
func (w Window) taps() int { return w.Kernel[0] * w.Kernel[1] }

// Conv is a two-dimensional convolution of images [batch, rows, columns, channels].
type Conv struct {
	Channels int
	Window
	Bias bool
}

// Apply convolves x. Weights are [kernel rows, kernel columns, in, out], uniform in ±1/sqrt(fan-in), as are biases.
func (c Conv) Apply(scope *model.Scope, x *Node) *Node {
	in := x.Shape().Dim(-1)
	bound := c.bound(scope, in)
	w := Param(scope, x.Graph(), x.DType(), "weights", bound, c.Kernel[0], c.Kernel[1], in, c.Channels)
	y := c.Convolve(x, w)
	if !c.Bias {
		return y
	}
	b := Param(scope, x.Graph(), x.DType(), "bias", bound, c.Channels)
	return Add(y, ExpandLeftToRank(b, y.Rank()))
}

// Convolve moves the window over x with given weights [kernel rows, kernel columns, in, out].
func (w Window) Convolve(x, weights *Node) *Node {
	if w == SquareWindow(1, 1, 0) {
		return DotGeneral(x, []int{-1}, nil, Reshape(weights, weights.Shape().Dim(2), -1), []int{0}, nil)
	}
	g := geometry{w, [2]int{x.Shape().Dim(1), x.Shape().Dim(2)}}
	return WithGradients(g.gather(x, weights), []*Node{x, weights},
		func(dy *Node) *Node { return g.spread(dy, weights) },
		func(dy *Node) *Node { return g.weigh(x, dy) })
}

// ConvTranspose is the adjoint of a strided convolution: every pixel of x adds its multiple of the kernel to the output,
// Stride pixels apart, and Pad pixels are cut off at every side. It has no bias.
type ConvTranspose struct {
	Channels int
	Window
}

// Apply enlarges x. Weights are [kernel rows, kernel columns, out, in], those of the convolution it is the adjoint of,
// uniform in ±1/sqrt(taps · out).
func (c ConvTranspose) Apply(scope *model.Scope, x *Node) *Node {
	in := x.Shape().Dim(-1)
	bound := c.bound(scope, c.Channels)
	w := Param(scope, x.Graph(), x.DType(), "weights", bound, c.Kernel[0], c.Kernel[1], c.Channels, in)
	g := geometry{Window: c.Window}
	for i := range g.size {
		g.size[i] = (x.Shape().Dim(1+i)-1)*c.Stride[i] - 2*c.Pad[i] + c.Kernel[i]
	}
	return WithGradients(g.spread(x, w), []*Node{x, w},
		func(dy *Node) *Node { return g.gather(dy, w) },
		func(dy *Node) *Node { return g.weigh(dy, x) })
}
