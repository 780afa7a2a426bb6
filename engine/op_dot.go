package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
)

type dotAttr struct {
	lhsContract, lhsBatch, rhsContract, rhsBatch []int
}

// DotGeneral contracts axes of two operands and aligns others. Its accumulator has the type of its result.
func (f *Function) DotGeneral(lhs compute.Value, lhsContract, lhsBatch []int, rhs compute.Value, rhsContract, rhsBatch []int,
	config compute.DotGeneralConfig) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeDotGeneral, lhs, rhs)
	if err != nil {
		return nil, err
	}
	accumulate := config.AccumulatorDType
	if accumulate == dtypes.InvalidDType {
		accumulate = in[0].shape.DType
	}
	if isHalf(accumulate) {
		accumulate = dtypes.Float32
	}
	result := config.OutputDType
	if result == dtypes.InvalidDType {
		result = in[0].shape.DType
	}
	if !capabilities.DTypes[accumulate] || !capabilities.DTypes[result] || accumulate == boolType || result == boolType {
		return nil, fmt.Errorf("DotGeneral with %+v: %w", config, compute.ErrNotImplemented)
	}
	attr := dotAttr{slices.Clone(lhsContract), slices.Clone(lhsBatch), slices.Clone(rhsContract), slices.Clone(rhsBatch)}
	if in[0].shape.DType != in[1].shape.DType || in[0].shape.DType == boolType {
		return nil, fmt.Errorf("DotGeneral: cannot multiply %s and %s", in[0].shape, in[1].shape)
	}
	for _, axes := range []*[]int{&attr.lhsContract, &attr.lhsBatch, &attr.rhsContract, &attr.rhsBatch} {
		rank := in[0].shape.Rank()
		if axes == &attr.rhsContract || axes == &attr.rhsBatch {
			rank = in[1].shape.Rank()
		}
		for i, a := range *axes {
			if a < 0 {
				(*axes)[i] = a + rank
			}
		}
	}
	for i, x := range in {
		if x.shape.DType == accumulate {
			continue
		}
		v, err := f.ConvertDType(x, accumulate)
		if err != nil {
			return nil, err
		}
		in[i] = v.(*node)
	}
	shape, err := inferred(compute.OpTypeDotGeneral, func() (shapes.Shape, error) {
		return shapeinference.DotGeneral(in[0].shape, attr.lhsContract, attr.lhsBatch,
			in[1].shape, attr.rhsContract, attr.rhsBatch, compute.DotGeneralConfig{})
	})
	if err != nil {
		return nil, err
	}
	return f.ConvertDType(f.newNode(compute.OpTypeDotGeneral, shape, attr, in...), result)
}

type convAttr struct {
	axes                            compute.ConvolveAxesConfig
	strides                         []int
	paddings                        [][2]int
	inputDilations, kernelDilations []int
	channelGroups, batchGroups      int
}

// ConvGeneral is a convolution.
func (f *Function) ConvGeneral(input, kernel compute.Value, axes compute.ConvolveAxesConfig, strides []int, paddings [][2]int,
	inputDilations, kernelDilations []int, channelGroups, batchGroups int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeConvGeneral, input, kernel)
	if err != nil {
		return nil, err
	}
	n := len(axes.InputSpatial)
	ones := func(s []int) []int {
		if s == nil {
			return slices.Repeat([]int{1}, n)
		}
		return slices.Clone(s)
	}
	a := convAttr{axes.Clone(), ones(strides), slices.Clone(paddings), ones(inputDilations), ones(kernelDilations),
		max(channelGroups, 1), max(batchGroups, 1)}
	if a.paddings == nil {
		a.paddings = make([][2]int, n)
	}
	shape, err := inferred(compute.OpTypeConvGeneral, func() (shapes.Shape, error) {
		return shapeinference.ConvGeneral(in[0].shape, in[1].shape, a.axes, a.strides, a.paddings, a.inputDilations,
			a.kernelDilations, a.channelGroups, a.batchGroups)
	})
	if err != nil {
		return nil, err
	}
	if in[0].shape.DType != in[1].shape.DType || in[0].shape.DType == boolType {
		return nil, fmt.Errorf("ConvGeneral: cannot multiply %s and %s", in[0].shape, in[1].shape)
	}
	t := shape.DType
	if isHalf(t) {
		shape.DType = dtypes.Float32
	}
	return f.narrow(f.newNode(compute.OpTypeConvGeneral, shape, a, f.wide(in[0]), f.wide(in[1])), nil, t)
}
