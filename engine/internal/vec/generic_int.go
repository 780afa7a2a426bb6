package vec

import "unsafe"

// integers is the plain Go table of an integer type. Division by zero panics, as in Go.
func integers[T Integer]() *Table[T] {
	t := numbers[T]()
	t.Unary[Abs] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = max(x, -x)
			if isUnsigned[T]() {
				dst[i] = x
			}
		}
	}
	t.Unary[Sign] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			switch {
			case x > 0:
				x = 1
			case x < 0:
				x = ^T(0)
			}
			dst[i] = x
		}
	}
	t.Unary[Not] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = ^x
		}
	}
	t.binary(Rem, func(x, y T) T { return x % y })
	t.binary(Pow, powInt[T])
	t.binary(And, func(x, y T) T { return x & y })
	t.binary(Or, func(x, y T) T { return x | y })
	t.binary(Xor, func(x, y T) T { return x ^ y })
	t.binary(ShiftLeft, func(x, y T) T { return x << uint(y) })
	t.binary(ShiftRight, func(x, y T) T { return x >> uint(y) })
	width := 8 * unsafe.Sizeof(T(0))
	t.binary(ShiftRightLogical, func(x, y T) T {
		return T(uint64(x) & (1<<width - 1) >> uint(y))
	})
	lowest, highest := limits[T]()
	t.neutral(lowest, highest)
	return t
}

func isUnsigned[T Integer]() bool { return ^T(0) > 0 }

// limits is the least and the greatest value of the type.
func limits[T Integer]() (lowest, highest T) {
	if isUnsigned[T]() {
		return 0, ^T(0)
	}
	lowest = T(1) << (8*unsafe.Sizeof(T(0)) - 1)
	return lowest, ^lowest
}

// powInt is 1 for exponents under zero.
func powInt[T Integer](base, exp T) T {
	r := T(1)
	for ; exp > 0; exp >>= 1 {
		if exp&1 == 1 {
			r *= base
		}
		base *= base
	}
	return r
}
