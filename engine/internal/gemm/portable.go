package gemm

import (
	"math"
	"unsafe"
)

var (
	portable32 = portable[float32](12)
	portable64 = portable[float64](12)

	portableMax32 = portableMax[float32](12)
	portableMax64 = portableMax[float64](12)
)

// portable is the kernels in plain Go: tiles of 4 x 4.
func portable[T Float](speed int) family {
	return family{
		widths: []width{{cols: 4, last: 4, kernel: [maxRows + 1]kernel{1: row1[T], 4: tile4[T]}}},
		rows:   4, panel: 4, kc: 256, mc: 64,
		dot: dotGo[T], dot1: dotGo[T], dotRows: 1, dotLanes: 1,
		speed: speed, peak: peakGo[T], flops: 2 * 8,
	}.cut(4, 1)
}

// at is the element at an offset in bytes.
func at[T Float](p unsafe.Pointer, offset int) *T { return (*T)(unsafe.Add(p, offset)) }

// sums is a tile of two rows and two columns: with more, or within a larger function, the compiler spills registers.
//
//go:noinline
func sums[T Float](k int, a, b unsafe.Pointer, aRow, aCol, bRow int) (c00, c01, c10, c11 T) {
	x, y := 0, 0
	for range k {
		a0, a1 := *at[T](a, x), *at[T](a, x+aRow)
		b0, b1 := *at[T](b, y), *at[T](b, y+int(unsafe.Sizeof(T(0))))
		c00 += a0 * b0
		c01 += a0 * b1
		c10 += a1 * b0
		c11 += a1 * b1
		x += aCol
		y += bRow
	}
	return c00, c01, c10, c11
}

// tile4 is the kernel of four rows and up to four columns.
func tile4[T Float](p *params) {
	if p.cols < 4 {
		rows[T](p, 4)
		return
	}
	size := int(unsafe.Sizeof(T(0)))
	aRow, aCol, bRow := p.aRow, p.aCol, p.bRow
	for t := range p.tiles {
		var c [4][4]T
		for q := range 4 {
			i, j := q&2, q<<1&2
			a, b := unsafe.Add(p.a, t*p.aTile+i*aRow), unsafe.Add(p.b, t*p.bTile+j*size)
			c[i][j], c[i][j+1], c[i+1][j], c[i+1][j+1] = sums[T](p.k, a, b, aRow, aCol, bRow)
		}
		for i := range c {
			finishRow(p, t, i, c[i][:])
		}
	}
}

// row1 is the kernel of one row and up to four columns.
func row1[T Float](p *params) {
	if p.cols < 4 {
		rows[T](p, 1)
		return
	}
	size := int(unsafe.Sizeof(T(0)))
	aCol, bRow := p.aCol, p.bRow
	for t := range p.tiles {
		var c0, c1, c2, c3 T
		a, b := unsafe.Add(p.a, t*p.aTile), unsafe.Add(p.b, t*p.bTile)
		x, y := 0, 0
		for range p.k {
			a0 := *at[T](a, x)
			c0 += a0 * *at[T](b, y)
			c1 += a0 * *at[T](b, y+size)
			c2 += a0 * *at[T](b, y+2*size)
			c3 += a0 * *at[T](b, y+3*size)
			x += aCol
			y += bRow
		}
		c := [4]T{c0, c1, c2, c3}
		finishRow(p, t, 0, c[:])
	}
}

// rows is the kernel of any number of rows and up to four columns.
func rows[T Float](p *params, n int) {
	size := int(unsafe.Sizeof(T(0)))
	for t := range p.tiles {
		for i := range n {
			var sum [4]T
			a, b := t*p.aTile+i*p.aRow, t*p.bTile
			for range p.k {
				x := *at[T](p.a, a)
				for j := range p.cols {
					sum[j&3] += x * *at[T](p.b, b+j*size)
				}
				a += p.aCol
				b += p.bRow
			}
			finishRow(p, t, i, sum[:p.cols])
		}
	}
}

