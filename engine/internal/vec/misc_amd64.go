package vec

import (
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

func init() {
	if cpu.Use >= cpu.AVX512 {
		installConversionsAVX512()
	}
}

func newBool() *Bool {
	if cpu.Use < cpu.AVX512 {
		return bools()
	}
	two := func(f func(dst, a, b *uint8, n int)) func(dst, a, b []bool) {
		return func(dst, a, b []bool) {
			check(len(dst), len(a))
			check(len(dst), len(b))
			if len(dst) > 0 {
				f(bytesOf(dst), bytesOf(a), bytesOf(b), len(dst))
			}
		}
	}
	return &Bool{
		And: two(andBoolAVX512),
		Or:  two(orBoolAVX512),
		Xor: two(xorBoolAVX512),
		Not: func(dst, a []bool) {
			check(len(dst), len(a))
			if len(dst) > 0 {
				notBoolAVX512(bytesOf(dst), bytesOf(a), len(dst))
			}
		},
		Select: func(dst, m, a, b []bool) {
			check(len(dst), len(m))
			check(len(dst), len(a))
			check(len(dst), len(b))
			if len(dst) > 0 {
				selectBoolAVX512(bytesOf(dst), bytesOf(m), bytesOf(a), bytesOf(b), len(dst))
			}
		},
	}
}

// installTransposes sets the transposes of a level.
func installTransposes[T Number](t *Table[T], l cpu.Level) {
	switch size := unsafe.Sizeof(T(0)); {
	case size == 4 && l >= cpu.AVX512:
		t.Transpose = transposer[T](16, transpose32AVX512, transposeEdge32AVX512)
	case size == 8 && l >= cpu.AVX512:
		t.Transpose = transposer[T](8, transpose64AVX512, transposeEdge64AVX512)
	case size == 4 && l >= cpu.AVX2:
		t.Transpose = transposer[T](8, transpose32AVX2, transposeEdge32AVX2)
	case size == 8 && l >= cpu.AVX2:
		t.Transpose = transposer[T](4, transpose64AVX2, transposeEdge64AVX2)
	}
}

// philoxWide writes the blocks it can do at once and returns how many: a multiple of 8, or of 4.
func philoxWide(l cpu.Level, dst []uint32, keys *[20]uint64, low, high uint64) int {
	switch blocks := len(dst) / 4; {
	case l >= cpu.AVX512 && blocks >= 8:
		blocks &^= 7
		philoxAVX512(&dst[0], blocks, &keys[0], low, high)
		return blocks
	case l >= cpu.AVX2 && blocks >= 4:
		blocks &^= 3
		philoxAVX2(&dst[0], blocks, &keys[0], low, high)
		return blocks
	}
	return 0
}
