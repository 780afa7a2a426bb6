package blame

import (
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// shapeOf prints what a function returned.
func shapeOf(x *Node) string {
	if x == nil {
		return "nil"
	}
	return x.Shape().String()
}

// Floats returns x, which the function returned, if it is floats of given dimensions.
func (f Func) Floats(x *Node, dims ...int) *Node {
	if x == nil || !x.DType().IsFloat() || !slices.Equal(x.Shape().Dimensions, dims) {
		want := shapes.Make(dtypes.Float64, dims...).String()
		f.Panicf("is %s, not %s", shapeOf(x), strings.Replace(want, "Float64", "floats", 1))
	}
	return x
}

// Typed returns x, which the function returned, if it has a given type and dimensions.
func (f Func) Typed(x *Node, dtype dtypes.DType, dims ...int) *Node {
	if x == nil || x.DType() != dtype || !slices.Equal(x.Shape().Dimensions, dims) {
		f.Panicf("is %s, not %s", shapeOf(x), shapes.Make(dtype, dims...))
	}
	return x
}

// Rows returns tensors, which the function returned, if there are any and each has n rows.
func Rows[S ~[]*Node](f Func, x S, n int) S {
	if len(x) == 0 {
		f.Panicf("has no tensor")
	}
	for i, t := range x {
		if t == nil || t.Rank() == 0 || t.Shape().Dim(0) != n {
			f.Panicf("has %s as tensor %d, not %d rows", shapeOf(t), i, n)
		}
	}
	return x
}

// Like returns tensors, which the function returned, if they have the types and dimensions of others.
func Like[S ~[]*Node](f Func, x, want S) S {
	if len(x) != len(want) {
		f.Panicf("has %d tensors, not %d", len(x), len(want))
	}
	for i, t := range x {
		if t == nil || !t.Shape().Equal(want[i].Shape()) {
			f.Panicf("has %s as tensor %d, not %s", shapeOf(t), i, want[i].Shape())
		}
	}
	return x
}
