package engine

import (
	"unsafe"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"

	"github.com/gfnem/gfnem/internal/memory"
)

// ptr is the start of a dense block of elements. Blocks are made by alloc, hold no Go pointers, and start on a cache
// line.
type ptr = unsafe.Pointer

const cacheLine = 64

// alloc returns a zeroed block of n bytes that starts on a cache line. It is never nil. If there is no room for a large
// one, it panics with an error.
func alloc(n int) ptr {
	memory.Must("", n)
	words := make([]uint64, (n+cacheLine-1)/8+cacheLine/8)
	p := ptr(unsafe.SliceData(words))
	return unsafe.Add(p, -uintptr(p)&(cacheLine-1))
}

// elems sees n elements at p.
func elems[T any](p ptr, n int) []T { return unsafe.Slice((*T)(p), n) }

// bytesAt sees n bytes at p.
func bytesAt(p ptr, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// add moves p by n elements of the given size.
func add(p ptr, n, size int) ptr { return unsafe.Add(p, n*size) }

// sizeOf is the size of an element in bytes.
func sizeOf(t dtypes.DType) int { return int(t.Size()) }

// roundUp is the least multiple of to that is not below n.
func roundUp(n, to int) int { return (n + to - 1) / to * to }

// product of dimensions; 1 for a scalar.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// boxed returns n elements at p as a typed slice, the way GoMLX passes flat data.
func boxed(t dtypes.DType, p ptr, n int) any {
	switch t {
	case dtypes.Bool:
		return elems[bool](p, n)
	case dtypes.Int8:
		return elems[int8](p, n)
	case dtypes.Int16:
		return elems[int16](p, n)
	case dtypes.Int32:
		return elems[int32](p, n)
	case dtypes.Int64:
		return elems[int64](p, n)
	case dtypes.Uint8:
		return elems[uint8](p, n)
	case dtypes.Uint16:
		return elems[uint16](p, n)
	case dtypes.Uint32:
		return elems[uint32](p, n)
	case dtypes.Uint64:
		return elems[uint64](p, n)
	case dtypes.Float16:
		return elems[float16.Float16](p, n)
	case dtypes.BFloat16:
		return elems[bfloat16.BFloat16](p, n)
	case dtypes.Float32:
		return elems[float32](p, n)
	case dtypes.Float64:
		return elems[float64](p, n)
	}
	return nil
}

// unboxed is the inverse of boxed: where the elements of a flat slice are, how many, and their type. The type is
// invalid if the engine does not know it.
func unboxed(flat any) (p ptr, n int, t dtypes.DType) {
	switch s := flat.(type) {
	case []bool:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Bool
	case []int8:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Int8
	case []int16:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Int16
	case []int32:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Int32
	case []int64:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Int64
	case []uint8:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Uint8
	case []uint16:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Uint16
	case []uint32:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Uint32
	case []uint64:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Uint64
	case []float16.Float16:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Float16
	case []bfloat16.BFloat16:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.BFloat16
	case []float32:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Float32
	case []float64:
		return ptr(unsafe.SliceData(s)), len(s), dtypes.Float64
	}
	return nil, 0, dtypes.InvalidDType
}
