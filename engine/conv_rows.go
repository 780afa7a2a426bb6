package engine

import (
	"sync"
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/gemm"
	"github.com/gfnem/gfnem/engine/internal/par"
)

const (
	convTile  = 144 // output positions of a tile, over all batches: as many rows as a block of gemm
	convTerms = 512 // terms of a product: the patches of a tile stay in the second cache
)

// convRows computes the outputs of one part and one group of channels or batches, a tile of positions at a time: the
// input under some taps becomes a matrix, a row for each position, and its product with the kernel is added to the tile.
type convRows[T gemm.Float] struct {
	*convPart
	group   int
	rows    int // positions of all batches
	last    bool
	each    int // taps of a product
	step    int // from row to row of the patches
	weights []T // [tap, input channel, output channel]
	act     gemm.Activation
	slope   float64
	direct  bool
}

func bindConvRows[T gemm.Float](fr *frame, l *lop, p *convPlan) func() {
	x, w, y := l.ins[0].v, l.ins[1].v, l.outs[0]
	size := sizeOf(y.t)
	var work []*convRows[T]
	var tiles []int // first job of each
	jobs := 0
	parts := p.parts()
	for _, part := range parts {
		for g := range p.groups {
			c := newConvRows[T](part, g, len(parts) == 1)
			c.act, c.slope = l.act, l.slope
			work, tiles = append(work, c), append(tiles, jobs)
			jobs += (c.rows + convTile - 1) / convTile
		}
	}
	scratch := &fr.prog.backend.scratch
	step := 0
	most := 0
	for _, c := range work {
		step, most = max(step, c.step), max(most, c.tapCount)
	}
	bytes := convTile * (step + p.outC) * size
	idle := sync.Pool{New: func() any { return newConvPlaces(len(p.space), most) }}
	body := func(lo, hi int) {
		buf := scratch.get(bytes)
		patches := elems[T](buf, convTile*step)
		tile := elems[T](add(buf, convTile*step, size), convTile*p.outC)
		places := idle.Get().(*convPlaces)
		for job := lo; job < hi; job++ {
			i := len(work) - 1
			for tiles[i] > job {
				i--
			}
			work[i].tile(elems[T](fr.mem[x.slot], x.size), elems[T](fr.mem[y.slot], y.size), (job-tiles[i])*convTile, patches, tile, places)
		}
		idle.Put(places)
		scratch.put(buf, bytes)
	}
	return func() {
		for _, c := range work {
			c.pack(elems[T](fr.mem[w.slot], w.size))
		}
		par.For(jobs, max(1, 1<<21/(convTile*max(1, p.k/len(parts))*p.outC)), body)
	}
}

func newConvRows[T gemm.Float](part *convPart, group int, alone bool) *convRows[T] {
	p := part.p
	c := &convRows[T]{convPart: part, group: group, rows: p.batch * part.positions}
	c.last = p.si[p.axes.InputChannels] == 1
	c.each = max(1, min(part.tapCount, convTerms/p.inC))
	size := int(unsafe.Sizeof(T(0)))
	pad := cacheLine / size
	c.step = roundUp(c.each*p.inC, pad) + pad // rows that start in different sets of the cache
	c.weights = elems[T](alloc(part.tapCount*p.inC*p.outC*size), part.tapCount*p.inC*p.outC)
	c.direct = alone && p.groups == 1 && p.channelsLast()
	return c
}

// channelsLast reports whether the output is rows of channels, one after the other, in the order of batches and positions.
func (p *convPlan) channelsLast() bool {
	n := 1
	for i := len(p.out) - 1; i >= 0; i-- {
		axis := p.axes.OutputBatch
		switch k := len(p.out) - 1 - i; {
		case k == 0:
			axis = p.axes.OutputChannels
		case k <= len(p.axes.OutputSpatial):
			axis = p.axes.OutputSpatial[len(p.axes.OutputSpatial)-k]
		}
		if p.out[axis] > 1 && p.so[axis] != n {
			return false
		}
		n *= p.out[axis]
	}
	return true
}

