package engine

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/engine/internal/par"
)

// opaqueOf returns how a node is carried out as a step of its own.
func opaqueOf(c *compiler, n *node) opaque {
	switch n.op {
	case compute.OpTypeGather:
		return newGather(n)
	case compute.OpTypeScatterSum, compute.OpTypeScatterMax, compute.OpTypeScatterMin:
		return newScatter(n)
	case compute.OpTypeDynamicSlice:
		return dynamicSlice{n}
	case compute.OpTypeDynamicUpdateSlice:
		return dynamicUpdate{n}
	case compute.OpTypeCumSum:
		return cumSum{n}
	case compute.OpTypeReduceWindow:
		return reduceWindow{n}
	case compute.OpTypeSelectAndScatterMax, compute.OpTypeSelectAndScatterMin:
		return selectScatter{n}
	case compute.OpTypeConvGeneral:
		return convolution{n}
	case compute.OpTypeRNGBitGenerator:
		return randomBits{}
	case compute.OpTypeIota:
		return iotaStep{}
	case compute.OpTypeWhile, compute.OpTypeIf, compute.OpTypeSort, compute.OpTypeCall:
		return newControl(c, n)
	}
	panic(fmt.Errorf("operation %s: %w", n.op, compute.ErrNotImplemented))
}

// byType runs f for the element type, which is a number.
func byType(t dtypes.DType, on typed) func() {
	switch t {
	case dtypes.Int8:
		return on.int8()
	case dtypes.Int16:
		return on.int16()
	case dtypes.Int32:
		return on.int32()
	case dtypes.Int64:
		return on.int64()
	case dtypes.Uint8:
		return on.uint8()
	case dtypes.Uint16:
		return on.uint16()
	case dtypes.Uint32:
		return on.uint32()
	case dtypes.Uint64:
		return on.uint64()
	case dtypes.Float32:
		return on.float32()
	case dtypes.Float64:
		return on.float64()
	}
	panic(fmt.Errorf("elements of type %s: %w", t, compute.ErrNotImplemented))
}

// typed is a step for each type.
type typed struct {
	int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64 func() func()
}

// intAt reads an integer of any type as int. An unsigned one that does not fit is large.
func intAt(t dtypes.DType, p ptr, i int) int {
	switch t {
	case dtypes.Int8:
		return int(*(*int8)(add(p, i, 1)))
	case dtypes.Int16:
		return int(*(*int16)(add(p, i, 2)))
	case dtypes.Int32:
		return int(*(*int32)(add(p, i, 4)))
	case dtypes.Int64:
		return int(*(*int64)(add(p, i, 8)))
	case dtypes.Uint8:
		return int(*(*uint8)(add(p, i, 1)))
	case dtypes.Uint16:
		return int(*(*uint16)(add(p, i, 2)))
	case dtypes.Uint32:
		return int(*(*uint32)(add(p, i, 4)))
	}
	return int(min(*(*uint64)(add(p, i, 8)), 1<<62))
}

// copyBytes copies a value as it is.
type copyBytes struct{}

func (copyBytes) bind(fr *frame, l *lop) func() {
	from, to, n := l.ins[0].v.slot, l.outs[0].slot, l.outs[0].bytes()
	return func() { copy(bytesAt(fr.mem[to], n), bytesAt(fr.mem[from], n)) }
}

// joinBytes copies values one after another.
type joinBytes struct{}

func (joinBytes) bind(fr *frame, l *lop) func() {
	to := l.outs[0].slot
	return func() {
		off := 0
		for _, a := range l.ins {
			n := a.v.bytes()
			if n > 0 {
				copy(bytesAt(add(fr.mem[to], off, 1), n), bytesAt(fr.mem[a.v.slot], n))
			}
			off += n
		}
	}
}

// fillNeutral is a reduction of nothing.
type fillNeutral struct{ r *reducer }

func (f fillNeutral) bind(fr *frame, l *lop) func() {
	v := l.outs[0]
	return func() { f.r.start(fr.mem[v.slot], v.size) }
}

// zeroStep sets a value to zeros.
type zeroStep struct{}

func (zeroStep) bind(fr *frame, l *lop) func() {
	v := l.outs[0]
	return func() { clear(bytesAt(fr.mem[v.slot], v.bytes())) }
}

// iotaStep counts.
type iotaStep struct{}

func (iotaStep) bind(fr *frame, l *lop) func() {
	v := l.outs[0]
	from := count(v.t, v.size)
	return func() { copy(bytesAt(fr.mem[v.slot], v.bytes()), bytesAt(from, v.bytes())) }
}

// padStep pads along any axes.
type padStep struct{ axes []compute.PadAxis }