// finishRow does what the flags ask for with row i of tile t and stores it.
func finishRow[T Float](p *params, t, i int, row []T) {
	c := unsafe.Slice(at[T](p.c, t*p.cTile+i*p.cRow), len(row))
	if p.flags&flagAdd != 0 {
		for j := range row {
			row[j] += c[j]
		}
	}
	if p.flags&flagBias != 0 {
		for j, b := range unsafe.Slice(at[T](p.bias, t*p.biasTile), len(row)) {
			row[j] += b
		}
	}
	if p.flags&flagRowBias != 0 {
		b := *at[T](p.rowBias, t*p.rowBiasTile+i*int(unsafe.Sizeof(T(0))))
		for j := range row {
			row[j] += b
		}
	}
	switch {
	case p.flags&flagReLU != 0:
		activate(row, ReLU, 0)
	case p.flags&flagLeaky != 0:
		activate(row, Leaky, *(*T)(unsafe.Pointer(&p.slope)))
	}
	copy(c, row)
}

// portableMax is the kernels of maxima in plain Go: tiles of 1 x 4.
func portableMax[T Float](speed int) family {
	return family{
		widths: []width{{cols: 4, last: 4, kernel: [maxRows + 1]kernel{1: maxRow[T]}}},
		rows:   1, panel: 4, kc: 256, mc: 64, speed: speed,
	}
}

// maxRow is the kernel of maxima of one row and up to four columns.
func maxRow[T Float](p *params) {
	size := int(unsafe.Sizeof(T(0)))
	column := func(j int) int { return min(j, p.cols-1) * size } // absent ones repeat the last one
	x, y, z := column(1), column(2), column(3)
	for t := range p.tiles {
		a, b := unsafe.Add(p.a, t*p.aTile), unsafe.Add(p.b, t*p.bTile)
		var row [4]T
		row[0], row[1], row[2], row[3] = maxima[T](p.k, a, b, p.aCol, p.bRow, x, y, z)
		for j, most := range row[:p.cols] {
			c := at[T](p.c, t*p.cTile+j*size)
			if p.flags&flagAdd != 0 {
				most = max(most, *c)
			}
			*c = most
		}
	}
}

// maxima are those of one row and four columns, 0, x, y and z bytes from the first.
//
//go:noinline
func maxima[T Float](k int, a, b unsafe.Pointer, aCol, bRow, x, y, z int) (c0, c1, c2, c3 T) {
	c0 = T(math.Inf(-1))
	c1, c2, c3 = c0, c0, c0
	i, j := 0, 0
	for range k {
		v := *at[T](a, i)
		c0 = max(c0, v+*at[T](b, j))
		c1 = max(c1, v+*at[T](b, j+x))
		c2 = max(c2, v+*at[T](b, j+y))
		c3 = max(c3, v+*at[T](b, j+z))
		i += aCol
		j += bRow
	}
	return c0, c1, c2, c3
}

// activate applies an activation.
func activate[T Float](s []T, act Activation, slope T) {
	switch act {
	case ReLU:
		for i, x := range s {
			if x < 0 {
				s[i] = 0
			}
		}
	case Leaky:
		for i, x := range s {
			if x < 0 {
				s[i] = x * slope
			}
		}
	}
}

// dotGo is the kernel of one dot product.
func dotGo[T Float](p *params) {
	b := unsafe.Slice((*T)(p.b), p.k)
	for t := range p.tiles {
		a := unsafe.Slice(at[T](p.a, t*p.aTile), p.k)
		var s0, s1, s2, s3 T
		i := 0
		for ; i+4 <= len(a) && i+4 <= len(b); i += 4 {
			x, y := a[i:i+4:i+4], b[i:i+4:i+4]
			s0 += x[0] * y[0]
			s1 += x[1] * y[1]
			s2 += x[2] * y[2]
			s3 += x[3] * y[3]
		}
		for ; i < len(a); i++ {
			s0 += a[i] * b[i]
		}
		*at[T](p.c, t*int(unsafe.Sizeof(T(0)))) = s0 + s1 + (s2 + s3)
	}
}