// pack orders the kernel as [tap, input channel, output channel].
func (c *convRows[T]) pack(from []T) {
	p := c.p
	stepIn, stepOut := p.sk[p.axes.KernelInputChannels], p.sk[p.axes.KernelOutputChannels]
	to := c.weights
	for t := range c.tapCount {
		tap := from[c.kernelAt(t)+c.group*p.outC*stepOut:]
		if stepIn == 1 && p.inC >= 8 && p.outC >= 8 {
			for i0 := 0; i0 < p.inC; i0 += 16 { // a few lines at a time
				n := min(16, p.inC-i0)
				for o := range p.outC {
					for i, v := range tap[o*stepOut+i0:][:n] {
						to[(i0+i)*p.outC+o] = v
					}
				}
			}
		} else {
			for i := range p.inC {
				row := to[i*p.outC:][:p.outC]
				if stepOut == 1 {
					copy(row, tap[i*stepIn:])
					continue
				}
				for o := range row {
					row[o] = tap[i*stepIn+o*stepOut]
				}
			}
		}
		to = to[p.inC*p.outC:]
	}
}

// convPlaces is memory to work out where a position and its taps are.
type convPlaces struct{ at, taps []int }

func newConvPlaces(axes, taps int) *convPlaces {
	return &convPlaces{at: make([]int, axes), taps: make([]int, max(1, taps))}
}

// tile computes the outputs of positions from first on.
func (c *convRows[T]) tile(x, y []T, first int, patches, scratch []T, at *convPlaces) {
	p := c.p
	n := min(convTile, c.rows-first)
	to := gemm.Dense(scratch[:n*p.outC], n, p.outC)
	if c.direct {
		to.Data = y[first*p.outC:][:n*p.outC]
	}
	for t := 0; t < c.tapCount; t += c.each {
		taps := min(c.each, c.tapCount-t)
		c.fill(x, first, n, t, taps, patches, at)
		k := taps * p.inC
		a := gemm.Matrix[T]{Data: patches, Rows: n, Cols: k, RowStride: c.step, ColStride: 1}
		b := gemm.Dense(c.weights[t*p.inC*p.outC:][:k*p.outC], k, p.outC)
		o := gemm.Options[T]{Add: t > 0}
		if t+taps == c.tapCount {
			o.Act, o.Slope = c.act, T(c.slope)
		}
		gemm.Gemm(to, a, b, o)
	}
	if c.tapCount == 0 {
		clear(to.Data)
	}
	if c.direct {
		return
	}
	channel := p.so[p.axes.OutputChannels]
	for i := range n {
		r := first + i
		off := r/c.positions*p.so[p.axes.OutputBatch] + c.place(r%c.positions, at.at) + c.group*p.outC*channel
		row := scratch[i*p.outC:][:p.outC]
		if channel == 1 {
			copy(y[off:], row)
			continue
		}
		for o, v := range row {
			y[off+o*channel] = v
		}
	}
}

// fill copies the input under some taps: row i is position first+i.
func (c *convRows[T]) fill(x []T, first, n, t, taps int, to []T, at *convPlaces) {
	p := c.p
	for i := range n {
		r := first + i
		c.place(r%c.positions, at.at)
		c.under(at.at, at.taps)
		from := x[p.base(r/c.positions, c.group):]
		row := to[i*c.step:][:taps*p.inC]
		if c.last {
			copyTaps(row, from, at.taps[t:t+taps], p.inC)
			continue
		}
		channel := p.si[p.axes.InputChannels]
		for j, off := range at.taps[t : t+taps] {
			cell := row[j*p.inC:][:p.inC]
			if off < 0 {
				clear(cell)
				continue
			}
			for k := range cell {
				cell[k] = from[off+k*channel]
			}
		}
	}
}

// copyTaps copies n elements from each offset, those that follow each other at once, and zeros where there is none.
func copyTaps[T gemm.Float](to, from []T, offsets []int, n int) {
	for j := 0; j < len(offsets); {
		off, run := offsets[j], 1
		for j+run < len(offsets) && (off < 0 && offsets[j+run] < 0 || off >= 0 && offsets[j+run] == off+run*n) {
			run++
		}
		cell := to[j*n : (j+run)*n]
		switch {
		case off < 0:
			clear(cell)
		case n == 1 && run == 1:
			cell[0] = from[off]
		default:
			copy(cell, from[off:])
		}
		j += run
	}
}
