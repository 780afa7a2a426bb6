package engine

import (
	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/engine/internal/gemm"
)

// convolution is ConvGeneral. There are three ways: as products of patches with the kernel (conv_rows.go), as sums of
// products of patches, for gradients of kernels (conv_sum.go), and term by term, for integers (conv_int.go).
type convolution struct{ n *node }

func (w convolution) bind(fr *frame, l *lop) func() {
	switch w.n.shape.DType {
	case dtypes.Float32:
		return bindFloatConv[float32](fr, l)
	case dtypes.Float64:
		return bindFloatConv[float64](fr, l)
	case dtypes.Int8:
		return bindConv[int8](fr, l)
	case dtypes.Int16:
		return bindConv[int16](fr, l)
	case dtypes.Int32:
		return bindConv[int32](fr, l)
	case dtypes.Int64:
		return bindConv[int64](fr, l)
	case dtypes.Uint8:
		return bindConv[uint8](fr, l)
	case dtypes.Uint16:
		return bindConv[uint16](fr, l)
	case dtypes.Uint32:
		return bindConv[uint32](fr, l)
	}
	return bindConv[uint64](fr, l)
}

// convPlan is the geometry of a convolution.
type convPlan struct {
	convAttr
	in, ker, out []int // dimensions
	si, sk, so   []int // strides

	space       []int   // output positions, by axis
	taps        []int   // of the kernel, by axis
	table       [][]int // by axis, [position, tap]: offset in the input, or -1
	groups      int     // of channels or batches
	inC, outC   int     // channels of a group
	batch       int     // of the output
	positions   int
	tapCount, k int // taps; terms of each sum
}

func planConv(l *lop) *convPlan {
	p := &convPlan{convAttr: l.node.attr.(convAttr)}
	p.in, p.ker, p.out = l.node.inputs[0].shape.Dimensions, l.node.inputs[1].shape.Dimensions, l.node.shape.Dimensions
	p.si, p.sk, p.so = denseStrides(p.in), denseStrides(p.ker), denseStrides(p.out)
	for i, d := range p.axes.OutputSpatial {
		p.space = append(p.space, p.out[d])
		p.taps = append(p.taps, p.ker[p.axes.KernelSpatial[i]])
		from := p.axes.InputSpatial[i]
		table := make([]int, p.space[i]*p.taps[i])
		for o := range p.space[i] {
			for t := range p.taps[i] {
				at := o*p.strides[i] - p.paddings[i][0] + t*p.kernelDilations[i]
				to := &table[o*p.taps[i]+t]
				if *to = -1; at >= 0 && at%p.inputDilations[i] == 0 && at/p.inputDilations[i] < p.in[from] {
					*to = at / p.inputDilations[i] * p.si[from]
				}
			}
		}
		p.table = append(p.table, table)
	}
	p.groups = max(p.channelGroups, p.batchGroups)
	p.inC, p.outC = p.ker[p.axes.KernelInputChannels], p.out[p.axes.OutputChannels]/p.groups
	p.batch, p.positions = p.out[p.axes.OutputBatch], product(p.space)
	p.tapCount = product(p.taps)
	p.k = p.tapCount * p.inC
	return p
}

// base is where the input of an output batch and a group starts.
func (p *convPlan) base(b, g int) int {
	if p.batchGroups > 1 {
		return (g*(p.in[p.axes.InputBatch]/p.batchGroups) + b) * p.si[p.axes.InputBatch]
	}
	return b*p.si[p.axes.InputBatch] + g*p.inC*p.si[p.axes.InputChannels]
}

// under returns where the input under a tap is, from the base, or -1.
func (p *convPlan) under(at, tap []int) int {
	off := 0
	for i, t := range p.table {
		x := t[at[i]*p.taps[i]+tap[i]]
		if x < 0 {
			return -1
		}
		off += x
	}
	return off
}

func bindFloatConv[T gemm.Float](fr *frame, l *lop) func() {
	p := planConv(l)
	switch {
	case l.outs[0].size == 0:
		return func() {}
	case p.k == 0:
		return zeroStep{}.bind(fr, l)
	case p.sums():
		return bindConvSums[T](fr, l, p)
	}
	return bindConvRows[T](fr, l, p)
}