func (p padStep) bind(fr *frame, l *lop) func() {
	n := l.node
	from, dims := n.inputs[0].shape.Dimensions, n.shape.Dimensions
	size := sizeOf(n.shape.DType)
	strides, off := denseStrides(dims), 0
	for i, a := range p.axes {
		off += a.Start * strides[i]
		strides[i] *= a.Interior + 1
	}
	x, fill, y := l.ins[0].v, l.ins[1].v, l.outs[0]
	k := pickers[size]
	return func() {
		k.spread(fr.mem[y.slot], fr.mem[fill.slot], 1, y.size, 0)
		if x.size > 0 {
			stridedCopy(size, add(fr.mem[y.slot], off, size), strides, fr.mem[x.slot], denseStrides(from), from)
		}
	}
}

// stridedCopy copies a box of elements from one layout to another.
func stridedCopy(size int, to ptr, toStrides []int, from ptr, fromStrides, dims []int) {
	k := len(dims)
	if k == 0 {
		copy(bytesAt(to, size), bytesAt(from, size))
		return
	}
	if k == 1 {
		n, s, t := dims[0], fromStrides[0], toStrides[0]
		switch {
		case s == 1 && t == 1:
			copy(bytesAt(to, n*size), bytesAt(from, n*size))
		case t == 1:
			pickers[size].line(to, from, n, s)
		default:
			for i := range n {
				copy(bytesAt(add(to, i*t, size), size), bytesAt(add(from, i*s, size), size))
			}
		}
		return
	}
	for i := range dims[0] {
		stridedCopy(size, add(to, i*toStrides[0], size), toStrides[1:], add(from, i*fromStrides[0], size), fromStrides[1:], dims[1:])
	}
}

// dynamicSlice copies a box whose place is known when it runs.
type dynamicSlice struct{ n *node }

// startOf reads start indices and clamps them so that a box of the given dimensions fits.
func startOf(fr *frame, ins []*access, dims, box, strides []int) int {
	off := 0
	for i, a := range ins {
		s := intAt(a.v.t, fr.mem[a.v.slot], 0)
		off += max(0, min(s, dims[i]-box[i])) * strides[i]
	}
	return off
}

func (d dynamicSlice) bind(fr *frame, l *lop) func() {
	from, dims := d.n.inputs[0].shape.Dimensions, d.n.shape.Dimensions
	size := sizeOf(d.n.shape.DType)
	in, out := denseStrides(from), denseStrides(dims)
	return func() {
		off := startOf(fr, l.ins[1:], from, dims, in)
		stridedCopy(size, fr.mem[l.outs[0].slot], out, add(fr.mem[l.ins[0].v.slot], off, size), in, dims)
	}
}

type dynamicUpdate struct{ n *node }

func (d dynamicUpdate) bind(fr *frame, l *lop) func() {
	dims, box := d.n.shape.Dimensions, d.n.inputs[1].shape.Dimensions
	size := sizeOf(d.n.shape.DType)
	out, in := denseStrides(dims), denseStrides(box)
	return func() {
		y, x := fr.mem[l.outs[0].slot], fr.mem[l.ins[0].v.slot]
		copy(bytesAt(y, l.outs[0].bytes()), bytesAt(x, l.outs[0].bytes()))
		if l.ins[1].v.size > 0 {
			off := startOf(fr, l.ins[2:], dims, box, out)
			stridedCopy(size, add(y, off, size), out, fr.mem[l.ins[1].v.slot], in, box)
		}
	}
}

// cumSum adds along an axis.
type cumSum struct{ n *node }

func (s cumSum) bind(fr *frame, l *lop) func() {
	return byType(s.n.shape.DType, typed{
		func() func() { return bindCum[int8](fr, l) }, func() func() { return bindCum[int16](fr, l) },
		func() func() { return bindCum[int32](fr, l) }, func() func() { return bindCum[int64](fr, l) },
		func() func() { return bindCum[uint8](fr, l) }, func() func() { return bindCum[uint16](fr, l) },
		func() func() { return bindCum[uint32](fr, l) }, func() func() { return bindCum[uint64](fr, l) },
		func() func() { return bindCum[float32](fr, l) }, func() func() { return bindCum[float64](fr, l) },
	})
}

func bindCum[T number](fr *frame, l *lop) func() {
	at, dims := l.node.attr.(cumAttr), l.node.shape.Dimensions
	outer, n, inner := product(dims[:at.axis]), dims[at.axis], product(dims[at.axis+1:])
	return func() {
		x, y := elems[T](fr.mem[l.ins[0].v.slot], l.outs[0].size), elems[T](fr.mem[l.outs[0].slot], l.outs[0].size)
		for o := range outer {
			for i := range inner {
				var sum T
				for k := range n {
					if at.reverse {
						k = n - 1 - k
					}
					j := (o*n+k)*inner + i
					before := sum
					sum += x[j]
					if at.exclusive {
						y[j] = before
					} else {
						y[j] = sum
					}
				}
			}
		}
	}
}

// rowsOf divides n items of a given cost each, in quarter nanoseconds, among threads.
func rowsOf(n, cost int, body func(lo, hi int)) func() {
	grain := max(1, 200_000/max(1, cost), (n+63)/64)
	return func() { par.For(n, grain, body) }
}
