//go:build amd64 || arm64

package vec

import "unsafe"

// Kernels that mix bytes with wider lanes take a multiple of step elements; the rest is done in Go.

func compare[T Number, K any](step int, f func(dst *uint8, a, b *K, n int), rest func(dst []bool, a, b []T)) func(dst []bool, a, b []T) {
	return func(dst []bool, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		k := len(dst) &^ (step - 1)
		if k > 0 {
			f(bytesOf(dst), (*K)(unsafe.Pointer(&a[0])), (*K)(unsafe.Pointer(&b[0])), k)
		}
		if k < len(dst) {
			rest(dst[k:], a[k:], b[k:])
		}
	}
}

func compareVS[T Number, K any](step int, f func(dst *uint8, a *K, n int, s K), rest func(dst []bool, a []T, s T)) func(dst []bool, a []T, s T) {
	return func(dst []bool, a []T, s T) {
		check(len(dst), len(a))
		k := len(dst) &^ (step - 1)
		if k > 0 {
			f(bytesOf(dst), (*K)(unsafe.Pointer(&a[0])), k, *(*K)(unsafe.Pointer(&s)))
		}
		if k < len(dst) {
			rest(dst[k:], a[k:], s)
		}
	}
}

func test[T Number](step int, f func(dst *uint8, a *T, n int), rest func(dst []bool, a []T)) func(dst []bool, a []T) {
	return func(dst []bool, a []T) {
		check(len(dst), len(a))
		k := len(dst) &^ (step - 1)
		if k > 0 {
			f(bytesOf(dst), &a[0], k)
		}
		if k < len(dst) {
			rest(dst[k:], a[k:])
		}
	}
}

func selector[T, K any](step int, f func(dst *K, m *uint8, a, b *K, n int)) func(dst []T, m []bool, a, b []T) {
	return func(dst []T, m []bool, a, b []T) {
		check(len(dst), len(m))
		check(len(dst), len(a))
		check(len(dst), len(b))
		k := len(dst) &^ (step - 1)
		if k > 0 {
			f((*K)(unsafe.Pointer(&dst[0])), bytesOf(m), (*K)(unsafe.Pointer(&a[0])), (*K)(unsafe.Pointer(&b[0])), k)
		}
		if k < len(dst) {
			selectVV(dst[k:], m[k:], a[k:], b[k:])
		}
	}
}

func selectorVS[T, K any](step int, f func(dst *K, m *uint8, a *K, n int, s K)) func(dst []T, m []bool, a []T, b T) {
	return func(dst []T, m []bool, a []T, b T) {
		check(len(dst), len(m))
		check(len(dst), len(a))
		k := len(dst) &^ (step - 1)
		if k > 0 {
			f((*K)(unsafe.Pointer(&dst[0])), bytesOf(m), (*K)(unsafe.Pointer(&a[0])), k, *(*K)(unsafe.Pointer(&b)))
		}
		if k < len(dst) {
			selectVS(dst[k:], m[k:], a[k:], b)
		}
	}
}

func selectorSV[T, K any](step int, f func(dst *K, m *uint8, a *K, n int, s K)) func(dst []T, m []bool, a T, b []T) {
	return func(dst []T, m []bool, a T, b []T) {
		check(len(dst), len(m))
		check(len(dst), len(b))
		k := len(dst) &^ (step - 1)
		if k > 0 {
			f((*K)(unsafe.Pointer(&dst[0])), bytesOf(m), (*K)(unsafe.Pointer(&b[0])), k, *(*K)(unsafe.Pointer(&a)))
		}
		if k < len(dst) {
			selectSV(dst[k:], m[k:], a, b[k:])
		}
	}
}

func selectorSS[T, K any](step int, f func(dst *K, m *uint8, n int, s, t K)) func(dst []T, m []bool, a, b T) {
	return func(dst []T, m []bool, a, b T) {
		check(len(dst), len(m))
		k := len(dst) &^ (step - 1)
		if k > 0 {
			f((*K)(unsafe.Pointer(&dst[0])), bytesOf(m), k, *(*K)(unsafe.Pointer(&a)), *(*K)(unsafe.Pointer(&b)))
		}
		if k < len(dst) {
			selectSS(dst[k:], m[k:], a, b)
		}
	}
}
