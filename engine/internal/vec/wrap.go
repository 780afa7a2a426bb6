//go:build amd64 || arm64

package vec

import "unsafe"

// The functions here turn a kernel on pointers into one on slices that checks lengths. A kernel that only moves bits,
// or does the same to signed and unsigned integers, serves several types: K is its own, T one of the same size. Pointers
// are converted here and not in a function, which would not be inlined.

func unary[T, K any](f func(dst, a *K, n int)) func(dst, a []T) {
	return func(dst, a []T) {
		n := len(dst)
		check(n, len(a))
		if n > 0 {
			f((*K)(unsafe.Pointer(&dst[0])), (*K)(unsafe.Pointer(&a[0])), n)
		}
	}
}

func binary[T, K any](f func(dst, a, b *K, n int)) func(dst, a, b []T) {
	return func(dst, a, b []T) {
		n := len(dst)
		check(n, len(a))
		check(n, len(b))
		if n > 0 {
			f((*K)(unsafe.Pointer(&dst[0])), (*K)(unsafe.Pointer(&a[0])), (*K)(unsafe.Pointer(&b[0])), n)
		}
	}
}

func binaryVS[T, K any](f func(dst, a *K, n int, s K)) func(dst, a []T, s T) {
	return func(dst, a []T, s T) {
		n := len(dst)
		check(n, len(a))
		if n > 0 {
			f((*K)(unsafe.Pointer(&dst[0])), (*K)(unsafe.Pointer(&a[0])), n, *(*K)(unsafe.Pointer(&s)))
		}
	}
}

func binarySV[T, K any](f func(dst, a *K, n int, s K)) func(dst []T, s T, b []T) {
	return func(dst []T, s T, b []T) {
		n := len(dst)
		check(n, len(b))
		if n > 0 {
			f((*K)(unsafe.Pointer(&dst[0])), (*K)(unsafe.Pointer(&b[0])), n, *(*K)(unsafe.Pointer(&s)))
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
			f((*K)(unsafe.Pointer(&dst[0])), len(dst), *(*K)(unsafe.Pointer(&v)))
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
