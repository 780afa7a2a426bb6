package engine

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// kernel applies an elementwise operation to n elements of up to three operands. The result may be at the same address
// as an operand of the same size.
type kernel func(to, a, b, c ptr, n int)

type (
	signed   interface{ int8 | int16 | int32 | int64 }
	unsigned interface {
		uint8 | uint16 | uint32 | uint64
	}
	integer interface{ signed | unsigned }
	float   interface{ float32 | float64 }
	number  interface{ integer | float }
)

type kernelKey struct {
	op      compute.OpType
	in, out dtypes.DType
}

// kernels holds the elementwise operations; plain Go first, replaced by vector code where there is some.
var kernels = map[kernelKey]kernel{}

// kernelOf returns the kernel of an operation, or nil. The type in is that of the first operand, of the second one for
// Where.
func kernelOf(op compute.OpType, in, out dtypes.DType) kernel { return kernels[kernelKey{op, in, out}] }

func map1[T, U any](f func(T) U) kernel {
	return func(to, a, _, _ ptr, n int) {
		x, y := elems[T](a, n), elems[U](to, n)
		for i, v := range x {
			y[i] = f(v)
		}
	}
}

func map2[T, U any](f func(T, T) U) kernel {
	return func(to, a, b, _ ptr, n int) {
		x, y, z := elems[T](a, n), elems[T](b, n), elems[U](to, n)
		for i := range z {
			z[i] = f(x[i], y[i])
		}
	}
}

func where[T any](to, c, a, b ptr, n int) {
	cond, x, y, z := elems[bool](c, n), elems[T](a, n), elems[T](b, n), elems[T](to, n)
	for i, yes := range cond {
		if yes {
			z[i] = x[i]
		} else {
			z[i] = y[i]
		}
	}
}

// copyN copies n elements of size bytes.
func copyN(size int) kernel {
	return func(to, a, _, _ ptr, n int) {
		if to != a {
			copy(bytesAt(to, n*size), bytesAt(a, n*size))
		}
	}
}

func addNumber[T number](t dtypes.DType) {
	set := func(op compute.OpType, k kernel) { kernels[kernelKey{op, t, t}] = k }
	test := func(op compute.OpType, k kernel) { kernels[kernelKey{op, t, boolType}] = k }
	set(compute.OpTypeAdd, map2(func(a, b T) T { return a + b }))
	set(compute.OpTypeSub, map2(func(a, b T) T { return a - b }))
	set(compute.OpTypeMul, map2(func(a, b T) T { return a * b }))
	set(compute.OpTypeDiv, map2(func(a, b T) T { return a / b }))
	set(compute.OpTypeMax, map2(func(a, b T) T { return max(a, b) }))
	set(compute.OpTypeMin, map2(func(a, b T) T { return min(a, b) }))
	set(compute.OpTypeAbs, map1(func(a T) T {
		if a <= 0 {
			return 0 - a
		}
		return a
	}))
	set(compute.OpTypeNeg, map1(func(a T) T { return -a }))
	set(compute.OpTypeSign, map1(func(a T) T {
		switch {
		case a > 0:
			return 1
		case a < 0:
			return a - a - 1
		}
		return a
	}))
	set(compute.OpTypeWhere, where[T])
	test(compute.OpTypeEqual, map2(func(a, b T) bool { return a == b }))
	test(compute.OpTypeNotEqual, map2(func(a, b T) bool { return a != b }))
	test(compute.OpTypeGreaterThan, map2(func(a, b T) bool { return a > b }))
	test(compute.OpTypeGreaterOrEqual, map2(func(a, b T) bool { return a >= b }))
	test(compute.OpTypeLessThan, map2(func(a, b T) bool { return a < b }))
	test(compute.OpTypeLessOrEqual, map2(func(a, b T) bool { return a <= b }))

	test(compute.OpTypeConvertDType, map1(func(a T) bool { return a != 0 }))
	kernels[kernelKey{compute.OpTypeConvertDType, boolType, t}] = map1(func(a bool) T {
		if a {
			return 1
		}
		return 0
	})
	addConvert[T, int8](t, dtypes.Int8)
	addConvert[T, int16](t, dtypes.Int16)
	addConvert[T, int32](t, dtypes.Int32)
	addConvert[T, int64](t, dtypes.Int64)
	addConvert[T, uint8](t, dtypes.Uint8)
	addConvert[T, uint16](t, dtypes.Uint16)
	addConvert[T, uint32](t, dtypes.Uint32)
	addConvert[T, uint64](t, dtypes.Uint64)
	addConvert[T, float32](t, dtypes.Float32)
	addConvert[T, float64](t, dtypes.Float64)
}

func addConvert[T, U number](t, u dtypes.DType) {
	kernels[kernelKey{compute.OpTypeConvertDType, t, u}] = map1(func(a T) U { return U(a) })
}

// intPow is a^b by squaring, wrapping around; 1 for a negative b.
func intPow[T integer](a, b T) T {
	p := T(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			p *= a
		}
		a *= a
	}
	return p
}

