package engine

import "github.com/gomlx/compute"

// reduceWindow reduces windows of a padded, dilated operand; only elements that are there count.
type reduceWindow struct{ n *node }

// each calls f with the places of the elements in the window at a position.
func (a *windowAttr) each(dims, strides, at []int, axis, pos int, f func(pos int)) {
	if axis == len(dims) {
		f(pos)
		return
	}
	first := at[axis]*a.strides[axis] - a.paddings[axis][0]
	step, dilation := a.windowDilations[axis], a.dilations[axis]
	// Only places inside: a window may be much larger than what is there.
	last := (dims[axis]-1)*dilation - first
	if last < 0 {
		return
	}
	for k := max(0, (-first+step-1)/step); k <= min(a.window[axis]-1, last/step); k++ {
		if i := first + k*step; i%dilation == 0 {
			a.each(dims, strides, at, axis+1, pos+i/dilation*strides[axis], f)
		}
	}
}

// unravel writes the index of element i of dims.
func unravel(i int, dims, to []int) {
	for d := len(dims) - 1; d >= 0; d-- {
		to[d] = i % dims[d]
		i /= dims[d]
	}
}

func (w reduceWindow) bind(fr *frame, l *lop) func() {
	return byType(w.n.shape.DType, typed{
		func() func() { return bindWindow[int8](fr, l) }, func() func() { return bindWindow[int16](fr, l) },
		func() func() { return bindWindow[int32](fr, l) }, func() func() { return bindWindow[int64](fr, l) },
		func() func() { return bindWindow[uint8](fr, l) }, func() func() { return bindWindow[uint16](fr, l) },
		func() func() { return bindWindow[uint32](fr, l) }, func() func() { return bindWindow[uint64](fr, l) },
		func() func() { return bindWindow[float32](fr, l) }, func() func() { return bindWindow[float64](fr, l) },
	})
}

func bindWindow[T number](fr *frame, l *lop) func() {
	a := l.node.attr.(windowAttr)
	in, out := l.node.inputs[0].shape.Dimensions, l.node.shape.Dimensions
	strides := denseStrides(in)
	op := map[compute.ReduceOpType]compute.OpType{
		compute.ReduceOpSum: compute.OpTypeReduceSum, compute.ReduceOpProduct: compute.OpTypeReduceProduct,
		compute.ReduceOpMax: compute.OpTypeReduceMax, compute.ReduceOpMin: compute.OpTypeReduceMin,
	}[a.reduction]
	r := reducerOf(op, l.outs[0].t)
	return rowsOf(l.outs[0].size, product(a.window)*8, func(lo, hi int) {
		x := elems[T](fr.mem[l.ins[0].v.slot], l.ins[0].v.size)
		y := elems[T](fr.mem[l.outs[0].slot], l.outs[0].size)
		at := make([]int, len(out))
		r.start(add(fr.mem[l.outs[0].slot], lo, sizeOf(l.outs[0].t)), hi-lo)
		for i := lo; i < hi; i++ {
			unravel(i, out, at)
			s := y[i]
			a.each(in, strides, at, 0, 0, func(pos int) {
				switch v := x[pos]; a.reduction {
				case compute.ReduceOpSum:
					s += v
				case compute.ReduceOpProduct:
					s *= v
				case compute.ReduceOpMax:
					s = max(s, v)
				default:
					s = min(s, v)
				}
			})
			y[i] = s
		}
	})
}

// selectScatter adds each source element to the extreme element of its window.
type selectScatter struct{ n *node }

func (w selectScatter) bind(fr *frame, l *lop) func() {
	return byType(w.n.shape.DType, typed{
		func() func() { return bindSelect[int8](fr, l) }, func() func() { return bindSelect[int16](fr, l) },
		func() func() { return bindSelect[int32](fr, l) }, func() func() { return bindSelect[int64](fr, l) },
		func() func() { return bindSelect[uint8](fr, l) }, func() func() { return bindSelect[uint16](fr, l) },
		func() func() { return bindSelect[uint32](fr, l) }, func() func() { return bindSelect[uint64](fr, l) },
		func() func() { return bindSelect[float32](fr, l) }, func() func() { return bindSelect[float64](fr, l) },
	})
}

func bindSelect[T number](fr *frame, l *lop) func() {
	a := l.node.attr.(windowAttr)
	in, from := l.node.inputs[0].shape.Dimensions, l.node.inputs[1].shape.Dimensions
	strides := denseStrides(in)
	at := make([]int, len(in))
	return func() {
		x := elems[T](fr.mem[l.ins[0].v.slot], l.ins[0].v.size)
		s := elems[T](fr.mem[l.ins[1].v.slot], l.ins[1].v.size)
		y := elems[T](fr.mem[l.outs[0].slot], l.outs[0].size)
		clear(y)
		for i, v := range s {
			unravel(i, from, at)
			best := -1
			a.each(in, strides, at, 0, 0, func(pos int) {
				if best < 0 || a.reduction == compute.ReduceOpMax && x[pos] > x[best] ||
					a.reduction == compute.ReduceOpMin && x[pos] < x[best] {
					best = pos
				}
			})
			if best >= 0 {
				y[best] += v
			}
		}
	}
}
