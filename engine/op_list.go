package engine

import "github.com/gomlx/compute"

// The elementwise operations and the reductions, one line each; see op_elementwise.go for what they share.

// Abs is elementwise.
func (f *Function) Abs(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeAbs, x) }

// BitCount is elementwise.
func (f *Function) BitCount(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitCount, x)
}

// BitwiseNot is elementwise.
func (f *Function) BitwiseNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitwiseNot, x)
}

// Ceil is elementwise.
func (f *Function) Ceil(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeCeil, x)
}

// Clz is elementwise.
func (f *Function) Clz(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeClz, x) }

// Cos is elementwise.
func (f *Function) Cos(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeCos, x) }

// Erf is elementwise.
func (f *Function) Erf(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeErf, x) }

// Exp is elementwise.
func (f *Function) Exp(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeExp, x) }

// Expm1 is elementwise.
func (f *Function) Expm1(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeExpm1, x)
}

// Floor is elementwise.
func (f *Function) Floor(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeFloor, x)
}

// Log is elementwise.
func (f *Function) Log(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeLog, x) }

// Log1p is elementwise.
func (f *Function) Log1p(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLog1p, x)
}

// LogicalNot is elementwise.
func (f *Function) LogicalNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogicalNot, x)
}

// Logistic is elementwise.
func (f *Function) Logistic(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogistic, x)
}

// Neg is elementwise.
func (f *Function) Neg(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeNeg, x) }

// Round is elementwise.
func (f *Function) Round(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRound, x)
}

// Rsqrt is elementwise.
func (f *Function) Rsqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRsqrt, x)
}

// Sign is elementwise.
func (f *Function) Sign(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSign, x)
}

// Sin is elementwise.
func (f *Function) Sin(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeSin, x) }

// Sqrt is elementwise.
func (f *Function) Sqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSqrt, x)
}

// Tanh is elementwise.
func (f *Function) Tanh(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeTanh, x)
}

// Add is elementwise, with broadcasting.
func (f *Function) Add(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeAdd, a, b)
}

// Atan2 is elementwise, with broadcasting.
func (f *Function) Atan2(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeAtan2, a, b)
}

// BitwiseAnd is elementwise, with broadcasting.
func (f *Function) BitwiseAnd(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseAnd, a, b)
}

// BitwiseOr is elementwise, with broadcasting.
func (f *Function) BitwiseOr(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseOr, a, b)
}

// BitwiseXor is elementwise, with broadcasting.
func (f *Function) BitwiseXor(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseXor, a, b)
}

// Div is elementwise, with broadcasting.
func (f *Function) Div(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeDiv, a, b)
}

// LogicalAnd is elementwise, with broadcasting.
func (f *Function) LogicalAnd(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalAnd, a, b)
}

// LogicalOr is elementwise, with broadcasting.
func (f *Function) LogicalOr(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalOr, a, b)
}

// LogicalXor is elementwise, with broadcasting.
func (f *Function) LogicalXor(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalXor, a, b)
}

// Max is elementwise, with broadcasting.
func (f *Function) Max(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMax, a, b)
}

// Min is elementwise, with broadcasting.
func (f *Function) Min(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMin, a, b)
}

// Mul is elementwise, with broadcasting.
func (f *Function) Mul(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMul, a, b)
}

// Pow is elementwise, with broadcasting.
func (f *Function) Pow(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypePow, a, b)
}

// Rem is elementwise, with broadcasting.
func (f *Function) Rem(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeRem, a, b)
}

// ShiftLeft is elementwise, with broadcasting.
func (f *Function) ShiftLeft(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftLeft, a, b)
}

// ShiftRightArithmetic is elementwise, with broadcasting.
func (f *Function) ShiftRightArithmetic(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftRightArithmetic, a, b)
}

// ShiftRightLogical is elementwise, with broadcasting.
func (f *Function) ShiftRightLogical(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftRightLogical, a, b)
}

// Sub is elementwise, with broadcasting.
func (f *Function) Sub(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeSub, a, b)
}

// Equal compares elementwise, with broadcasting.
func (f *Function) Equal(a, b compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeEqual, a, b)
}

// GreaterOrEqual compares elementwise, with broadcasting.
func (f *Function) GreaterOrEqual(a, b compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeGreaterOrEqual, a, b)
}

// GreaterThan compares elementwise, with broadcasting.
func (f *Function) GreaterThan(a, b compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeGreaterThan, a, b)
}

// LessOrEqual compares elementwise, with broadcasting.
func (f *Function) LessOrEqual(a, b compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeLessOrEqual, a, b)
}

// LessThan compares elementwise, with broadcasting.
func (f *Function) LessThan(a, b compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeLessThan, a, b)
}

// NotEqual compares elementwise, with broadcasting.
func (f *Function) NotEqual(a, b compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeNotEqual, a, b)
}

// ReduceBitwiseAnd reduces some axes; all of them if none is given.
func (f *Function) ReduceBitwiseAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseAnd, x, axes)
}

// ReduceBitwiseOr reduces some axes; all of them if none is given.
func (f *Function) ReduceBitwiseOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseOr, x, axes)
}

// ReduceBitwiseXor reduces some axes; all of them if none is given.
func (f *Function) ReduceBitwiseXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseXor, x, axes)
}

// ReduceLogicalAnd reduces some axes; all of them if none is given.
func (f *Function) ReduceLogicalAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalAnd, x, axes)
}

// ReduceLogicalOr reduces some axes; all of them if none is given.
func (f *Function) ReduceLogicalOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalOr, x, axes)
}

// ReduceLogicalXor reduces some axes; all of them if none is given.
func (f *Function) ReduceLogicalXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalXor, x, axes)
}

// ReduceMax reduces some axes; all of them if none is given.
func (f *Function) ReduceMax(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceMax, x, axes)
}

// ReduceMin reduces some axes; all of them if none is given.
func (f *Function) ReduceMin(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceMin, x, axes)
}

// ReduceProduct reduces some axes; all of them if none is given.
func (f *Function) ReduceProduct(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceProduct, x, axes)
}

// ReduceSum reduces some axes; all of them if none is given.
func (f *Function) ReduceSum(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceSum, x, axes)
}
