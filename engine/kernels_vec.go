package engine

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/engine/internal/vec"
)

var (
	vecUnary = map[compute.OpType]vec.UnaryOp{
		compute.OpTypeNeg: vec.Neg, compute.OpTypeAbs: vec.Abs, compute.OpTypeSign: vec.Sign, compute.OpTypeSqrt: vec.Sqrt,
		compute.OpTypeRsqrt: vec.Rsqrt, compute.OpTypeFloor: vec.Floor, compute.OpTypeCeil: vec.Ceil,
		compute.OpTypeRound: vec.Round, compute.OpTypeExp: vec.Exp, compute.OpTypeExpm1: vec.Expm1, compute.OpTypeLog: vec.Log,
		compute.OpTypeLog1p: vec.Log1p, compute.OpTypeTanh: vec.Tanh, compute.OpTypeLogistic: vec.Logistic,
		compute.OpTypeErf: vec.Erf, compute.OpTypeSin: vec.Sin, compute.OpTypeCos: vec.Cos, compute.OpTypeBitwiseNot: vec.Not,
	}
	vecBinary = map[compute.OpType]vec.BinaryOp{
		compute.OpTypeAdd: vec.Add, compute.OpTypeSub: vec.Sub, compute.OpTypeMul: vec.Mul, compute.OpTypeDiv: vec.Div,
		compute.OpTypeMax: vec.Max, compute.OpTypeMin: vec.Min, compute.OpTypeBitwiseAnd: vec.And,
		compute.OpTypeBitwiseOr: vec.Or, compute.OpTypeBitwiseXor: vec.Xor,
	}
	vecCompare = map[compute.OpType]vec.CompareOp{
		compute.OpTypeEqual: vec.Eq, compute.OpTypeNotEqual: vec.Ne, compute.OpTypeLessThan: vec.Lt,
		compute.OpTypeLessOrEqual: vec.Le, compute.OpTypeGreaterThan: vec.Gt, compute.OpTypeGreaterOrEqual: vec.Ge,
	}
)

// scalarKernel applies an operation of two operands, one of which is a single element.
type scalarKernel func(to, a, s ptr, n int)

// withScalar holds operations by which operand is the single one.
var withScalar [2]map[kernelKey]scalarKernel = [2]map[kernelKey]scalarKernel{{}, {}}

// useScalars fills withScalar from the table of a type.
func useScalars[T vec.Number](t dtypes.DType, tab *vec.Table[T]) {
	for op, code := range vecBinary {
		if f := tab.BinarySV[code]; f != nil && kernels[kernelKey{op, t, t}] != nil {
			withScalar[0][kernelKey{op, t, t}] = func(to, a, s ptr, n int) { f(elems[T](to, n), *(*T)(s), elems[T](a, n)) }
		}
		if f := tab.BinaryVS[code]; f != nil && kernels[kernelKey{op, t, t}] != nil {
			withScalar[1][kernelKey{op, t, t}] = func(to, a, s ptr, n int) { f(elems[T](to, n), elems[T](a, n), *(*T)(s)) }
		}
	}
	for op, code := range vecCompare {
		if f := tab.CompareVS[code.Swap()]; f != nil {
			withScalar[0][kernelKey{op, t, boolType}] = func(to, a, s ptr, n int) { f(elems[bool](to, n), elems[T](a, n), *(*T)(s)) }
		}
		if f := tab.CompareVS[code]; f != nil {
			withScalar[1][kernelKey{op, t, boolType}] = func(to, a, s ptr, n int) { f(elems[bool](to, n), elems[T](a, n), *(*T)(s)) }
		}
	}
}

