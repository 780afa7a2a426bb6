package engine

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// reducer combines elements of one type.
type reducer struct {
	// rows reduces each of m rows of n contiguous elements to one.
	rows func(to, from ptr, m, n int)
	// cols combines m rows of n elements into one.
	cols func(to, from ptr, m, n int)
	// start sets n elements to the neutral one.
	start func(acc ptr, n int)
	// join combines n elements into acc, one by one.
	join func(acc, from ptr, n int)
}

type reduceKey struct {
	op compute.OpType
	t  dtypes.DType
}

var reducers = map[reduceKey]*reducer{}

// reducerOf returns how an operation reduces a type, or nil.
func reducerOf(op compute.OpType, t dtypes.DType) *reducer { return reducers[reduceKey{op, t}] }

func reduceBy[T any](zero T, f func(a, b T) T) *reducer {
	join := func(acc, from ptr, n int) {
		x, y := elems[T](acc, n), elems[T](from, n)
		for i, v := range y {
			x[i] = f(x[i], v)
		}
	}
	return &reducer{
		rows: func(to, from ptr, m, n int) {
			x, y := elems[T](from, m*n), elems[T](to, m)
			for i := range y {
				s := zero
				for _, v := range x[i*n : i*n+n] {
					s = f(s, v)
				}
				y[i] = s
			}
		},
		cols: func(to, from ptr, m, n int) {
			x, y := elems[T](from, m*n), elems[T](to, n)
			copy(y, x[:n])
			for i := 1; i < m; i++ {
				for j, v := range x[i*n : i*n+n] {
					y[j] = f(y[j], v)
				}
			}
		},
		start: func(acc ptr, n int) {
			for i := range elems[T](acc, n) {
				elems[T](acc, n)[i] = zero
			}
		},
		join: join,
	}
}

func addReducers[T number](t dtypes.DType, least, greatest T) {
	sum := reduceBy(0, func(a, b T) T { return a + b })
	sum.rows = sumRows[T]
	reducers[reduceKey{compute.OpTypeReduceSum, t}] = sum
	reducers[reduceKey{compute.OpTypeReduceProduct, t}] = reduceBy(1, func(a, b T) T { return a * b })
	reducers[reduceKey{compute.OpTypeReduceMax, t}] = reduceBy(least, func(a, b T) T { return max(a, b) })
	reducers[reduceKey{compute.OpTypeReduceMin, t}] = reduceBy(greatest, func(a, b T) T { return min(a, b) })
}

// sumRows is meant for short rows.
func sumRows[T number](to, from ptr, m, n int) {
	x, y := elems[T](from, m*n), elems[T](to, m)
	switch n {
	case 2:
		for i := range y {
			y[i] = x[2*i] + x[2*i+1]
		}
	case 4:
		for i := range y {
			r := (*[4]T)(x[4*i:])
			y[i] = r[0] + r[1] + r[2] + r[3]
		}
	default:
		for i := range y {
			var s T
			for _, v := range x[i*n : i*n+n] {
				s += v
			}
			y[i] = s
		}
	}
}

func addBitReducers[T integer](t dtypes.DType) {
	reducers[reduceKey{compute.OpTypeReduceBitwiseAnd, t}] = reduceBy(^T(0), func(a, b T) T { return a & b })
	reducers[reduceKey{compute.OpTypeReduceBitwiseOr, t}] = reduceBy(0, func(a, b T) T { return a | b })
	reducers[reduceKey{compute.OpTypeReduceBitwiseXor, t}] = reduceBy(0, func(a, b T) T { return a ^ b })
}

// arg writes, for each of m rows, where the least or greatest of n elements is.
type arg func(to, from ptr, m, n int, min bool)

type argKey struct{ in, out dtypes.DType }

var args = map[argKey]arg{}

// argOf returns the kernel of ArgMinMax, or nil.
func argOf(in, out dtypes.DType) arg { return args[argKey{in, out}] }

func argRows[T number, U integer](to, from ptr, m, n int, least bool) {
	x, y := elems[T](from, m*n), elems[U](to, m)
	for i := range y {
		row := x[i*n : i*n+n]
		best, at := row[0], 0
		if least {
			for j, v := range row {
				if v < best || v != v {
					best, at = v, j
				}
			}
		} else {
			for j, v := range row {
				if v > best || v != v {
					best, at = v, j
				}
			}
		}
		y[i] = U(at)
	}
}

