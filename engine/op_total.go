package engine

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// Comparisons in the total order of floats: -NaN < -Inf < ... < -0 < +0 < ... < +Inf < +NaN. That is the order of their
// bits as integers, with all bits but the sign turned over in negative ones.

func (f *Function) total(op, as compute.OpType, a, b compute.Value) (compute.Value, error) {
	in, err := f.operands(op, a, b)
	if err != nil {
		return nil, err
	}
	s := in[0].shape
	if s.DType != in[1].shape.DType {
		return nil, fmt.Errorf("%s: cannot compare %s and %s", op, s, in[1].shape)
	}
	if !s.DType.IsFloat() {
		return f.compare(as, in[0], in[1])
	}
	t := map[int]dtypes.DType{2: dtypes.Int16, 4: dtypes.Int32, 8: dtypes.Int64}[sizeOf(s.DType)]
	c := &chain{Function: f}
	width := f.number(t, float64(8*sizeOf(t)-1))
	key := func(x *node) *node {
		x = c.op(f.Bitcast(x, t))
		negative := c.op(f.ShiftRightArithmetic(x, width)) // all bits, or none
		most := c.op(f.BitwiseNot(c.op(f.ShiftLeft(f.number(t, 1), width))))
		return c.op(f.BitwiseXor(x, c.op(f.BitwiseAnd(negative, most))))
	}
	return c.result(op, c.op(f.compare(as, key(in[0]), key(in[1]))))
}

// EqualTotalOrder compares elementwise.
func (f *Function) EqualTotalOrder(a, b compute.Value) (compute.Value, error) {
	return f.total(compute.OpTypeEqualTotalOrder, compute.OpTypeEqual, a, b)
}

// NotEqualTotalOrder compares elementwise.
func (f *Function) NotEqualTotalOrder(a, b compute.Value) (compute.Value, error) {
	return f.total(compute.OpTypeNotEqualTotalOrder, compute.OpTypeNotEqual, a, b)
}

// LessThanTotalOrder compares elementwise.
func (f *Function) LessThanTotalOrder(a, b compute.Value) (compute.Value, error) {
	return f.total(compute.OpTypeLessThanTotalOrder, compute.OpTypeLessThan, a, b)
}

// LessOrEqualTotalOrder compares elementwise.
func (f *Function) LessOrEqualTotalOrder(a, b compute.Value) (compute.Value, error) {
	return f.total(compute.OpTypeLessOrEqualTotalOrder, compute.OpTypeLessOrEqual, a, b)
}

// GreaterThanTotalOrder compares elementwise.
func (f *Function) GreaterThanTotalOrder(a, b compute.Value) (compute.Value, error) {
	return f.total(compute.OpTypeGreaterThanTotalOrder, compute.OpTypeGreaterThan, a, b)
}

// GreaterOrEqualTotalOrder compares elementwise.
func (f *Function) GreaterOrEqualTotalOrder(a, b compute.Value) (compute.Value, error) {
	return f.total(compute.OpTypeGreaterOrEqualTotalOrder, compute.OpTypeGreaterOrEqual, a, b)
}
