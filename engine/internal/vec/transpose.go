package vec

import "fmt"

// transpose goes by square blocks that fit the cache.
func transpose[T any](dst, a []T, rows, cols int) {
	checkTranspose(len(dst), len(a), rows, cols)
	const block = 16
	for i0 := 0; i0 < rows; i0 += block {
		for j0 := 0; j0 < cols; j0 += block {
			transposeBlock(dst, a, rows, cols, i0, min(i0+block, rows), j0, min(j0+block, cols))
		}
	}
}

// transposeBlock does rows i0 to i1 and columns j0 to j1 of a.
func transposeBlock[T any](dst, a []T, rows, cols, i0, i1, j0, j1 int) {
	for j := j0; j < j1; j++ {
		out := dst[j*rows : j*rows+rows]
		for i := i0; i < i1; i++ {
			out[i] = a[i*cols+j]
		}
	}
}

func checkTranspose(dst, a, rows, cols int) {
	if rows < 0 || cols < 0 || rows*cols != a || dst != a {
		panic(fmt.Sprintf("vec: transpose of [%d, %d] from %d to %d elements", rows, cols, a, dst))
	}
}
