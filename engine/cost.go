package engine

import "github.com/gomlx/compute"

// mapCost is the time of an elementwise operation, for one element, in the units of chunkRows.
func mapCost(op compute.OpType) int {
	switch op {
	case compute.OpTypeExp, compute.OpTypeExpm1, compute.OpTypeLog, compute.OpTypeLog1p, compute.OpTypeTanh,
		compute.OpTypeLogistic, compute.OpTypeErf, compute.OpTypeSin, compute.OpTypeCos:
		return 4
	case compute.OpTypePow, compute.OpTypeAtan2, compute.OpTypeRem:
		return 40
	}
	return 1
}
