package vec

import "math"

// sum adds in eight interleaved parts.
func sum[T Number](a []T) T {
	var p [8]T
	for ; len(a) >= 8; a = a[8:] {
		p[0] += a[0]
		p[1] += a[1]
		p[2] += a[2]
		p[3] += a[3]
		p[4] += a[4]
		p[5] += a[5]
		p[6] += a[6]
		p[7] += a[7]
	}
	for i, x := range a {
		p[i] += x
	}
	return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]))
}

func prod[T Number](a []T) T {
	p := T(1)
	for _, x := range a {
		p *= x
	}
	return p
}

// rows applies a reduction to each row.
func rows[T Number](_ *Table[T], f func(a []T) T) func(dst, a []T, n int) {
	return func(dst, a []T, n int) {
		checkRows(len(dst), len(a), n)
		for i := range dst {
			dst[i] = f(a[i*n : (i+1)*n])
		}
	}
}

// columns reduces over the rows of [rows, n], n = len(dst). Without rows it gives the neutral element.
func columns[T Number](t *Table[T], op BinaryOp) func(dst, a []T) {
	return func(dst, a []T) {
		n := len(dst)
		if n == 0 || len(a)%n != 0 {
			badRows(n, len(a), n)
		}
		if len(a) == 0 {
			var v T
			switch op {
			case Max:
				v = t.Max(nil)
			case Min:
				v = t.Min(nil)
			}
			t.Fill(dst, v)
			return
		}
		copy(dst, a[:n])
		f := t.Binary[op]
		for a = a[n:]; len(a) > 0; a = a[n:] {
			f(dst, dst, a[:n])
		}
	}
}

// argMax is the first place of the greatest element of each row; a NaN beats what stands before it.
func argMax[T Number](t *Table[T], dst []int32, a []T, n int) {
	checkRows(len(dst), len(a), n)
	for i := range dst {
		row := a[i*n : (i+1)*n]
		if n >= longRow {
			dst[i] = int32(find(row, t.Max(row)))
			continue
		}
		best, at := row[0], 0
		for j, x := range row[1:] {
			if x > best || x != x {
				best, at = x, j+1
			}
		}
		dst[i] = int32(at)
	}
}

// argMin is argMax for the least element.
func argMin[T Number](t *Table[T], dst []int32, a []T, n int) {
	checkRows(len(dst), len(a), n)
	for i := range dst {
		row := a[i*n : (i+1)*n]
		if n >= longRow {
			dst[i] = int32(find(row, t.Min(row)))
			continue
		}
		best, at := row[0], 0
		for j, x := range row[1:] {
			if x < best || x != x {
				best, at = x, j+1
			}
		}
		dst[i] = int32(at)
	}
}

// longRow is the length from which it is quicker to look for the best element with a kernel, then for its place.
const longRow = 32

// find is the first place of x, which is there, or the last place of a NaN if x is NaN.
func find[T Number](row []T, x T) int {
	if x != x {
		for i := len(row) - 1; ; i-- {
			if row[i] != row[i] {
				return i
			}
		}
	}
	i := 0
	for ; i+8 <= len(row); i += 8 {
		r := row[i : i+8 : i+8]
		if r[0] == x || r[1] == x || r[2] == x || r[3] == x || r[4] == x || r[5] == x || r[6] == x || r[7] == x {
			break
		}
	}
	for row[i] != x {
		i++
	}
	return i
}

// shift is what to subtract before exponentials: the maximum, or 0 where that is infinite.
func shift[T Float](m T) T {
	if math.IsInf(float64(m), 0) {
		return 0
	}
	return m
}

func logSumExp[T Float](t *Table[T], dst, a []T, n int) {
	checkRows(len(dst), len(a), n)
	var buf [512]T
	for i := range dst {
		row := a[i*n : (i+1)*n]
		m := shift(t.Max(row))
		var s T
		for ; len(row) > 0; row = row[min(len(row), len(buf)):] {
			b := buf[:min(len(row), len(buf))]
			t.BinaryVS[Sub](b, row[:len(b)], m)
			t.Unary[Exp](b, b)
			s += t.Sum(b)
		}
		dst[i] = m + T(log(float64(s)))
	}
}

func softmax[T Float](t *Table[T], dst, a []T, n int) {
	check(len(dst), len(a))
	checkRows(len(a)/max(n, 1), len(a), n)
	for i := 0; i < len(a); i += n {
		row, out := a[i:i+n], dst[i:i+n]
		t.BinaryVS[Sub](out, row, t.Max(row))
		t.Unary[Exp](out, out)
		t.BinaryVS[Mul](out, out, 1/t.Sum(out))
	}
}

func logSoftmax[T Float](t *Table[T], dst, a []T, n int) {
	check(len(dst), len(a))
	checkRows(len(a)/max(n, 1), len(a), n)
	var buf [512]T
	for i := 0; i < len(a); i += n {
		row, out := a[i:i+n], dst[i:i+n]
		t.BinaryVS[Sub](out, row, t.Max(row))
		var s T
		for r := out; len(r) > 0; r = r[min(len(r), len(buf)):] {
			b := buf[:min(len(r), len(buf))]
			t.Unary[Exp](b, r[:len(b)])
			s += t.Sum(b)
		}
		t.BinaryVS[Sub](out, out, T(log(float64(s))))
	}
}
