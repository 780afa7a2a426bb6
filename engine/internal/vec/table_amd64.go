package vec

import (
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

func newF32(l cpu.Level) *Table[float32] {
	t := newFloats(l, installF32AVX2, installF32AVX512)
	if l >= cpu.AVX2 {
		installPow(t, newF64(l))
	}
	return t
}

func newF64(l cpu.Level) *Table[float64] { return newFloats(l, installF64AVX2, installF64AVX512) }
func newI32(l cpu.Level) *Table[int32]   { return newIntegers(l, installI32AVX2, installI32AVX512) }
func newI64(l cpu.Level) *Table[int64]   { return newIntegers(l, installI64AVX2, installI64AVX512) }
func newU32(l cpu.Level) *Table[uint32]  { return newIntegers(l, installU32AVX2, installU32AVX512) }
func newU64(l cpu.Level) *Table[uint64]  { return newIntegers(l, installU64AVX2, installU64AVX512) }

func newIntegers[T Integer](l cpu.Level, avx2, avx512 func(t *Table[T])) *Table[T] {
	t := integers[T]()
	if l >= cpu.AVX2 {
		avx2(t)
	}
	if l >= cpu.AVX512 {
		avx512(t)
	}
	installTransposes(t, l)
	return t
}

func newFloats[T Float](l cpu.Level, avx2, avx512 func(t *Table[T])) *Table[T] {
	t := floats[T]()
	if l >= cpu.AVX2 {
		avx2(t)
	}
	sum := t.RowSum
	if l >= cpu.AVX512 {
		avx512(t)
	}
	installFloats(t, l, sum)
	return t
}

// installFloats sets what is made of other kernels. The limits were measured on Zen 4: AVX2's row sums, in sum, are
// quicker where a row nearly fills one to six AVX-512 registers, and so on.
func installFloats[T Float](t *Table[T], l cpu.Level, sum func(dst, a []T, n int)) {
	installTransposes(t, l)
	switch lanes := 64 / int(unsafe.Sizeof(T(0))); {
	case l >= cpu.AVX512:
		wide := t.RowSum
		t.RowSum = func(dst, a []T, n int) {
			if n > lanes/2 && n <= 64 {
				sum(dst, a, n)
			} else {
				wide(dst, a, n)
			}
		}
		installTall(t, func(n int) bool { return n > lanes/4 && n <= lanes*3/4 }, func(n int) bool { return n > lanes/4 })
	case l >= cpu.AVX2:
		installTall(t, func(n int) bool { return n%(lanes/2) != 0 }, func(n int) bool { return n > 1 })
	}
}
