package vec

// numbers is the part of a plain Go table that every type has.
func numbers[T Number]() *Table[T] {
	t := &Table[T]{}
	t.Unary[Neg] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = -x
		}
	}
	t.Unary[Square] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x * x
		}
	}
	t.arithmetic()
	t.binary(Div, func(x, y T) T { return x / y })
	t.binary(Max, func(x, y T) T { return max(x, y) })
	t.binary(Min, func(x, y T) T { return min(x, y) })
	t.comparisons()
	t.Select, t.SelectVS, t.SelectSV, t.SelectSS = selectVV[T], selectVS[T], selectSV[T], selectSS[T]
	t.Fill = func(dst []T, v T) {
		for i := range dst {
			dst[i] = v
		}
	}
	t.Iota = func(dst []T, start, step T) {
		for i := range dst {
			dst[i] = start + T(T(i)*step)
		}
	}
	t.Transpose = func(dst, a []T, rows, cols int) { transpose(dst, a, rows, cols) }
	t.Sum, t.Prod = sum[T], prod[T]
	t.RowSum = rows(t, func(a []T) T { return t.Sum(a) })
	t.RowProd = rows(t, func(a []T) T { return t.Prod(a) })
	t.RowMax = rows(t, func(a []T) T { return t.Max(a) })
	t.RowMin = rows(t, func(a []T) T { return t.Min(a) })
	t.ColSum = columns(t, Add)
	t.ColMax = columns(t, Max)
	t.ColMin = columns(t, Min)
	t.ArgMax = func(dst []int32, a []T, n int) { argMax(t, dst, a, n) }
	t.ArgMin = func(dst []int32, a []T, n int) { argMin(t, dst, a, n) }
	t.FMA = func(dst, a, b, c []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		check(len(dst), len(c))
		for i := range dst {
			dst[i] = a[i]*b[i] + c[i]
		}
	}
	return t
}

// neutral sets the reductions that start from the least or the greatest value.
func (t *Table[T]) neutral(lowest, highest T) {
	t.Max = func(a []T) T {
		m := lowest
		for _, x := range a {
			m = max(m, x)
		}
		return m
	}
	t.Min = func(a []T) T {
		m := highest
		for _, x := range a {
			m = min(m, x)
		}
		return m
	}
}

// binary sets the three forms of an operation that is not hot in plain Go.
func (t *Table[T]) binary(op BinaryOp, f func(x, y T) T) {
	t.Binary[op] = func(dst, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i, x := range a {
			dst[i] = f(x, b[i])
		}
	}
	t.BinaryVS[op] = func(dst, a []T, s T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = f(x, s)
		}
	}
	t.BinarySV[op] = func(dst []T, s T, b []T) {
		check(len(dst), len(b))
		for i, x := range b {
			dst[i] = f(s, x)
		}
	}
}

// arithmetic sets the hot operations, each with its own loop.
func (t *Table[T]) arithmetic() {
	t.Binary[Add] = func(dst, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	}
	t.Binary[Sub] = func(dst, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i := range dst {
			dst[i] = a[i] - b[i]
		}
	}
	t.Binary[Mul] = func(dst, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	}
	t.BinaryVS[Add] = func(dst, a []T, s T) {
		check(len(dst), len(a))
		for i := range dst {
			dst[i] = a[i] + s
		}
	}
	t.BinaryVS[Sub] = func(dst, a []T, s T) {
		check(len(dst), len(a))
		for i := range dst {
			dst[i] = a[i] - s
		}
	}
	t.BinaryVS[Mul] = func(dst, a []T, s T) {
		check(len(dst), len(a))
		for i := range dst {
			dst[i] = a[i] * s
		}
	}
	t.BinarySV[Add] = func(dst []T, s T, b []T) { t.BinaryVS[Add](dst, b, s) }
	t.BinarySV[Mul] = func(dst []T, s T, b []T) { t.BinaryVS[Mul](dst, b, s) }
	t.BinarySV[Sub] = func(dst []T, s T, b []T) {
		check(len(dst), len(b))
		for i := range dst {
			dst[i] = s - b[i]
		}
	}
}

func selectVV[T any](dst []T, m []bool, a, b []T) {
	check(len(dst), len(m))
	check(len(dst), len(a))
	check(len(dst), len(b))
	for i, yes := range m {
		x := b[i]
		if yes {
			x = a[i]
		}
		dst[i] = x
	}
}

func selectVS[T any](dst []T, m []bool, a []T, b T) {
	check(len(dst), len(m))
	check(len(dst), len(a))
	for i, yes := range m {
		x := b
		if yes {
			x = a[i]
		}
		dst[i] = x
	}
}

func selectSV[T any](dst []T, m []bool, a T, b []T) {
	check(len(dst), len(m))
	check(len(dst), len(b))
	for i, yes := range m {
		x := b[i]
		if yes {
			x = a
		}
		dst[i] = x
	}
}

func selectSS[T any](dst []T, m []bool, a, b T) {
	check(len(dst), len(m))
	for i, yes := range m {
		x := b
		if yes {
			x = a
		}
		dst[i] = x
	}
}
