package vec

import (
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

func newF32(l cpu.Level) *Table[float32] {
	t := newFloats(l, installF32NEON)
	if l == cpu.NEON {
		installPow(t, newF64(l))
	}
	return t
}

func newF64(l cpu.Level) *Table[float64] { return newFloats(l, installF64NEON) }
func newI32(l cpu.Level) *Table[int32]   { return newIntegers(l, installI32NEON) }
func newI64(l cpu.Level) *Table[int64]   { return newIntegers(l, installI64NEON) }
func newU32(l cpu.Level) *Table[uint32]  { return newIntegers(l, installU32NEON) }
func newU64(l cpu.Level) *Table[uint64]  { return newIntegers(l, installU64NEON) }

func newIntegers[T Integer](l cpu.Level, neon func(t *Table[T])) *Table[T] {
	t := integers[T]()
	if l == cpu.NEON {
		neon(t)
	}
	installTransposes(t, l)
	return t
}

func newFloats[T Float](l cpu.Level, neon func(t *Table[T])) *Table[T] {
	t := floats[T]()
	if l == cpu.NEON {
		neon(t)
		installTransposes(t, l)
		// Rows that are no whole vectors end with steps of single elements, which cost as much as a vector each.
		lanes := 16 / int(unsafe.Sizeof(T(0)))
		installTall(t, func(n int) bool { return n%lanes != 0 }, func(n int) bool { return n > 1 })
	}
	return t
}
