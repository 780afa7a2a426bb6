package engine

import (
	"slices"

	"github.com/gomlx/compute"
)

// gatherStep copies slices of an operand. It is planned when it is compiled: for each slice, batch says where its indices
// and its place in the result are.
type gatherStep struct {
	dims, strides []int // of the operand
	sizes         []int // of a slice
	axes          []int // which operand axis each index is of
	index         walk  // over the batch: positions of the first index of each slice
	result        walk  // over the batch: positions of slices in the result
	indexStep     int   // from one index of a slice to the next
	out           []int // strides of the result along the operand's axes
}

// walk lists positions: of dims, with strides.
type walk struct{ dims, strides []int }

// newWalk makes one axis of those that follow one another, so that a position takes few divisions.
func newWalk(dims, strides []int) walk {
	dims, strides = (&access{dims: dims, strides: strides}).collapse()
	return walk{dims, strides}
}

func (w walk) at(i int) (pos int) {
	for d := len(w.dims) - 1; d > 0; d-- {
		pos += i % w.dims[d] * w.strides[d]
		i /= w.dims[d]
	}
	if len(w.dims) > 0 {
		pos += i * w.strides[0]
	}
	return pos
}

// split takes one axis out of indices, if it is there.
func split(dims []int, axis int) (w walk, step int) {
	dims, strides := slices.Clone(dims), denseStrides(dims)
	step = 1
	if axis < len(dims) {
		step = strides[axis]
		dims, strides = slices.Delete(dims, axis, axis+1), slices.Delete(strides, axis, axis+1)
	}
	return newWalk(dims, strides), step
}

// walkOthers walks along all axes but some.
func walkOthers(dims, strides, but []int) walk {
	var some, steps []int
	for i, d := range dims {
		if !slices.Contains(but, i) {
			some, steps = append(some, d), append(steps, strides[i])
		}
	}
	return newWalk(some, steps)
}

func newGather(n *node) *gatherStep {
	at := n.attr.(gatherAttr)
	g := &gatherStep{dims: n.inputs[0].shape.Dimensions, sizes: at.sizes, axes: at.startIndexMap}
	g.strides = denseStrides(g.dims)
	g.index, g.indexStep = split(n.inputs[1].shape.Dimensions, at.indexVectorAxis)
	out := denseStrides(n.shape.Dimensions)
	g.result = walkOthers(n.shape.Dimensions, out, at.offsetAxes)
	g.out = make([]int, len(g.dims))
	offset := slices.Clone(at.offsetAxes)
	k := 0
	for i := range g.dims {
		if !slices.Contains(at.collapsedAxes, i) {
			g.out[i] = out[offset[k]]
			k++
		}
	}
	return g
}

func (g *gatherStep) bind(fr *frame, l *lop) func() {
	x, idx, y := l.ins[0].v, l.ins[1].v, l.outs[0]
	size, n := sizeOf(y.t), product(g.index.dims)
	slice := product(g.sizes)
	// One contiguous run per slice is the common case: rows of a table, or single elements.
	run := true
	for i, want := len(g.sizes)-1, 1; i >= 0; i-- {
		if g.sizes[i] > 1 {
			run = run && g.strides[i] == want && g.out[i] == want
			want *= g.sizes[i]
		}
	}
	if y.size == 0 {
		return func() {}
	}
	return rowsOf(n, 8+slice*size/8, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from, at := 0, g.index.at(i)
			for k, axis := range g.axes {
				s := intAt(idx.t, fr.mem[idx.slot], at+k*g.indexStep)
				from += max(0, min(s, g.dims[axis]-g.sizes[axis])) * g.strides[axis]
			}
			to := add(fr.mem[y.slot], g.result.at(i), size)
			if run {
				copy(bytesAt(to, slice*size), bytesAt(add(fr.mem[x.slot], from, size), slice*size))
			} else {
				stridedCopy(size, to, g.out, add(fr.mem[x.slot], from, size), g.strides, g.sizes)
			}
		}
	})
}