func addInteger[T integer](t dtypes.DType) {
	set := func(op compute.OpType, k kernel) { kernels[kernelKey{op, t, t}] = k }
	width := int(unsafe.Sizeof(T(0))) * 8
	mask := ^uint64(0) >> (64 - width)
	set(compute.OpTypeRem, map2(func(a, b T) T { return a % b }))
	set(compute.OpTypePow, map2(intPow[T]))
	set(compute.OpTypeBitwiseAnd, map2(func(a, b T) T { return a & b }))
	set(compute.OpTypeBitwiseOr, map2(func(a, b T) T { return a | b }))
	set(compute.OpTypeBitwiseXor, map2(func(a, b T) T { return a ^ b }))
	set(compute.OpTypeBitwiseNot, map1(func(a T) T { return ^a }))
	set(compute.OpTypeShiftLeft, map2(func(a, b T) T { return a << uint(b) }))
	set(compute.OpTypeShiftRightArithmetic, map2(func(a, b T) T { return a >> uint(b) }))
	set(compute.OpTypeShiftRightLogical, map2(func(a, b T) T { return T(uint64(a) & mask >> uint(b)) }))
	set(compute.OpTypeBitCount, map1(func(a T) T { return T(bits.OnesCount64(uint64(a) & mask)) }))
	set(compute.OpTypeClz, map1(func(a T) T { return T(bits.LeadingZeros64(uint64(a)&mask) - 64 + width) }))
}

func addFloat[T float](t dtypes.DType) {
	set := func(op compute.OpType, k kernel) { kernels[kernelKey{op, t, t}] = k }
	of := func(op compute.OpType, f func(float64) float64) {
		set(op, map1(func(a T) T { return T(f(float64(a))) }))
	}
	of(compute.OpTypeExp, math.Exp)
	of(compute.OpTypeExpm1, math.Expm1)
	of(compute.OpTypeLog, math.Log)
	of(compute.OpTypeLog1p, math.Log1p)
	of(compute.OpTypeCeil, math.Ceil)
	of(compute.OpTypeFloor, math.Floor)
	of(compute.OpTypeRound, math.RoundToEven)
	of(compute.OpTypeSqrt, math.Sqrt)
	of(compute.OpTypeRsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) })
	of(compute.OpTypeCos, math.Cos)
	of(compute.OpTypeSin, math.Sin)
	of(compute.OpTypeTanh, math.Tanh)
	of(compute.OpTypeErf, math.Erf)
	of(compute.OpTypeLogistic, func(x float64) float64 {
		if x >= 0 {
			return 1 / (1 + math.Exp(-x))
		}
		e := math.Exp(x)
		return e / (1 + e)
	})
	set(compute.OpTypeRem, map2(func(a, b T) T { return T(math.Mod(float64(a), float64(b))) }))
	set(compute.OpTypePow, map2(func(a, b T) T { return T(math.Pow(float64(a), float64(b))) }))
	set(compute.OpTypeAtan2, map2(func(a, b T) T { return T(math.Atan2(float64(a), float64(b))) }))
	kernels[kernelKey{compute.OpTypeIsFinite, t, boolType}] = map1(func(a T) bool { return a-a == 0 })
}

func init() {
	addNumber[int8](dtypes.Int8)
	addNumber[int16](dtypes.Int16)
	addNumber[int32](dtypes.Int32)
	addNumber[int64](dtypes.Int64)
	addNumber[uint8](dtypes.Uint8)
	addNumber[uint16](dtypes.Uint16)
	addNumber[uint32](dtypes.Uint32)
	addNumber[uint64](dtypes.Uint64)
	addNumber[float32](dtypes.Float32)
	addNumber[float64](dtypes.Float64)
	addInteger[int8](dtypes.Int8)
	addInteger[int16](dtypes.Int16)
	addInteger[int32](dtypes.Int32)
	addInteger[int64](dtypes.Int64)
	addInteger[uint8](dtypes.Uint8)
	addInteger[uint16](dtypes.Uint16)
	addInteger[uint32](dtypes.Uint32)
	addInteger[uint64](dtypes.Uint64)
	addFloat[float32](dtypes.Float32)
	addFloat[float64](dtypes.Float64)

	logic := func(op compute.OpType, k kernel) { kernels[kernelKey{op, boolType, boolType}] = k }
	logic(compute.OpTypeLogicalAnd, map2(func(a, b bool) bool { return a && b }))
	logic(compute.OpTypeLogicalOr, map2(func(a, b bool) bool { return a || b }))
	logic(compute.OpTypeLogicalXor, map2(func(a, b bool) bool { return a != b }))
	logic(compute.OpTypeLogicalNot, map1(func(a bool) bool { return !a }))
	logic(compute.OpTypeEqual, map2(func(a, b bool) bool { return a == b }))
	logic(compute.OpTypeNotEqual, map2(func(a, b bool) bool { return a != b }))
	logic(compute.OpTypeWhere, where[bool])
}
