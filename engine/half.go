package engine

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
)

// Floats of 16 bits are stored and moved as they are; arithmetic converts them to float32, and each result back, which
// rounds it. The conversions become part of the passes around them.

func isHalf(t dtypes.DType) bool { return t == dtypes.Float16 || t == dtypes.BFloat16 }

// wide returns x as float32 if its elements have 16 bits.
func (f *Function) wide(x *node) *node {
	if !isHalf(x.shape.DType) {
		return x
	}
	shape := x.shape.Clone()
	shape.DType = dtypes.Float32
	return f.newNode(compute.OpTypeConvertDType, shape, nil, x)
}

// narrow returns a result with elements of type t, if they are float32 in place of it.
func (f *Function) narrow(v compute.Value, err error, t dtypes.DType) (compute.Value, error) {
	if err != nil {
		return nil, err
	}
	if n := v.(*node); n.shape.DType == dtypes.Float32 {
		return f.ConvertDType(n, t)
	}
	return v, nil
}

func init() {
	addHalf(dtypes.Float16, float16.FromFloat32, float16.Float16.Float32)
	addHalf(dtypes.BFloat16, bfloat16.FromFloat32, bfloat16.BFloat16.Float32)
}

// addHalf installs what can be done with 16 bits directly: conversions and selection.
func addHalf[T ~uint16](t dtypes.DType, from func(float32) T, to func(T) float32) {
	capabilities.DTypes[t] = true
	set := func(in, out dtypes.DType, k kernel) { kernels[kernelKey{compute.OpTypeConvertDType, in, out}] = k }
	set(dtypes.Float32, t, map1(from))
	set(t, dtypes.Float32, map1(to))
	set(dtypes.Float64, t, map1(func(x float64) T { return from(float32(x)) }))
	set(dtypes.Int64, t, map1(func(x int64) T { return from(float32(x)) }))
	kernels[kernelKey{compute.OpTypeWhere, t, t}] = where[T]
}
