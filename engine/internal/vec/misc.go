//go:build amd64 || arm64

package vec

import "unsafe"

func setConversion[D, S, DK, SK any](f func(dst *DK, a *SK, n int)) {
	conversions[pairOf[D, S]{}] = func(dst []D, a []S) {
		check(len(dst), len(a))
		if len(a) > 0 {
			f((*DK)(unsafe.Pointer(&dst[0])), (*SK)(unsafe.Pointer(&a[0])), len(a))
		}
	}
}

func setFromBool[D Number](f func(dst *D, a *uint8, n int)) { fromBool[pairOf[D, bool]{}] = f }

// transposer does square blocks of lanes elements in registers: whole ones in strips, then those at the edges.
func transposer[T Number, W uint32 | uint64](lanes int, f func(dst, a *W, count, dstStride, aStride int),
	edge func(dst, a *W, rows, cols, dstStride, aStride int)) func(dst, a []T, rows, cols int) {
	size := int(unsafe.Sizeof(T(0)))
	return func(dst, a []T, rows, cols int) {
		checkTranspose(len(dst), len(a), rows, cols)
		if len(a) == 0 {
			return
		}
		at := func(s []T, i int) *W { return (*W)(unsafe.Pointer(&s[i])) }
		whole := cols - cols%lanes
		for i := 0; i < rows; i += lanes {
			r := min(lanes, rows-i)
			if r == lanes && whole > 0 {
				f(at(dst, i), at(a, i*cols), whole/lanes, rows*size, cols*size)
			}
			from := whole
			if r < lanes {
				from = 0
			}
			for j := from; j < cols; j += lanes {
				edge(at(dst, j*rows+i), at(a, i*cols+j), r, min(lanes, cols-j), rows*size, cols*size)
			}
		}
	}
}
