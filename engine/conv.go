package engine

import (
	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/engine/internal/gemm"
	"github.com/gfnem/gfnem/engine/internal/par"
)

// convolution multiplies patches of the input by the kernel: for a tile of output positions, the elements of the input
// under each tap of the kernel become a matrix, and the product of that with the kernel is the output.
type convolution struct{ n *node }

func (w convolution) bind(fr *frame, l *lop) func() {
	switch w.n.shape.DType {
	case dtypes.Float32:
		return bindPatches[float32](fr, l)
	case dtypes.Float64:
		return bindPatches[float64](fr, l)
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

const patchBytes = 1 << 19 // of a tile of patches, about

func bindPatches[T gemm.Float](fr *frame, l *lop) func() {
	p := planConv(l)
	size := sizeOf(l.outs[0].t)
	if l.outs[0].size == 0 {
		return func() {}
	}
	if p.k == 0 {
		return zeroStep{}.bind(fr, l)
	}
	ax := p.axes
	// Terms are (tap, channel), so that channels that are contiguous are copied as one; otherwise (channel, tap).
	last := p.si[ax.InputChannels] == 1 && p.inC >= 4
	tile := min(p.positions, max(8, patchBytes/(p.k*size)))
	tiles := (p.positions + tile - 1) / tile
	weights := alloc(p.groups * p.k * p.outC * size) // [group, term, output channel]
	pack := packKernel[T](p, last)
	patch := p.channelsPatch(last)
	scratch := &fr.prog.backend.scratch
	patchSize, outSize := tile*p.k*size, tile*p.outC*size
	spatial := &access{dims: p.space, strides: make([]int, len(p.space))}
	for i, d := range ax.OutputSpatial {
		spatial.strides[i] = p.so[d]
	}
	dims, strides := spatial.collapse()
	line := len(dims) == 0 || len(dims) == 1 // positions are evenly spaced
	gap := 1
	if len(dims) == 1 {
		gap = strides[0]
	}
	channel := p.so[ax.OutputChannels]
	body := func(lo, hi int) {
		buf := scratch.get(patchSize + outSize)
		x := elems[T](fr.mem[l.ins[0].v.slot], l.ins[0].v.size)
		y := elems[T](fr.mem[l.outs[0].slot], l.outs[0].size)
		for job := lo; job < hi; job++ {
			first := job % tiles * tile
			g, b := job/tiles%p.groups, job/tiles/p.groups
			n := min(tile, p.positions-first)
			m := elems[T](buf, n*p.k)
			fillPatches(patch, m, x[p.base(b, g):], first, n)
			a := gemm.Dense(m, n, p.k)
			w := gemm.Dense(elems[T](add(weights, g*p.k*p.outC, size), p.k*p.outC), p.k, p.outC)
			to := b*p.so[ax.OutputBatch] + g*p.outC*channel
			switch {
			case line && (channel == 1 || p.outC == 1):
				c := gemm.Matrix[T]{Data: y[to+first*gap:], Rows: n, Cols: p.outC, RowStride: max(gap, p.outC), ColStride: 1}
				gemm.Gemm(c, a, w, gemm.Options[T]{})
			case line && gap == 1:
				c := gemm.Matrix[T]{Data: y[to+first:], Rows: p.outC, Cols: n, RowStride: channel, ColStride: 1}
				gemm.Gemm(c, w.T(), a.T(), gemm.Options[T]{})
			default:
				c := elems[T](add(buf, patchSize, 1), n*p.outC)
				gemm.Gemm(gemm.Dense(c, n, p.outC), a, w, gemm.Options[T]{})
				at := make([]int, len(p.space))
				for i := range n {
					unravel(first+i, p.space, at)
					off := to
					for k, d := range ax.OutputSpatial {
						off += at[k] * p.so[d]
					}
					for o := range p.outC {
						y[off+o*channel] = c[i*p.outC+o]
					}
				}
			}
		}
		scratch.put(buf, patchSize+outSize)
	}
	return func() {
		pack(elems[T](weights, p.groups*p.k*p.outC), elems[T](fr.mem[l.ins[1].v.slot], l.ins[1].v.size))
		par.For(p.batch*p.groups*tiles, max(1, 1<<21/(tile*p.k*p.outC)), body)
	}
}

// packKernel orders the kernel as [group, term, output channel].
func packKernel[T gemm.Float](p *convPlan, last bool) func(to, from []T) {
	offsets := make([]int, 0, p.k)
	tap := make([]int, len(p.taps))
	place := func(t, c int) {
		unravel(t, p.taps, tap)
		off := c * p.sk[p.axes.KernelInputChannels]
		for i, d := range p.axes.KernelSpatial {
			off += tap[i] * p.sk[d]
		}
		offsets = append(offsets, off)
	}
	if last {
		for t := range p.tapCount {
			for c := range p.inC {
				place(t, c)
			}
		}
	} else {
		for c := range p.inC {
			for t := range p.tapCount {
				place(t, c)
			}
		}
	}
	step := p.sk[p.axes.KernelOutputChannels]
	return func(to, from []T) {
		i := 0
		for g := range p.groups {
			for _, off := range offsets {
				row := from[off+g*p.outC*step:]
				for o := range p.outC {
					to[i] = row[o*step]
					i++
				}
			}
		}
	}
}

// bindConv is the convolution of integers, one output at a time.
func bindConv[T integer](fr *frame, l *lop) func() {
	p := planConv(l)
	ax := p.axes
	return rowsOf(p.batch*p.positions, p.k*p.outC*p.groups*4, func(lo, hi int) {
		x := elems[T](fr.mem[l.ins[0].v.slot], l.ins[0].v.size)
		k := elems[T](fr.mem[l.ins[1].v.slot], l.ins[1].v.size)
		y := elems[T](fr.mem[l.outs[0].slot], l.outs[0].size)
		at, tap := make([]int, len(p.space)), make([]int, len(p.taps))
		for i := lo; i < hi; i++ {
			b := i / p.positions
			unravel(i%p.positions, p.space, at)
			to := b * p.so[ax.OutputBatch]
			for i, d := range ax.OutputSpatial {
				to += at[i] * p.so[d]
			}
			for o := range p.outC * p.groups {
				var sum T
				from := p.base(b, o/p.outC)
				for t := range p.tapCount {
					unravel(t, p.taps, tap)
					off := p.under(at, tap)
					if off < 0 {
						continue
					}
					w := o * p.sk[ax.KernelOutputChannels]
					for i, d := range ax.KernelSpatial {
						w += tap[i] * p.sk[d]
					}
					for c := range p.inC {
						sum += x[from+off+c*p.si[ax.InputChannels]] * k[w+c*p.sk[ax.KernelInputChannels]]
					}
				}
				y[to+o*p.so[ax.OutputChannels]] = sum
			}
		}
	})
}
