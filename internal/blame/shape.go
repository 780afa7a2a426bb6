package blame

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Floats returns x, which the function returned, if it is floats of given dimensions.
func (f Func) Floats(x *Node, dims ...int) *Node {
	if x == nil {
		f.Panicf("returns nil, not floats %v", dims)
	}
	if s := x.Shape(); !s.DType.IsFloat() || !slices.Equal(s.Dimensions, dims) {
		f.Panicf("returns %s, not floats %v", s, dims)
	}
	return x
}

// Typed returns x, which the function returned, if it has a given type and dimensions.
func (f Func) Typed(x *Node, dtype dtypes.DType, dims ...int) *Node {
	if x == nil {
		f.Panicf("returns nil, not (%s)%v", dtype, dims)
	}
	if s := x.Shape(); s.DType != dtype || !slices.Equal(s.Dimensions, dims) {
		f.Panicf("returns %s, not (%s)%v", s, dtype, dims)
	}
	return x
}

// Rows returns tensors, which the function returned, if there are any and each has n rows.
func Rows[S ~[]*Node](f Func, x S, n int) S {
	if len(x) == 0 {
		f.Panicf("returns no tensor")
	}
	for i, t := range x {
		if t == nil {
			f.Panicf("returns nil as tensor %d", i)
		}
		if t.Rank() == 0 || t.Shape().Dim(0) != n {
			f.Panicf("returns %s as tensor %d, not %d rows", t.Shape(), i, n)
		}
	}
	return x
}

// Like returns tensors, which the function returned, if they have the types and dimensions of others.
func Like[S ~[]*Node](f Func, x, want S) S {
	if len(x) != len(want) {
		f.Panicf("returns %d tensors, not %d", len(x), len(want))
	}
	for i, t := range x {
		f.Typed(t, want[i].DType(), want[i].Shape().Dimensions...)
	}
	return x
}
