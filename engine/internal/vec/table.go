package vec

import (
	"fmt"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// Float is a floating element type.
type Float interface{ float32 | float64 }

// Integer is an integer element type.
type Integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// Number is an element type of the tables.
type Number interface{ Float | Integer }

// Table is the kernels of one element type. In [rows, n] kernels the number of rows is len(a)/n.
type Table[T Number] struct {
	Unary    [NumUnary]func(dst, a []T)
	Binary   [NumBinary]func(dst, a, b []T)
	BinaryVS [NumBinary]func(dst, a []T, s T) // vector op scalar
	BinarySV [NumBinary]func(dst []T, s T, b []T)

	Compare   [NumCompare]func(dst []bool, a, b []T)
	CompareVS [NumCompare]func(dst []bool, a []T, s T) // scalar op vector: use Swap
	IsFinite  func(dst []bool, a []T)
	IsNaN     func(dst []bool, a []T)

	Select   func(dst []T, m []bool, a, b []T) // m ? a : b
	SelectVS func(dst []T, m []bool, a []T, b T)
	SelectSV func(dst []T, m []bool, a T, b []T)
	SelectSS func(dst []T, m []bool, a, b T)

	FMA    func(dst, a, b, c []T)            // a*b + c, rounded once for floats
	AXPY   func(dst, a []T, s T, b []T)      // a*s + b
	AXPBY  func(dst, a []T, s T, b []T, t T) // a*s + b*t
	Affine func(dst, a []T, s, t T)          // a*s + t

	Fill      func(dst []T, v T)
	Iota      func(dst []T, start, step T)
	Transpose func(dst, a []T, rows, cols int) // a is [rows, cols], dst is [cols, rows]; no overlap

	Sum, Prod, Max, Min    func(a []T) T                   // of no elements: the neutral element
	RowSum, RowMax, RowMin func(dst, a []T, n int)         // [rows, n] to [rows]
	RowProd                func(dst, a []T, n int)         //
	ColSum, ColMax, ColMin func(dst, a []T)                // [rows, n] to [n], n = len(dst)
	ArgMax, ArgMin         func(dst []int32, a []T, n int) // [rows, n] to [rows]: first best; the last NaN wins
	LogSumExp              func(dst, a []T, n int)         // [rows, n] to [rows]
	Softmax, LogSoftmax    func(dst, a []T, n int)         // of each row of [rows, n]; dst may be a
}

// Kernels of each element type, at the level the machine and the environment allow.
var (
	F32 = newF32(cpu.Use)
	F64 = newF64(cpu.Use)
	I32 = newI32(cpu.Use)
	I64 = newI64(cpu.Use)
	U32 = newU32(cpu.Use)
	U64 = newU64(cpu.Use)
	I8  = integers[int8]()
	I16 = integers[int16]()
	U8  = integers[uint8]()
	U16 = integers[uint16]()
)

func badLength(want, got int) {
	panic(fmt.Sprintf("vec: operand has %d elements, want %d", got, want))
}

func badRows(dst, a, n int) {
	panic(fmt.Sprintf("vec: rows of %d elements do not fit operands of %d and %d", n, dst, a))
}

// check panics unless the operand has n elements.
func check(n, got int) {
	if n != got {
		badLength(n, got)
	}
}

// checkRows panics unless a is [rows, n] with rows elements in dst.
func checkRows(rows, a, n int) {
	if n <= 0 || rows*n != a {
		badRows(rows, a, n)
	}
}
