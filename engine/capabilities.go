package engine

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

const boolType = dtypes.Bool

var capabilities = compute.Capabilities{
	Functions:  true,
	Operations: map[compute.OpType]bool{},
	DTypes:     map[dtypes.DType]bool{boolType: true},
}

var numberTypes = []dtypes.DType{dtypes.Int8, dtypes.Int16, dtypes.Int32, dtypes.Int64, dtypes.Uint8, dtypes.Uint16,
	dtypes.Uint32, dtypes.Uint64, dtypes.Float32, dtypes.Float64}

func init() {
	for _, t := range numberTypes {
		capabilities.DTypes[t] = true
	}
	for _, op := range []compute.OpType{
		compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeIdentity,

		compute.OpTypeAbs, compute.OpTypeBitCount, compute.OpTypeBitwiseNot, compute.OpTypeCeil, compute.OpTypeClz,
		compute.OpTypeCos, compute.OpTypeErf, compute.OpTypeExp, compute.OpTypeExpm1, compute.OpTypeFloor,
		compute.OpTypeIsFinite, compute.OpTypeIsNaN, compute.OpTypeLog, compute.OpTypeLog1p, compute.OpTypeLogicalNot,
		compute.OpTypeLogistic, compute.OpTypeNeg, compute.OpTypeRound, compute.OpTypeRsqrt, compute.OpTypeSign,
		compute.OpTypeSin, compute.OpTypeSqrt, compute.OpTypeTanh,

		compute.OpTypeAdd, compute.OpTypeAtan2, compute.OpTypeBitwiseAnd, compute.OpTypeBitwiseOr, compute.OpTypeBitwiseXor,
		compute.OpTypeDiv, compute.OpTypeLogicalAnd, compute.OpTypeLogicalOr, compute.OpTypeLogicalXor, compute.OpTypeMax,
		compute.OpTypeMin, compute.OpTypeMul, compute.OpTypePow, compute.OpTypeRem, compute.OpTypeShiftLeft,
		compute.OpTypeShiftRightArithmetic, compute.OpTypeShiftRightLogical, compute.OpTypeSub,

		compute.OpTypeEqual, compute.OpTypeNotEqual, compute.OpTypeGreaterOrEqual, compute.OpTypeGreaterThan,
		compute.OpTypeLessOrEqual, compute.OpTypeLessThan,

		compute.OpTypeArgMinMax, compute.OpTypeBitcast, compute.OpTypeBroadcastInDim, compute.OpTypeClamp,
		compute.OpTypeConcatenate, compute.OpTypeConvertDType, compute.OpTypeConvGeneral, compute.OpTypeCumSum,
		compute.OpTypeDot, compute.OpTypeDotGeneral, compute.OpTypeDynamicSlice, compute.OpTypeDynamicUpdateSlice,
		compute.OpTypeGather, compute.OpTypeIota, compute.OpTypePad, compute.OpTypeReshape, compute.OpTypeReverse,
		compute.OpTypeRNGBitGenerator, compute.OpTypeScatterMax, compute.OpTypeScatterMin, compute.OpTypeScatterSum,
		compute.OpTypeSelectAndScatterMax, compute.OpTypeSelectAndScatterMin, compute.OpTypeSlice, compute.OpTypeTranspose,
		compute.OpTypeWhere, compute.OpTypeOptimizationBarrier, compute.OpTypeSchedulingBarrier,

		compute.OpTypeReduceBitwiseAnd, compute.OpTypeReduceBitwiseOr, compute.OpTypeReduceBitwiseXor,
		compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr, compute.OpTypeReduceLogicalXor,
		compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceProduct, compute.OpTypeReduceSum,
		compute.OpTypeReduceWindow,

		compute.OpTypeCall, compute.OpTypeIf, compute.OpTypeWhile, compute.OpTypeSort,

		compute.OpTypeFusedSoftmax, compute.OpTypeFusedGelu, compute.OpTypeFusedLayerNorm, compute.OpTypeFusedDense,
		compute.OpTypeFusedAttentionQKVProjection,

		compute.OpTypeBatchNormForInference, compute.OpTypeBatchNormForTraining, compute.OpTypeBatchNormGradient,
		compute.OpTypeEqualTotalOrder, compute.OpTypeNotEqualTotalOrder, compute.OpTypeLessThanTotalOrder,
		compute.OpTypeLessOrEqualTotalOrder, compute.OpTypeGreaterThanTotalOrder, compute.OpTypeGreaterOrEqualTotalOrder,
	} {
		capabilities.Operations[op] = true
	}
}
