package nn

import (
	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
)

// geometry of a strided convolution between large images, of size pixels, and small ones. Three maps belong to it, each
// the derivative of the others: large images to small ones, small ones to large ones, and both to a kernel.
//
// They are written out here because GoMLX 0.28 derives the gradient with respect to the images only for kernels of odd
// size; for even ones it is off by a pixel.
type geometry struct {
	Window
	size [2]int // of large images
}

// small is the size of small images.
func (g geometry) small(axis int) int {
	return (g.size[axis]+2*g.Pad[axis]-g.Kernel[axis])/g.Stride[axis] + 1
}

// gather convolves large images with w [kernel rows, kernel columns, large channels, small channels].
func (g geometry) gather(x, w *Node) *Node {
	pads := [][2]int{{g.Pad[0], g.Pad[0]}, {g.Pad[1], g.Pad[1]}}
	return ConvGeneral(x, w, imagesLast, g.Stride[:], pads, nil, nil, 1, 1)
}

// spread is the adjoint of gather: small images become large ones.
func (g geometry) spread(y, w *Node) *Node {
	axes := imagesLast
	axes.KernelInputChannels, axes.KernelOutputChannels = 3, 2
	var pads [][2]int
	for i, n := range g.size {
		low := g.Kernel[i] - 1 - g.Pad[i]
		pads = append(pads, [2]int{low, n - 1 + g.Kernel[i] - 1 - low - (g.small(i)-1)*g.Stride[i]})
	}
	return ConvGeneral(y, Reverse(w, 0, 1), axes, nil, pads, g.Stride[:], nil, 1, 1)
}

// weigh is the derivative of <y, gather(x, w)> with respect to w.
func (g geometry) weigh(x, y *Node) *Node {
	axes := compute.ConvolveAxesConfig{
		InputBatch: 3, InputChannels: 0, InputSpatial: []int{1, 2},
		KernelInputChannels: 0, KernelOutputChannels: 3, KernelSpatial: []int{1, 2},
		OutputBatch: 2, OutputChannels: 3, OutputSpatial: []int{0, 1},
	}
	var pads [][2]int
	for i, n := range g.size {
		reach := (g.small(i)-1)*g.Stride[i] + g.Kernel[i] - g.Pad[i] // where the pixels that are seen end
		if reach < n {
			x = SliceAxis(x, 1+i, AxisRange(0, reach))
		}
		pads = append(pads, [2]int{g.Pad[i], max(0, reach-n)})
	}
	return ConvGeneral(x, y, axes, nil, pads, nil, g.Stride[:], 1, 1)
}

// imagesLast are the axes of images [batch, rows, columns, channels] and kernels [rows, columns, in, out].
var imagesLast = compute.ConvolveAxesConfig{
	InputBatch: 0, InputChannels: 3, InputSpatial: []int{1, 2},
	KernelInputChannels: 2, KernelOutputChannels: 3, KernelSpatial: []int{0, 1},
	OutputBatch: 0, OutputChannels: 3, OutputSpatial: []int{1, 2},
}
