package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
)

type gatherAttr struct {
	indexVectorAxis                                 int
	offsetAxes, collapsedAxes, startIndexMap, sizes []int
}

// Gather takes slices of an operand at positions given by indices. Positions are clamped so that slices fit.
func (f *Function) Gather(x, indices compute.Value, indexVectorAxis int, offsetAxes, collapsedAxes, startIndexMap,
	sizes []int, sorted bool) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeGather, x, indices)
	if err != nil {
		return nil, err
	}
	if !in[1].shape.DType.IsInt() {
		return nil, fmt.Errorf("Gather: indices of type %s are not integers", in[1].shape.DType)
	}
	shape, err := inferred(compute.OpTypeGather, func() (shapes.Shape, error) {
		return shapeinference.Gather(in[0].shape, in[1].shape, indexVectorAxis, offsetAxes, collapsedAxes,
			startIndexMap, sizes, sorted)
	})
	if err != nil {
		return nil, err
	}
	return f.newNode(compute.OpTypeGather, shape, gatherAttr{indexVectorAxis, slices.Clone(offsetAxes),
		slices.Clone(collapsedAxes), slices.Clone(startIndexMap), slices.Clone(sizes)}, in...), nil
}

type scatterAttr struct {
	indexVectorAxis                         int
	windowAxes, insertedAxes, scatterToAxes []int
}

func (f *Function) scatter(op compute.OpType, x, indices, updates compute.Value, indexVectorAxis int,
	windowAxes, insertedAxes, scatterToAxes []int) (compute.Value, error) {
	in, err := f.operands(op, x, indices, updates)
	if err != nil {
		return nil, err
	}
	if !in[1].shape.DType.IsInt() || in[0].shape.DType == boolType {
		return nil, fmt.Errorf("%s of %s at indices %s: %w", op, in[0].shape, in[1].shape, compute.ErrNotImplemented)
	}
	shape, err := inferred(op, func() (shapes.Shape, error) {
		return shapeinference.Scatter(in[0].shape, in[1].shape, in[2].shape, indexVectorAxis, windowAxes, insertedAxes,
			scatterToAxes)
	})
	if err != nil {
		return nil, err
	}
	t := shape.DType
	if isHalf(t) {
		shape.DType = dtypes.Float32
	}
	return f.narrow(f.newNode(op, shape, scatterAttr{indexVectorAxis, slices.Clone(windowAxes), slices.Clone(insertedAxes),
		slices.Clone(scatterToAxes)}, f.wide(in[0]), in[1], f.wide(in[2])), nil, t)
}

// ScatterSum adds updates to slices of x. A slice that does not fit is left out.
func (f *Function) ScatterSum(x, indices, updates compute.Value, indexVectorAxis int, windowAxes, insertedAxes,
	scatterToAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterSum, x, indices, updates, indexVectorAxis, windowAxes, insertedAxes, scatterToAxes)
}

// ScatterMax is ScatterSum with maxima.
func (f *Function) ScatterMax(x, indices, updates compute.Value, indexVectorAxis int, windowAxes, insertedAxes,
	scatterToAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMax, x, indices, updates, indexVectorAxis, windowAxes, insertedAxes, scatterToAxes)
}

// ScatterMin is ScatterSum with minima.
func (f *Function) ScatterMin(x, indices, updates compute.Value, indexVectorAxis int, windowAxes, insertedAxes,
	scatterToAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMin, x, indices, updates, indexVectorAxis, windowAxes, insertedAxes, scatterToAxes)
}

func (f *Function) starts(op compute.OpType, x *node, starts []*node) error {
	if len(starts) != x.shape.Rank() {
		return fmt.Errorf("%s: %d start indices for %s", op, len(starts), x.shape)
	}
	for i, s := range starts {
		if !s.shape.IsScalar() || !s.shape.DType.IsInt() {
			return fmt.Errorf("%s: start index %d has shape %s, it must be an integer scalar", op, i, s.shape)
		}
	}
	return nil
}

// DynamicSlice takes a box of elements; its position is clamped so that it fits.
func (f *Function) DynamicSlice(x compute.Value, starts []compute.Value, sizes []int) (compute.Value, error) {
	op := compute.OpTypeDynamicSlice
	in, err := f.operands(op, append([]compute.Value{x}, starts...)...)
	if err != nil {
		return nil, err
	}
	if err := f.starts(op, in[0], in[1:]); err != nil {
		return nil, err
	}
	shape, err := inferred(op, func() (shapes.Shape, error) {
		return shapeinference.DynamicSlice(in[0].shape, sizes)
	})
	if err != nil {
		return nil, err
	}
	return f.newNode(op, shape, nil, in...), nil
}

// DynamicUpdateSlice replaces a box of elements; its position is clamped so that it fits.
func (f *Function) DynamicUpdateSlice(x, update compute.Value, starts []compute.Value) (compute.Value, error) {
	op := compute.OpTypeDynamicUpdateSlice
	in, err := f.operands(op, append([]compute.Value{x, update}, starts...)...)
	if err != nil {
		return nil, err
	}
	if err := f.starts(op, in[0], in[2:]); err != nil {
		return nil, err
	}
	shape, err := inferred(op, func() (shapes.Shape, error) {
		return shapeinference.DynamicUpdateSlice(in[0].shape, in[1].shape)
	})
	if err != nil {
		return nil, err
	}
	return f.newNode(op, shape, nil, in...), nil
}

