package engine_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/support/testutil"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// TestBatchNorm compares batch normalisation with its definition in primitives on the go backend, values and gradients,
// and for inference.
func TestBatchNorm(t *testing.T) {
	for _, axis := range []int{0, 1, 2} {
		args := func() []any {
			return []any{tensor(dtypes.Float64, 1, 1, 4, 4, 4), tensor(dtypes.Float64, 2, 1, 4), tensor(dtypes.Float64, 3, 1, 4),
				tensor(dtypes.Float64, 4, 1, 4, 4, 4)}
		}
		const epsilon = 1e-3
		spread := func(v *Node) *Node {
			dims := []int{1, 1, 1}
			dims[axis] = 4
			return Reshape(v, dims...)
		}
		others := slices.DeleteFunc([]int{0, 1, 2}, func(a int) bool { return a == axis })
		byHand := func(x, scale, offset *Node) (y, mean, variance *Node) {
			mean = ReduceMean(x, others...)
			variance = ReduceMean(Square(Sub(x, spread(mean))), others...)
			y = Div(Sub(x, spread(mean)), Sqrt(AddScalar(spread(variance), float64(float32(epsilon)))))
			return Add(Mul(y, spread(scale)), spread(offset)), mean, variance
		}
		graph := func(f func(x, scale, offset *Node) (y, mean, variance *Node), infer bool) func(in []*Node) []*Node {
			return func(in []*Node) []*Node {
				y, mean, variance := f(in[0], in[1], in[2])
				out := append([]*Node{y, mean, variance}, Gradient(ReduceAllSum(Mul(y, in[3])), in[:3]...)...)
				if infer {
					return append(out, InternalBatchNormForInference(in[0], in[1], in[2], in[2], Exp(in[1]), epsilon, axis))
				}
				z := Div(Sub(in[0], spread(in[2])), Sqrt(AddScalar(spread(Exp(in[1])), float64(float32(epsilon)))))
				return append(out, Add(Mul(z, spread(in[1])), spread(in[2])))
			}
		}
		want, err := ExecOnceN(open(t, oracle), graph(byHand, false), args()...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ExecOnceN(open(t, "simd"), graph(func(x, scale, offset *Node) (y, mean, variance *Node) {
			return InternalBatchNormForTraining(x, scale, offset, epsilon, axis)
		}, true), args()...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			a, b := tensors.MustCopyFlatData[float64](want[i]), tensors.MustCopyFlatData[float64](got[i])
			for j := range a {
				// Sums of 16 terms of size about 1, divided by a deviation of about 1.
				if !(math.Abs(a[j]-b[j]) <= 1e-13) {
					t.Fatalf("axis %d, output %d, element %d: %v, want %v", axis, i, j, b[j], a[j])
				}
			}
		}
	}
}

// TestTotalOrder checks all comparisons of a list in order.
func TestTotalOrder(t *testing.T) {
	nan := math.NaN()
	wide := []float64{math.Copysign(nan, -1), math.Inf(-1), -2, -1e-300, math.Copysign(0, -1), 0, 1e-300, 2, math.Inf(1), math.Copysign(nan, 1)}
	narrow := []float32{float32(math.Copysign(nan, -1)), float32(math.Inf(-1)), -2, float32(math.Copysign(0, -1)), 0, 2, float32(math.Inf(1)), float32(nan)}
	half := float16.FromFloat32s(float32(math.Inf(-1)), -2, -1, float32(math.Copysign(0, -1)), 0, 1, 2)
	for _, list := range []any{wide, narrow, half, []int32{-5, 0, 7}} {
		n := reflect.ValueOf(list).Len()
		out, err := testutil.Exec(open(t, "simd"), []any{list}, func(f compute.Function, p []compute.Value) (list []compute.Value, err error) {
			a, err := f.Reshape(p[0], n, 1)
			if err != nil {
				return nil, err
			}
			b, err := f.Reshape(p[0], 1, n)
			if err != nil {
				return nil, err
			}
			for _, op := range []binaryOp{compute.Function.EqualTotalOrder, compute.Function.NotEqualTotalOrder, compute.Function.LessThanTotalOrder,
				compute.Function.LessOrEqualTotalOrder, compute.Function.GreaterThanTotalOrder, compute.Function.GreaterOrEqualTotalOrder} {
				v, err := op(f, a, b)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			return list, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range n {
				for k, want := range []bool{i == j, i != j, i < j, i <= j, i > j, i >= j} {
					if got := out[k].([][]bool)[i][j]; got != want {
						t.Errorf("%T: comparison %d of number %d and %d is %v", list, k, i, j, got)
					}
				}
			}
		}
	}
}

// TestNegativePad checks padding that cuts, with and without gaps.
func TestNegativePad(t *testing.T) {
	for _, c := range []struct {
		pad  compute.PadAxis
		want []int32
	}{
		{compute.PadAxis{Start: -1, End: 2}, []int32{2, 3, 4, 9, 9}},
		{compute.PadAxis{Start: 1, End: -3}, []int32{9, 1}},
		{compute.PadAxis{Start: -2, End: -1, Interior: 1}, []int32{2, 9, 3, 9}},
		{compute.PadAxis{Start: -2, End: -2}, []int32{}},
	} {
		got, err := testutil.Exec1(open(t, "simd"), []any{[]int32{1, 2, 3, 4}, int32(9)}, func(f compute.Function, p []compute.Value) (compute.Value, error) {
			return f.Pad(p[0], p[1], c.pad)
		})
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %v (%v), want %v", c.pad, got, err, c.want)
		}
	}
}

// TestHalf checks that operations on 16-bit floats are those on float32, rounded, for every type and kind of operation.
func TestHalf(t *testing.T) {
	x, y := make([]float32, 24), make([]float32, 24)
	for i, v := range numbers(48, 9) {
		x[i%24] = float32(v)
		if i < 24 {
			y[i] = float32(2 * v)
		}
	}
	for _, c := range []struct {
		t     dtypes.DType
		round func(float32) float32
	}{
		{dtypes.Float16, func(v float32) float32 { return float16.FromFloat32(v).Float32() }},
		{dtypes.BFloat16, func(v float32) float32 { return bfloat16.FromFloat32(v).Float32() }},
	} {
		for name, op := range map[string]func(f compute.Function, a, b compute.Value) (compute.Value, error){
			"add": compute.Function.Add, "mul": compute.Function.Mul, "max": compute.Function.Max, "div": compute.Function.Div,
			"exp":   func(f compute.Function, a, _ compute.Value) (compute.Value, error) { return f.Exp(a) },
			"neg":   func(f compute.Function, a, _ compute.Value) (compute.Value, error) { return f.Neg(a) },
			"sum":   func(f compute.Function, a, _ compute.Value) (compute.Value, error) { return f.ReduceSum(a, 1) },
			"least": func(f compute.Function, a, _ compute.Value) (compute.Value, error) { return f.ReduceMin(a, 0) },
			"cumsum": func(f compute.Function, a, _ compute.Value) (compute.Value, error) {
				return f.CumSum(a, 0, compute.CumSumOptions{})
			},
			"turn":    func(f compute.Function, a, _ compute.Value) (compute.Value, error) { return f.Transpose(a, 1, 0) },
			"join":    func(f compute.Function, a, b compute.Value) (compute.Value, error) { return f.Concatenate(1, a, b) },
			"softmax": func(f compute.Function, a, _ compute.Value) (compute.Value, error) { return f.FusedSoftmax(a, 1) },
			"where": func(f compute.Function, a, b compute.Value) (compute.Value, error) {
				less, err := f.LessThan(a, b)
				if err != nil {
					return nil, err
				}
				return f.Where(less, a, b)
			},
			"dot": func(f compute.Function, a, b compute.Value) (compute.Value, error) {
				return f.DotGeneral(a, []int{1}, nil, b, []int{1}, nil, compute.DotGeneralConfig{})
			},
			"window": func(f compute.Function, a, _ compute.Value) (compute.Value, error) {
				return f.ReduceWindow(a, compute.ReduceOpSum, []int{2, 2}, nil, nil, nil, nil)
			},
		} {
			eval := func(t16 dtypes.DType) (flat []float32) {
				out, err := testutil.Exec1(open(t, "simd"), []any{x, y}, func(f compute.Function, p []compute.Value) (compute.Value, error) {
					var in [2]compute.Value
					for i := range in {
						// The operands are rounded in both cases.
						v, err := f.ConvertDType(p[i], c.t)
						if err != nil {
							return nil, err
						}
						if v, err = f.ConvertDType(v, t16); err != nil {
							return nil, err
						}
						if in[i], err = f.Reshape(v, 4, 6); err != nil {
							return nil, err
						}
					}
					y, err := op(f, in[0], in[1])
					if err != nil {
						return nil, err
					}
					s, err := f.Shape(y)
					if err != nil {
						return nil, err
					}
					if s.DType != t16 {
						return nil, fmt.Errorf("the result is %s", s)
					}
					if y, err = f.ConvertDType(y, dtypes.Float32); err != nil {
						return nil, err
					}
					return f.Reshape(y, s.Size())
				})
				if err != nil {
					t.Fatalf("%s of %s: %v", name, c.t, err)
				}
				return out.([]float32)
			}
			got, want := eval(c.t), eval(dtypes.Float32)
			for i := range want {
				limit := 0.0
				if name == "softmax" { // four operations, each of which rounds
					limit = 0.02
				}
				if w := c.round(want[i]); !(math.Abs(float64(got[i]-w)) <= limit) {
					t.Errorf("%s of %s: element %d is %v, want %v", name, c.t, i, got[i], w)
					break
				}
			}
		}
	}
}

// TestUndeclared checks that every operation that is not declared is an error at once that names it, and that every one
// that is declared is there: no method says that it is not implemented, whatever its operands.
func TestUndeclared(t *testing.T) {
	b := open(t, "simd")
	has := b.Capabilities().Operations
	for i := range functionType.NumMethod() {
		m := functionType.Method(i)
		op, err := compute.OpTypeString(m.Name)
		if err != nil || op == compute.OpTypeParameter {
			continue // not an operation
		}
		f := b.Builder("undeclared").Main()
		z := &fuzzer{t: t, f: f, pool: []compute.Value{parameter(t, f, dtypes.Float32, 2, 3)}}
		args := make([]reflect.Value, m.Type.NumIn())
		for i := range args {
			args[i] = z.argument(m.Type.In(i)) // of no bytes: all zero
		}
		call := reflect.ValueOf(f).MethodByName(m.Name).Call
		if m.Type.IsVariadic() {
			call = reflect.ValueOf(f).MethodByName(m.Name).CallSlice
		}
		out := call(args)
		failure, _ := out[len(out)-1].Interface().(error)
		switch {
		case has[op] && failure != nil && failure.Error() == fmt.Errorf("operation %s in backend simd: %w", op, compute.ErrNotImplemented).Error():
			t.Errorf("%s is declared, but not there", op)
		case !has[op] && (!compute.IsNotImplemented(failure) || !strings.Contains(failure.Error(), op.String())):
			t.Errorf("%s is not declared; the error is %v", op, failure)
		}
	}
}
