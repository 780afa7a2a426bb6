package vec

import (
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

func init() {
	if cpu.Use == cpu.NEON {
		installConversionsNEON()
	}
}

// newBool leaves truth values to plain Go, which takes eight at a time.
func newBool() *Bool { return bools() }

// installTransposes sets the transposes of a level.
func installTransposes[T Number](t *Table[T], l cpu.Level) {
	switch size := unsafe.Sizeof(T(0)); {
	case size == 4 && l == cpu.NEON:
		t.Transpose = transposer[T](4, transpose32NEON, transposeEdge[uint32])
	case size == 8 && l == cpu.NEON:
		t.Transpose = transposer[T](2, transpose64NEON, transposeEdge[uint64])
	}
}

// transposeEdge does one block of which only rows by cols elements are there; strides are in bytes.
func transposeEdge[W uint32 | uint64](dst, a *W, rows, cols, dstStride, aStride int) {
	size := int(unsafe.Sizeof(W(0)))
	for i := range rows {
		for j := range cols {
			*(*W)(unsafe.Add(unsafe.Pointer(dst), j*dstStride+i*size)) = *(*W)(unsafe.Add(unsafe.Pointer(a), i*aStride+j*size))
		}
	}
}

// philoxWide writes the blocks it can do at once and returns how many: a multiple of 4.
func philoxWide(l cpu.Level, dst []uint32, keys *[20]uint64, low, high uint64) int {
	blocks := len(dst) / 4 &^ 3
	if l != cpu.NEON || blocks == 0 {
		return 0
	}
	philoxNEON(&dst[0], blocks, &keys[0], low, high)
	return blocks
}
