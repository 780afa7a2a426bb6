package vec

import "unsafe"

// The functions here turn a kernel on pointers into one on slices that checks lengths. A kernel that only moves bits,
// or does the same to signed and unsigned integers, serves several types: K is its own, T one of the same size.

// at is where the elements of a slice are.
func at[K, T any](s []T) *K { return (*K)(unsafe.Pointer(unsafe.SliceData(s))) }

// as is the same bits.
func as[K, T any](x T) K { return *(*K)(unsafe.Pointer(&x)) }

func unary[T, K any](f func(dst, a *K, n int)) func(dst, a []T) {
	return func(dst, a []T) {
		n := len(dst)
		check(n, len(a))
		if n > 0 {
			f(at[K](dst), at[K](a), n)
		}
	}
}

func binary[T, K any](f func(dst, a, b *K, n int)) func(dst, a, b []T) {
	return func(dst, a, b []T) {
		n := len(dst)
		check(n, len(a))
		check(n, len(b))
		if n > 0 {
			f(at[K](dst), at[K](a), at[K](b), n)
		}
	}
}

func binaryVS[T, K any](f func(dst, a *K, n int, s K)) func(dst, a []T, s T) {
	return func(dst, a []T, s T) {
		n := len(dst)
		check(n, len(a))
		if n > 0 {
			f(at[K](dst), at[K](a), n, as[K](s))
		}
	}
}

func binarySV[T, K any](f func(dst, a *K, n int, s K)) func(dst []T, s T, b []T) {
	return func(dst []T, s T, b []T) {
		n := len(dst)
		check(n, len(b))
		if n > 0 {
			f(at[K](dst), at[K](b), n, as[K](s))
		}
	}
}

func ternary[T any](f func(dst, a, b, c *T, n int)) func(dst, a, b, c []T) {
	return func(dst, a, b, c []T) {
		n := len(dst)
		check(n, len(a))
		check(n, len(b))
		check(n, len(c))
		if n > 0 {
			f(&dst[0], &a[0], &b[0], &c[0], n)
		}
	}
}

func axpy[T any](f func(dst, a, b *T, n int, s T)) func(dst, a []T, s T, b []T) {
	return func(dst, a []T, s T, b []T) {
		n := len(dst)
		check(n, len(a))
		check(n, len(b))
		if n > 0 {
			f(&dst[0], &a[0], &b[0], n, s)
		}
	}
}

func axpby[T any](f func(dst, a, b *T, n int, s, t T)) func(dst, a []T, s T, b []T, t T) {
	return func(dst, a []T, s T, b []T, t T) {
		n := len(dst)
		check(n, len(a))
		check(n, len(b))
		if n > 0 {
			f(&dst[0], &a[0], &b[0], n, s, t)
		}
	}
}

func affine[T any](f func(dst, a *T, n int, s, t T)) func(dst, a []T, s, t T) {
	return func(dst, a []T, s, t T) {
		n := len(dst)
		check(n, len(a))
		if n > 0 {
			f(&dst[0], &a[0], n, s, t)
		}
	}
}

func filler[T, K any](f func(dst *K, n int, s K)) func(dst []T, v T) {
	return func(dst []T, v T) {
		if len(dst) > 0 {
			f(at[K](dst), len(dst), as[K](v))
		}
	}
}

// bounded wraps a kernel of sine or cosine that leaves x where |x| is too large for its reduction.
func bounded[T Float](t *Table[T], g func(float64) float64, f func(dst, a *T, n int)) func(dst, a []T) {
	k := unary[T](f)
	return func(dst, a []T) {
		k(dst, a)
		if len(dst) == 0 || t.Max(dst) <= 1 && t.Min(dst) >= -1 {
			return
		}
		for i, x := range dst {
			if x > 1 || x < -1 {
				dst[i] = T(g(float64(x)))
			}
		}
	}
}
