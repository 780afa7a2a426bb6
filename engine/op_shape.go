package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
)

// Identity returns x.
func (f *Function) Identity(x compute.Value) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeIdentity, x)
	if err != nil {
		return nil, err
	}
	return in[0], nil
}

// Reshape keeps the elements in their order.
func (f *Function) Reshape(x compute.Value, dims ...int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeReshape, x)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(dims, func(d int) bool { return d < 0 }) {
		return nil, fmt.Errorf("Reshape: dimensions %v of %s are negative", dims, in[0].shape)
	}
	shape, err := inferred(compute.OpTypeReshape, func() (shapes.Shape, error) {
		return shapeinference.Reshape(in[0].shape, dims)
	})
	if err != nil {
		return nil, err
	}
	if shape.Equal(in[0].shape) {
		return in[0], nil
	}
	return f.newNode(compute.OpTypeReshape, shape, nil, in[0]), nil
}

// Transpose permutes the axes.
func (f *Function) Transpose(x compute.Value, perm ...int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeTranspose, x)
	if err != nil {
		return nil, err
	}
	shape, err := inferred(compute.OpTypeTranspose, func() (shapes.Shape, error) {
		return shapeinference.Transpose(in[0].shape, perm)
	})
	if err != nil {
		return nil, err
	}
	return f.newNode(compute.OpTypeTranspose, shape, slices.Clone(perm), in[0]), nil
}

// BroadcastInDim repeats elements along new axes and axes of size 1.
func (f *Function) BroadcastInDim(x compute.Value, shape shapes.Shape, axes []int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeBroadcastInDim, x)
	if err != nil {
		return nil, err
	}
	if shape.IsDynamic() {
		return nil, fmt.Errorf("BroadcastInDim to dynamic shape %s: %w", shape, compute.ErrNotImplemented)
	}
	if shape.DType != in[0].shape.DType {
		return nil, fmt.Errorf("BroadcastInDim: %s cannot become %s, the types differ", in[0].shape, shape)
	}
	if _, err := inferred(compute.OpTypeBroadcastInDim, func() (shapes.Shape, error) {
		return shape, shapeinference.BroadcastInDim(in[0].shape, shape, axes, nil)
	}); err != nil {
		return nil, err
	}
	return f.newNode(compute.OpTypeBroadcastInDim, shape.Clone(), slices.Clone(axes), in[0]), nil
}

type sliceAttr struct{ starts, limits, strides []int }

// Slice takes a box of elements, with steps.
func (f *Function) Slice(x compute.Value, starts, limits, strides []int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeSlice, x)
	if err != nil {
		return nil, err
	}
	if strides == nil {
		strides = slices.Repeat([]int{1}, len(starts))
	}
	shape, err := inferred(compute.OpTypeSlice, func() (shapes.Shape, error) {
		return shapeinference.Slice(in[0].shape, starts, limits, strides)
	})
	if err != nil {
		return nil, err
	}
	return f.newNode(compute.OpTypeSlice, shape,
		sliceAttr{slices.Clone(starts), slices.Clone(limits), slices.Clone(strides)}, in[0]), nil
}

// Reverse turns axes around.
func (f *Function) Reverse(x compute.Value, axes ...int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeReverse, x)
	if err != nil {
		return nil, err
	}
	if axes, err = axesOf(compute.OpTypeReverse, in[0].shape, axes); err != nil {
		return nil, err
	}
	return f.newNode(compute.OpTypeReverse, in[0].shape, axes, in[0]), nil
}

// Concatenate joins operands along an axis.
func (f *Function) Concatenate(axis int, operands ...compute.Value) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeConcatenate, operands...)
	if err != nil {
		return nil, err
	}
	list := make([]shapes.Shape, len(in))
	for i, n := range in {
		list[i] = n.shape
	}
	shape, err := inferred(compute.OpTypeConcatenate, func() (shapes.Shape, error) {
		return shapeinference.Concatenate(list, axis)
	})
	if err != nil {
		return nil, err
	}
	if len(in) == 1 {
		return in[0], nil
	}
	return f.newNode(compute.OpTypeConcatenate, shape, axis, in...), nil
}

// Pad puts elements around and between; negative amounts cut.
func (f *Function) Pad(x, fill compute.Value, axes ...compute.PadAxis) (compute.Value, error) {
	in, err := f.operands(compute.OpTypePad, x, fill)
	if err != nil {
		return nil, err
	}
	if !in[1].shape.IsScalar() || in[1].shape.DType != in[0].shape.DType {
		return nil, fmt.Errorf("Pad: the fill value of %s must be a scalar of its type, not %s", in[0].shape, in[1].shape)
	}
	shape, err := inferred(compute.OpTypePad, func() (shapes.Shape, error) {
		return shapeinference.Pad(in[0].shape, axes...)
	})
	if err != nil {
		return nil, err
	}
	full := make([]compute.PadAxis, in[0].shape.Rank())
	copy(full, axes)
	lo, hi := make([]int, len(full)), slices.Clone(shape.Dimensions)
	cut := false
	for i := range full {
		a := &full[i]
		if a.Interior < 0 {
			return nil, fmt.Errorf("Pad: axis %d has %d elements between neighbours", i, a.Interior)
		}
		cut = cut || a.Start < 0 || a.End < 0
		lo[i] = -min(a.Start, 0)
		hi[i] += lo[i]
		a.Start, a.End = max(a.Start, 0), max(a.End, 0)
	}
	if !cut {
		return f.newNode(compute.OpTypePad, shape, full, in...), nil
	}
	whole, err := f.Pad(in[0], in[1], full...)
	if err != nil {
		return nil, err
	}
	return f.Slice(whole, lo, hi, nil)
}

// Iota counts along an axis.
func (f *Function) Iota(shape shapes.Shape, axis int) (compute.Value, error) {
	if err := f.open("Iota"); err != nil {
		return nil, err
	}
	if shape.IsDynamic() || !shape.Ok() || !capabilities.DTypes[shape.DType] || shape.DType == boolType {
		return nil, fmt.Errorf("Iota of %s: %w", shape, compute.ErrNotImplemented)
	}
	if axis < 0 || axis >= shape.Rank() {
		return nil, fmt.Errorf("Iota: %s has no axis %d", shape, axis)
	}
	if err := checkSize(compute.OpTypeIota, shape); err != nil {
		return nil, err
	}
	if shape.Size() == 0 {
		return f.constant(shape.Clone(), nil), nil
	}
	// Only the axis itself is stored; the rest is a view.
	line := f.newNode(compute.OpTypeIota, shapes.Make(shape.DType, shape.Dimensions[axis]), nil)
	if shape.Rank() == 1 {
		return line, nil
	}
	return f.newNode(compute.OpTypeBroadcastInDim, shape.Clone(), []int{axis}, line), nil
}

// OptimizationBarrier returns its operands.
func (f *Function) OptimizationBarrier(operands ...compute.Value) ([]compute.Value, error) {
	in, err := f.operands(compute.OpTypeOptimizationBarrier, operands...)
	if err != nil {
		return nil, err
	}
	return values(in), nil
}

// SchedulingBarrier returns its operand: the order of steps has no effect that a program can see.
func (f *Function) SchedulingBarrier(x compute.Value, after ...compute.Value) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeSchedulingBarrier, append([]compute.Value{x}, after...)...)
	if err != nil {
		return nil, err
	}
	return in[0], nil
}