type cumAttr struct {
	axis               int
	exclusive, reverse bool
}

// CumSum adds along an axis.
func (f *Function) CumSum(x compute.Value, axis int, options compute.CumSumOptions) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeCumSum, x)
	if err != nil {
		return nil, err
	}
	shape, err := inferred(compute.OpTypeCumSum, func() (shapes.Shape, error) {
		return shapeinference.CumSum(in[0].shape, axis)
	})
	if err != nil {
		return nil, err
	}
	t := shape.DType
	if isHalf(t) {
		shape.DType = dtypes.Float32
	}
	return f.narrow(f.newNode(compute.OpTypeCumSum, shape, cumAttr{axis, options.Exclusive, options.Reverse}, f.wide(in[0])), nil, t)
}

type windowAttr struct {
	reduction                                   compute.ReduceOpType
	window, strides, dilations, windowDilations []int
	paddings                                    [][2]int
}

func windowOf(rank int, kind compute.ReduceOpType, window, strides, dilations, windowDilations []int,
	paddings [][2]int) windowAttr {
	ones := func(s, otherwise []int) []int {
		if s == nil {
			return otherwise
		}
		return slices.Clone(s)
	}
	one := slices.Repeat([]int{1}, rank)
	a := windowAttr{reduction: kind, window: ones(window, one), dilations: ones(dilations, one),
		windowDilations: ones(windowDilations, one), paddings: slices.Clone(paddings)}
	a.strides = ones(strides, a.window)
	if a.paddings == nil {
		a.paddings = make([][2]int, rank)
	}
	return a
}

// ReduceWindow reduces windows.
func (f *Function) ReduceWindow(x compute.Value, kind compute.ReduceOpType, window, strides, dilations,
	windowDilations []int, paddings [][2]int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeReduceWindow, x)
	if err != nil {
		return nil, err
	}
	s := in[0].shape
	a := windowOf(s.Rank(), kind, window, strides, dilations, windowDilations, paddings)
	shape, err := inferred(compute.OpTypeReduceWindow, func() (shapes.Shape, error) {
		return shapeinference.ReduceWindow(s, a.window, a.strides, a.dilations, a.windowDilations, a.paddings)
	})
	if err != nil {
		return nil, err
	}
	if s.DType == boolType || kind < compute.ReduceOpSum || kind > compute.ReduceOpMin {
		return nil, fmt.Errorf("ReduceWindow %s of %s: %w", kind, s, compute.ErrNotImplemented)
	}
	if isHalf(s.DType) {
		shape.DType = dtypes.Float32
	}
	return f.narrow(f.newNode(compute.OpTypeReduceWindow, shape, a, f.wide(in[0])), nil, s.DType)
}

func (f *Function) selectAndScatter(op compute.OpType, x, source compute.Value, window, strides []int,
	paddings [][2]int) (compute.Value, error) {
	in, err := f.operands(op, x, source)
	if err != nil {
		return nil, err
	}
	s := in[0].shape
	a := windowOf(s.Rank(), compute.ReduceOpMax, window, strides, nil, nil, paddings)
	if op == compute.OpTypeSelectAndScatterMin {
		a.reduction = compute.ReduceOpMin
	}
	if s.DType == boolType || s.DType != in[1].shape.DType {
		return nil, fmt.Errorf("%s of %s and %s: %w", op, s, in[1].shape, compute.ErrNotImplemented)
	}
	shape, err := inferred(op, func() (shapes.Shape, error) {
		return shapeinference.SelectAndScatter(s, in[1].shape, a.window, a.strides, a.paddings)
	})
	if err != nil {
		return nil, err
	}
	if isHalf(s.DType) {
		shape.DType = dtypes.Float32
	}
	return f.narrow(f.newNode(op, shape, a, f.wide(in[0]), f.wide(in[1])), nil, s.DType)
}

// SelectAndScatterMax adds each element of source to where its window of x has its first maximum.
func (f *Function) SelectAndScatterMax(x, source compute.Value, window, strides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMax, x, source, window, strides, paddings)
}

// SelectAndScatterMin adds each element of source to where its window of x has its first minimum.
func (f *Function) SelectAndScatterMin(x, source compute.Value, window, strides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMin, x, source, window, strides, paddings)
}

// RNGBitGenerator fills a shape with random bits and returns the state after them. It is Philox 4x32-10, with the
// conventions of XLA: the first word of the state is the key, the other two count blocks of 128 bits, low word first.
func (f *Function) RNGBitGenerator(state compute.Value, shape shapes.Shape) (compute.Value, compute.Value, error) {
	op := compute.OpTypeRNGBitGenerator
	in, err := f.operands(op, state)
	if err != nil {
		return nil, nil, err
	}
	if !in[0].shape.Equal(compute.RNGStateShape) {
		return nil, nil, fmt.Errorf("%s: the state has shape %s, not %s", op, in[0].shape, compute.RNGStateShape)
	}
	if shape.IsDynamic() || !capabilities.DTypes[shape.DType] || shape.DType == boolType {
		return nil, nil, fmt.Errorf("%s of %s: %w", op, shape, compute.ErrNotImplemented)
	}
	if err := checkSize(op, shape); err != nil {
		return nil, nil, err
	}
	out := f.newMulti(op, []shapes.Shape{in[0].shape, shape.Clone()}, shape.String(), in[0])
	return out[0], out[1], nil
}
