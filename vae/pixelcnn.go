package vae

import (
	"math"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// PixelCNN is a learned prior over grids of codes: eight masked 3x3 convolutions, so that the logits of a position depend on
// codes that come before it, in raster order, and a last one of single positions. Some earlier positions are not seen: at
// (r,c) those right of column c+(r-r') in an earlier row r'.
type PixelCNN struct{ Size }

// maskedLayers is the number of masked convolutions; the first does not see the position itself.
const maskedLayers = 8

// tap is a neighbour that a masked convolution sees, relative to the position.
type tap struct{ row, column int }

// taps of the convolution of a layer.
func taps(layer int) []tap {
	before := []tap{{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}}
	if layer == 0 {
		return before
	}
	return append(before, tap{0, 0})
}

// weights of a layer, [3,3,in,C]. Those of masked taps are there, as published, but never used.
func (p PixelCNN) weights(scope *model.Scope, g *Graph, layer int) *Node {
	in := p.Channels
	if layer == 0 {
		in = p.Codes
	}
	bound := 1 / math.Sqrt(float64(9*in))
	return nn.Param(scope.At("masked %d", layer+1), g, p.float(), "weights", bound, 3, 3, in, p.Channels)
}

// masked convolves x with the weights of a layer. Its kernel has the two rows that are not masked.
func (p PixelCNN) masked(scope *model.Scope, x *Node, layer int) *Node {
	g := x.Graph()
	mask := [2][3]float64{}
	for _, t := range taps(layer) {
		mask[1+t.row][1+t.column] = 1
	}
	w := SliceAxis(p.weights(scope, g, layer), 0, AxisRange(0, 2))
	w = Mul(w, BroadcastToShape(Reshape(ConstAsDType(g, p.float(), mask), 2, 3, 1, 1), w.Shape()))
	y := nn.Window{Kernel: [2]int{2, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}.Convolve(x, w)
	return SliceAxis(y, 1, AxisRange(0, p.Rows)) // the padding below adds a row
}

func (p PixelCNN) out(scope *model.Scope, y *Node) *Node {
	return nn.Conv{Channels: p.Codes, Window: nn.SquareWindow(1, 1, 0), Bias: true}.Apply(scope.At("out"), y)
}

// Logits returns those of all codes given the codes before them, [B,n,K].
func (p PixelCNN) Logits(scope *model.Scope, z *Node) *Node {
	b := z.Shape().Dim(0)
	y := Reshape(OneHot(z, p.Codes, p.float()), b, p.Rows, p.Columns, p.Codes)
	for layer := range maskedLayers {
		y = nn.ReLU(p.masked(scope, y, layer))
	}
	return Reshape(p.out(scope, y), b, p.Positions(), p.Codes)
}

// LogProb is log p(z), [B].
func (p PixelCNN) LogProb(scope *model.Scope, z *Node) *Node {
	return ReduceSum(gfn.Pick(LogSoftmax(p.Logits(scope, z), -1), z), 1)
}

// Sample draws latents, [count,n]. Every layer is computed at one position after the other, since it depends on earlier ones
// alone: the whole costs one pass, where passes over the grid for each position would cost n.
func (p PixelCNN) Sample(scope *model.Scope, r *rng.Stream, count int) *Node {
	g := r.Uniform(p.float()).Graph()
	known := make([]map[tap]*Node, maskedLayers+1) // by layer and place: [count, in], the inputs of a layer
	for i := range known {
		known[i] = map[tap]*Node{}
	}
	codes := make([]*Node, 0, p.Positions())
	for row := range p.Rows {
		for column := range p.Columns {
			at := tap{row, column}
			for layer := range maskedLayers {
				known[layer+1][at] = nn.ReLU(p.maskedAt(scope, g, known[layer], at, layer, count))
			}
			top := InsertAxes(known[maskedLayers][at], 1, 1)
			logits := Reshape(p.out(scope, top), count, p.Codes)
			code := r.Categorical(Softmax(logits, -1)) // [count]
			known[0][at] = OneHot(code, p.Codes, p.float())
			codes = append(codes, code)
		}
	}
	return StopGradient(Stack(codes, 1))
}

// maskedAt is masked at one place, [count,C].
func (p PixelCNN) maskedAt(scope *model.Scope, g *Graph, known map[tap]*Node, at tap, layer, count int) *Node {
	all := p.weights(scope, g, layer)
	var inputs, weights []*Node
	for _, t := range taps(layer) {
		if x, ok := known[tap{at.row + t.row, at.column + t.column}]; ok {
			w := Slice(all, AxisElem(1+t.row), AxisElem(1+t.column))
			inputs, weights = append(inputs, x), append(weights, Reshape(w, all.Shape().Dim(2), p.Channels))
		}
	}
	if inputs == nil {
		return Zeros(g, shapes.Make(p.float(), count, p.Channels))
	}
	return DotGeneral(Concatenate(inputs, 1), []int{1}, nil, Concatenate(weights, 0), []int{0}, nil)
}
