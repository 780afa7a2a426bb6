package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
)

func (f *Function) unary(op compute.OpType, v compute.Value) (compute.Value, error) {
	in, err := f.operands(op, v)
	if err != nil {
		return nil, err
	}
	shape, err := inferred(op, func() (shapes.Shape, error) {
		return shapeinference.UnaryOp(op, in[0].shape)
	})
	if err != nil {
		return nil, err
	}
	if t := in[0].shape.DType; isHalf(t) {
		y, err := f.unary(op, f.wide(in[0]))
		return f.narrow(y, err, t)
	}
	if kernelOf(op, in[0].shape.DType, shape.DType) == nil {
		return nil, fmt.Errorf("%s of %s: %w", op, in[0].shape.DType, compute.ErrNotImplemented)
	}
	return f.newNode(op, shape, nil, in[0]), nil
}

func (f *Function) binary(op compute.OpType, a, b compute.Value) (compute.Value, error) {
	return f.pairwise(op, a, b, shapeinference.BinaryOp)
}

func (f *Function) compare(op compute.OpType, a, b compute.Value) (compute.Value, error) {
	return f.pairwise(op, a, b, shapeinference.ComparisonOp)
}

func (f *Function) pairwise(op compute.OpType, a, b compute.Value,
	infer func(compute.OpType, shapes.Shape, shapes.Shape) (shapes.Shape, error)) (compute.Value, error) {
	in, err := f.operands(op, a, b)
	if err != nil {
		return nil, err
	}
	shape, err := inferred(op, func() (shapes.Shape, error) { return infer(op, in[0].shape, in[1].shape) })
	if err != nil {
		return nil, err
	}
	if t := in[0].shape.DType; isHalf(t) {
		y, err := f.pairwise(op, f.wide(in[0]), f.wide(in[1]), infer)
		return f.narrow(y, err, t)
	}
	if kernelOf(op, in[0].shape.DType, shape.DType) == nil {
		return nil, fmt.Errorf("%s of %s: %w", op, in[0].shape.DType, compute.ErrNotImplemented)
	}
	return f.newNode(op, shape, nil, in...), nil
}

// IsFinite is elementwise.
func (f *Function) IsFinite(v compute.Value) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeIsFinite, v)
	if err != nil {
		return nil, err
	}
	if !in[0].shape.DType.IsFloat() {
		return nil, fmt.Errorf("IsFinite of %s: only floats have infinities", in[0].shape)
	}
	shape := in[0].shape.Clone()
	shape.DType = dtypes.Bool
	return f.newNode(compute.OpTypeIsFinite, shape, nil, f.wide(in[0])), nil
}

// IsNaN is elementwise.
func (f *Function) IsNaN(x compute.Value) (compute.Value, error) { return f.NotEqual(x, x) }

// Clamp is Min(Max(x, low), high), elementwise.
func (f *Function) Clamp(low, x, high compute.Value) (compute.Value, error) {
	y, err := f.Max(low, x)
	if err != nil {
		return nil, fmt.Errorf("Clamp: %w", err)
	}
	if y, err = f.Min(y, high); err != nil {
		return nil, fmt.Errorf("Clamp: %w", err)
	}
	return y, nil
}

// Where selects elementwise.
func (f *Function) Where(cond, a, b compute.Value) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeWhere, cond, a, b)
	if err != nil {
		return nil, err
	}
	shape, err := inferred(compute.OpTypeWhere, func() (shapes.Shape, error) {
		return shapeinference.Where(in[0].shape, in[1].shape, in[2].shape)
	})
	if err != nil {
		return nil, err
	}
	return f.newNode(compute.OpTypeWhere, shape, nil, in...), nil
}