// scatterStep combines slices of updates into a copy of an operand, in order.
type scatterStep struct {
	op            compute.OpType
	dims, strides []int
	axes          []int // operand axis of each index
	index         walk
	indexStep     int
	batch         walk  // positions of slices in the updates
	sizes         []int // of a slice, along the operand's axes
	from          []int // strides of the updates along the operand's axes
}

func newScatter(n *node) *scatterStep {
	at := n.attr.(scatterAttr)
	s := &scatterStep{op: n.op, dims: n.shape.Dimensions, axes: at.scatterToAxes}
	s.strides = denseStrides(s.dims)
	s.index, s.indexStep = split(n.inputs[1].shape.Dimensions, at.indexVectorAxis)
	updates := n.inputs[2].shape.Dimensions
	up := denseStrides(updates)
	s.batch = walkOthers(updates, up, at.windowAxes)
	window := slices.Clone(at.windowAxes)
	slices.Sort(window)
	s.sizes, s.from = slices.Repeat([]int{1}, len(s.dims)), make([]int, len(s.dims))
	k := 0
	for i := range s.dims {
		if !slices.Contains(at.insertedAxes, i) {
			s.sizes[i], s.from[i] = updates[window[k]], up[window[k]]
			k++
		}
	}
	return s
}

func (s *scatterStep) bind(fr *frame, l *lop) func() {
	return byType(l.outs[0].t, typed{
		func() func() { return bindScatter[int8](s, fr, l) }, func() func() { return bindScatter[int16](s, fr, l) },
		func() func() { return bindScatter[int32](s, fr, l) }, func() func() { return bindScatter[int64](s, fr, l) },
		func() func() { return bindScatter[uint8](s, fr, l) }, func() func() { return bindScatter[uint16](s, fr, l) },
		func() func() { return bindScatter[uint32](s, fr, l) }, func() func() { return bindScatter[uint64](s, fr, l) },
		func() func() { return bindScatter[float32](s, fr, l) }, func() func() { return bindScatter[float64](s, fr, l) },
	})
}

func bindScatter[T number](s *scatterStep, fr *frame, l *lop) func() {
	x, idx, up, y := l.ins[0].v, l.ins[1].v, l.ins[2].v, l.outs[0]
	n := product(s.index.dims)
	single := product(s.sizes) == 1
	return func() {
		copy(bytesAt(fr.mem[y.slot], y.bytes()), bytesAt(fr.mem[x.slot], y.bytes()))
		to, from := elems[T](fr.mem[y.slot], y.size), elems[T](fr.mem[up.slot], up.size)
		if up.size == 0 {
			return
		}
		for i := range n {
			start, at, inside := 0, s.index.at(i), true
			for k, axis := range s.axes {
				v := intAt(idx.t, fr.mem[idx.slot], at+k*s.indexStep)
				inside = inside && v >= 0 && v <= s.dims[axis]-s.sizes[axis]
				start += v * s.strides[axis]
			}
			switch {
			case !inside:
			case single:
				combine(s.op, to[start:start+1], from[s.batch.at(i)])
			default:
				scatterBox(s, s.op, to, start, from, s.batch.at(i), 0)
			}
		}
	}
}

func combine[T number](op compute.OpType, to []T, v T) {
	switch op {
	case compute.OpTypeScatterSum:
		to[0] += v
	case compute.OpTypeScatterMax:
		to[0] = max(to[0], v)
	default:
		to[0] = min(to[0], v)
	}
}

func scatterBox[T number](s *scatterStep, op compute.OpType, to []T, at int, from []T, up, axis int) {
	if axis == len(s.sizes) {
		combine(op, to[at:at+1], from[up])
		return
	}
	for i := range s.sizes[axis] {
		scatterBox(s, op, to, at+i*s.strides[axis], from, up+i*s.from[axis], axis+1)
	}
}
