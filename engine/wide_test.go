package engine_test

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// TestWideRows joins and reduces operands whose rows, of more than a million elements, are pieces of a larger tensor: too
// wide to list their places.
func TestWideRows(t *testing.T) {
	part := func(x *Node) *Node { return SliceAxis(x, 1, AxisRange(1, 3)) } // [2,2,n] of [2,4,n]
	for name, f := range map[string]func(x *Node) *Node{
		"concatenate": func(x *Node) *Node {
			short := SliceAxis(SliceAxis(x, 1, AxisRange(0, 1)), 2, AxisRange(0, 600_000))
			return Concatenate([]*Node{SliceAxis(part(x), 2, AxisRange(0, 600_000)), short}, 1)
		},
		"reduce": func(x *Node) *Node {
			return ReduceMax(SliceAxis(part(x), 2, AxisRange(7, 600_000)), 1, 2)
		},
	} {
		x := func() *tensors.Tensor { return tensor(dtypes.Float32, 1, 1, 2, 4, 600_001) }
		want := tensors.MustCopyFlatData[float32](MustExecOnce(open(t, oracle), f, x()))
		got, err := ExecOnce(open(t, "simd"), f, x())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(tensors.MustCopyFlatData[float32](got), want) {
			t.Errorf("%s: other values than those of the oracle", name)
		}
	}
}