// argFloats is argRows for short rows of float32: without branches that depend on the data, which no one could foresee.
func argFloats(to, from ptr, m, n int, least bool) {
	x, y := elems[uint32](from, m*n), elems[int32](to, m)
	var flip int32
	if least {
		flip = -1
	}
	for i := range y {
		best, at, odd := int32(math.MinInt32), 0, false
		for j, b := range x[i*n : i*n+n] {
			if b == 1<<31 { // -0 equals 0
				b = 0
			}
			odd = odd || b&0x7fffffff > 0x7f800000
			k := int32(b)
			k ^= int32(uint32(k>>31)>>1) ^ flip // integers in the order of the floats
			if k > best {
				best, at = k, j
			}
		}
		if odd {
			argRows[float32, int32](ptr(&y[i]), ptr(&x[i*n]), 1, n, least)
			continue
		}
		y[i] = int32(at)
	}
}

func addArgs[T number](t dtypes.DType) {
	args[argKey{t, dtypes.Int8}] = argRows[T, int8]
	args[argKey{t, dtypes.Int16}] = argRows[T, int16]
	args[argKey{t, dtypes.Int32}] = argRows[T, int32]
	args[argKey{t, dtypes.Int64}] = argRows[T, int64]
	args[argKey{t, dtypes.Uint8}] = argRows[T, uint8]
	args[argKey{t, dtypes.Uint16}] = argRows[T, uint16]
	args[argKey{t, dtypes.Uint32}] = argRows[T, uint32]
	args[argKey{t, dtypes.Uint64}] = argRows[T, uint64]
}

func init() {
	addReducers[int8](dtypes.Int8, math.MinInt8, math.MaxInt8)
	addReducers[int16](dtypes.Int16, math.MinInt16, math.MaxInt16)
	addReducers[int32](dtypes.Int32, math.MinInt32, math.MaxInt32)
	addReducers[int64](dtypes.Int64, math.MinInt64, math.MaxInt64)
	addReducers[uint8](dtypes.Uint8, 0, math.MaxUint8)
	addReducers[uint16](dtypes.Uint16, 0, math.MaxUint16)
	addReducers[uint32](dtypes.Uint32, 0, math.MaxUint32)
	addReducers[uint64](dtypes.Uint64, 0, math.MaxUint64)
	addReducers(dtypes.Float32, float32(math.Inf(-1)), float32(math.Inf(1)))
	addReducers(dtypes.Float64, math.Inf(-1), math.Inf(1))
	addBitReducers[int8](dtypes.Int8)
	addBitReducers[int16](dtypes.Int16)
	addBitReducers[int32](dtypes.Int32)
	addBitReducers[int64](dtypes.Int64)
	addBitReducers[uint8](dtypes.Uint8)
	addBitReducers[uint16](dtypes.Uint16)
	addBitReducers[uint32](dtypes.Uint32)
	addBitReducers[uint64](dtypes.Uint64)
	addArgs[int8](dtypes.Int8)
	addArgs[int16](dtypes.Int16)
	addArgs[int32](dtypes.Int32)
	addArgs[int64](dtypes.Int64)
	addArgs[uint8](dtypes.Uint8)
	addArgs[uint16](dtypes.Uint16)
	addArgs[uint32](dtypes.Uint32)
	addArgs[uint64](dtypes.Uint64)
	addArgs[float32](dtypes.Float32)
	addArgs[float64](dtypes.Float64)
	args[argKey{dtypes.Float32, dtypes.Int32}] = argFloats
	reducers[reduceKey{compute.OpTypeReduceLogicalAnd, boolType}] = reduceBy(true, func(a, b bool) bool { return a && b })
	reducers[reduceKey{compute.OpTypeReduceLogicalOr, boolType}] = reduceBy(false, func(a, b bool) bool { return a || b })
	reducers[reduceKey{compute.OpTypeReduceLogicalXor, boolType}] = reduceBy(false, func(a, b bool) bool { return a != b })
}
