package engine_test

import (
	"reflect"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/support/testutil"
)

// TestNoCircle fuses what would need itself: sums of two vectors, each of which scales the other vector. Either vector's
// operations could be one step, but not both.
func TestNoCircle(t *testing.T) {
	out, err := testutil.Exec(open(t, "simd"), []any{[]float32{1, 2, 3}, []float32{1, 2, 3, 4}, float32(2)},
		func(f compute.Function, p []compute.Value) (out []compute.Value, err error) {
			op := func(v compute.Value, e error) compute.Value {
				if err == nil {
					err = e
				}
				return v
			}
			// Cumulative sums are steps of their own.
			x, y := op(f.CumSum(p[0], 0, compute.CumSumOptions{})), op(f.CumSum(p[1], 0, compute.CumSumOptions{}))
			k := op(f.Mul(op(f.ReduceSum(x)), p[2]))
			a := op(f.Mul(k, y))
			square := op(f.Mul(x, x))
			b := op(f.ReduceSum(op(f.Neg(y))))
			c := op(f.Add(square, op(f.Mul(b, p[2]))))
			return []compute.Value{a, c}, err
		})
	if err != nil {
		t.Fatal(err)
	}
	if want := []any{[]float32{20, 60, 120, 200}, []float32{-39, -31, -4}}; !reflect.DeepEqual(out, want) {
		t.Errorf("%v, want %v", out, want)
	}
}