// ConvertDType converts as Go does; booleans are 0 and 1, and true is whatever is not 0.
func (f *Function) ConvertDType(v compute.Value, t dtypes.DType) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeConvertDType, v)
	if err != nil {
		return nil, err
	}
	if !capabilities.DTypes[t] {
		return nil, fmt.Errorf("ConvertDType to %s: %w", t, compute.ErrNotImplemented)
	}
	from := in[0].shape.DType
	if from == t {
		return in[0], nil
	}
	if t != dtypes.Float32 && isHalf(from) || from != dtypes.Float32 && isHalf(t) {
		v, err := f.ConvertDType(in[0], dtypes.Float32)
		if err != nil {
			return nil, err
		}
		return f.ConvertDType(v, t)
	}
	shape := in[0].shape.Clone()
	shape.DType = t
	return f.newNode(compute.OpTypeConvertDType, shape, nil, in[0]), nil
}

// Bitcast reinterprets the bytes.
func (f *Function) Bitcast(v compute.Value, t dtypes.DType) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeBitcast, v)
	if err != nil {
		return nil, err
	}
	if !capabilities.DTypes[t] {
		return nil, fmt.Errorf("Bitcast to %s: %w", t, compute.ErrNotImplemented)
	}
	shape, err := inferred(compute.OpTypeBitcast, func() (shapes.Shape, error) {
		return shapeinference.Bitcast(in[0].shape, t)
	})
	if err != nil {
		return nil, err
	}
	return f.newNode(compute.OpTypeBitcast, shape, nil, in[0]), nil
}

// axesOf checks a list of axes and sorts it.
func axesOf(op compute.OpType, s shapes.Shape, axes []int) ([]int, error) {
	axes = slices.Clone(axes)
	slices.Sort(axes)
	for i, a := range axes {
		if a < 0 || a >= s.Rank() || i > 0 && axes[i-1] == a {
			return nil, fmt.Errorf("%s: axes %v of %s are out of range or repeated", op, axes, s)
		}
	}
	return axes, nil
}

// reduce over axes; over all of them if none is given.
func (f *Function) reduce(op compute.OpType, v compute.Value, axes []int) (compute.Value, error) {
	in, err := f.operands(op, v)
	if err != nil {
		return nil, err
	}
	s := in[0].shape
	if len(axes) == 0 {
		axes = make([]int, s.Rank())
		for i := range axes {
			axes[i] = i
		}
	}
	if axes, err = axesOf(op, s, axes); err != nil {
		return nil, err
	}
	if isHalf(s.DType) {
		y, err := f.reduce(op, f.wide(in[0]), axes)
		return f.narrow(y, err, s.DType)
	}
	if reducerOf(op, s.DType) == nil {
		return nil, fmt.Errorf("%s of %s: %w", op, s.DType, compute.ErrNotImplemented)
	}
	shape, err := inferred(op, func() (shapes.Shape, error) {
		return shapeinference.Reduce(s, axes)
	})
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 {
		return in[0], nil
	}
	return f.newNode(op, shape, axes, in[0]), nil
}

type argAttr struct {
	axis int
	min  bool
}

// ArgMinMax returns where an axis has its least or greatest element: the first of equal ones, or the last NaN.
func (f *Function) ArgMinMax(v compute.Value, axis int, t dtypes.DType, isMin bool) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeArgMinMax, v)
	if err != nil {
		return nil, err
	}
	shape, err := inferred(compute.OpTypeArgMinMax, func() (shapes.Shape, error) {
		return shapeinference.ArgMinMax(in[0].shape, axis, t)
	})
	if err != nil {
		return nil, err
	}
	if s := in[0].shape; s.Dimensions[axis] == 0 {
		return nil, fmt.Errorf("ArgMinMax: axis %d of %s is empty", axis, s)
	}
	in[0] = f.wide(in[0])
	if argOf(in[0].shape.DType, t) == nil {
		return nil, fmt.Errorf("ArgMinMax of %s to %s: %w", in[0].shape.DType, t, compute.ErrNotImplemented)
	}
	return f.newNode(compute.OpTypeArgMinMax, shape, argAttr{axis, isMin}, in[0]), nil
}