// useVec replaces plain kernels of a type by those of its table.
func useVec[T vec.Number](t dtypes.DType, tab *vec.Table[T]) {
	for op, code := range vecUnary {
		if f := tab.Unary[code]; f != nil && kernels[kernelKey{op, t, t}] != nil {
			kernels[kernelKey{op, t, t}] = func(to, a, _, _ ptr, n int) { f(elems[T](to, n), elems[T](a, n)) }
		}
	}
	for op, code := range vecBinary {
		if f := tab.Binary[code]; f != nil && kernels[kernelKey{op, t, t}] != nil {
			kernels[kernelKey{op, t, t}] = func(to, a, b, _ ptr, n int) { f(elems[T](to, n), elems[T](a, n), elems[T](b, n)) }
		}
	}
	for op, code := range vecCompare {
		if f := tab.Compare[code]; f != nil {
			kernels[kernelKey{op, t, boolType}] = func(to, a, b, _ ptr, n int) {
				f(elems[bool](to, n), elems[T](a, n), elems[T](b, n))
			}
		}
	}
	if f := tab.IsFinite; f != nil && t.IsFloat() {
		kernels[kernelKey{compute.OpTypeIsFinite, t, boolType}] = func(to, a, _, _ ptr, n int) {
			f(elems[bool](to, n), elems[T](a, n))
		}
	}
	if f := tab.Select; f != nil {
		kernels[kernelKey{compute.OpTypeWhere, t, t}] = func(to, m, a, b ptr, n int) {
			f(elems[T](to, n), elems[bool](m, n), elems[T](a, n), elems[T](b, n))
		}
	}
	kernels[kernelKey{compute.OpTypeConvertDType, boolType, t}] = func(to, a, _, _ ptr, n int) {
		vec.FromBool(elems[T](to, n), elems[bool](a, n))
	}
	kernels[kernelKey{compute.OpTypeConvertDType, t, boolType}] = func(to, a, _, _ ptr, n int) {
		vec.ToBool(tab, elems[bool](to, n), elems[T](a, n))
	}
	useConversion[T, int32](t, dtypes.Int32)
	useConversion[T, int64](t, dtypes.Int64)
	useConversion[T, uint32](t, dtypes.Uint32)
	useConversion[T, uint64](t, dtypes.Uint64)
	useConversion[T, float32](t, dtypes.Float32)
	useConversion[T, float64](t, dtypes.Float64)
	useScalars(t, tab)
	useRows(t, compute.OpTypeReduceSum, tab.RowSum, tab.ColSum, tab.Binary[vec.Add])
	useRows(t, compute.OpTypeReduceMax, tab.RowMax, tab.ColMax, tab.Binary[vec.Max])
	useRows(t, compute.OpTypeReduceMin, tab.RowMin, tab.ColMin, tab.Binary[vec.Min])
	useRows(t, compute.OpTypeReduceProduct, tab.RowProd, nil, tab.Binary[vec.Mul])
	if most, least := tab.ArgMax, tab.ArgMin; most != nil && least != nil {
		short := args[argKey{t, dtypes.Int32}]
		args[argKey{t, dtypes.Int32}] = func(to, from ptr, m, n int, min bool) {
			if n <= 16 {
				short(to, from, m, n, min)
			} else if min {
				least(elems[int32](to, m), elems[T](from, m*n), n)
			} else {
				most(elems[int32](to, m), elems[T](from, m*n), n)
			}
		}
	}
}

func useConversion[T, U vec.Number](t, u dtypes.DType) {
	f := vec.Conversion[U, T]()
	kernels[kernelKey{compute.OpTypeConvertDType, t, u}] = func(to, a, _, _ ptr, n int) { f(elems[U](to, n), elems[T](a, n)) }
}

// useBools replaces the plain kernels on booleans.
func useBools() {
	logic := func(op compute.OpType, f func(dst, a, b []bool)) {
		kernels[kernelKey{op, boolType, boolType}] = func(to, a, b, _ ptr, n int) {
			f(elems[bool](to, n), elems[bool](a, n), elems[bool](b, n))
		}
	}
	logic(compute.OpTypeLogicalAnd, vec.B.And)
	logic(compute.OpTypeLogicalOr, vec.B.Or)
	logic(compute.OpTypeLogicalXor, vec.B.Xor)
	logic(compute.OpTypeNotEqual, vec.B.Xor)
	kernels[kernelKey{compute.OpTypeLogicalNot, boolType, boolType}] = func(to, a, _, _ ptr, n int) {
		vec.B.Not(elems[bool](to, n), elems[bool](a, n))
	}
	kernels[kernelKey{compute.OpTypeWhere, boolType, boolType}] = func(to, m, a, b ptr, n int) {
		vec.B.Select(elems[bool](to, n), elems[bool](m, n), elems[bool](a, n), elems[bool](b, n))
	}
}

func useRows[T vec.Number](t dtypes.DType, op compute.OpType, rows func(dst, a []T, n int), cols func(dst, a []T),
	join func(dst, a, b []T)) {
	r := reducers[reduceKey{op, t}]
	if rows != nil {
		small := r.rows
		r.rows = func(to, from ptr, m, n int) {
			if n <= 8 && !t.IsFloat() {
				small(to, from, m, n)
				return
			}
			rows(elems[T](to, m), elems[T](from, m*n), n)
		}
	}
	if cols != nil {
		r.cols = func(to, from ptr, m, n int) { cols(elems[T](to, n), elems[T](from, m*n)) }
	}
	if join != nil {
		r.join = func(acc, from ptr, n int) { join(elems[T](acc, n), elems[T](acc, n), elems[T](from, n)) }
	}
}

func init() {
	useVec(dtypes.Float32, vec.F32)
	useVec(dtypes.Float64, vec.F64)
	useVec(dtypes.Int32, vec.I32)
	useVec(dtypes.Int64, vec.I64)
	useVec(dtypes.Uint32, vec.U32)
	useVec(dtypes.Uint64, vec.U64)
	useBools()
}
