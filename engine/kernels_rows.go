package engine

import (
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/vec"
)

// The loops here step pointers before the next row instead of after the last one, which would leave the object.

// spreadRows repeats the first element of each row of from, which are step elements apart, width times.
func spreadRows[T any](to, from ptr, rows, width, step, size int) {
	if rows <= 0 || width <= 0 {
		return
	}
	switch in := step * size; {
	case width == 1:
		copyRows[T](to, from, rows, 1, 1, step, size)
	case width == 2 && size == 4:
		spread2x4(to, from, rows, in)
	case width == 4 && size == 4:
		spread4x4(to, from, rows, in)
	case width == 4 && size == 1:
		spread4x1(to, from, rows, in)
	case width >= 16 && size == 4:
		spreadx4(to, from, rows, width, in)
	default:
		for r := 1; ; r++ {
			fill(elems[T](to, width), *(*T)(from))
			if r == rows {
				return
			}
			from, to = unsafe.Add(from, in), unsafe.Add(to, width*size)
		}
	}
}

func spread2x4(to, from ptr, rows, in int) {
	for r := 1; ; r++ {
		v := uint64(*(*uint32)(from))
		*(*uint64)(to) = v | v<<32
		if r == rows {
			return
		}
		from, to = unsafe.Add(from, in), unsafe.Add(to, 8)
	}
}

func spread4x4(to, from ptr, rows, in int) {
	for r := 1; ; r++ {
		v := uint64(*(*uint32)(from))
		v |= v << 32
		*(*uint64)(to) = v
		*(*uint64)(unsafe.Add(to, 8)) = v
		if r == rows {
			return
		}
		from, to = unsafe.Add(from, in), unsafe.Add(to, 16)
	}
}

func spread4x1(to, from ptr, rows, in int) {
	for r := 1; ; r++ {
		*(*uint32)(to) = uint32(*(*uint8)(from)) * 0x01010101
		if r == rows {
			return
		}
		from, to = unsafe.Add(from, in), unsafe.Add(to, 4)
	}
}

// spreadx4 sets words of 4 bytes by vectors, whatever they are: floating-point moves keep all bits.
func spreadx4(to, from ptr, rows, width, in int) {
	for r := 1; ; r++ {
		vec.F32.Fill(elems[float32](to, width), *(*float32)(from))
		if r == rows {
			return
		}
		from, to = unsafe.Add(from, in), unsafe.Add(to, 4*width)
	}
}

// copyRows copies rows of width elements between layouts with other distances from row to row.
func copyRows[T any](to, from ptr, rows, width, toStep, fromStep, size int) {
	if rows <= 0 || width <= 0 {
		return
	}
	out, in := toStep*size, fromStep*size
	switch {
	case toStep == width && fromStep == width:
		copy(bytesAt(to, rows*width*size), bytesAt(from, rows*width*size))
	case width == 1:
		moveRows[T](to, from, rows, out, in)
	case width == 2:
		moveRows[[2]T](to, from, rows, out, in)
	case width == 3:
		moveRows[[3]T](to, from, rows, out, in)
	case width == 4:
		moveRows[[4]T](to, from, rows, out, in)
	case width == 8:
		moveRows[[8]T](to, from, rows, out, in)
	default:
		for r := 1; ; r++ {
			if width < 16 {
				y, x := elems[T](to, width), elems[T](from, width)
				for j := range y {
					y[j] = x[j]
				}
			} else {
				copy(elems[T](to, width), elems[T](from, width))
			}
			if r == rows {
				return
			}
			from, to = unsafe.Add(from, in), unsafe.Add(to, out)
		}
	}
}

// moveRows copies rows that are one T each.
func moveRows[T any](to, from ptr, rows, out, in int) {
	for r := 1; ; r++ {
		*(*T)(to) = *(*T)(from)
		if r == rows {
			return
		}
		from, to = unsafe.Add(from, in), unsafe.Add(to, out)
	}
}
