package engine_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/testutil"
)

// special are numbers at the edges of a type, enough of them for every vector unit.
func special[T float32 | float64](most, least T) (list []T) {
	inf, nan := T(math.Inf(1)), T(math.NaN())
	for range 3 {
		list = append(list, 0, T(math.Copysign(0, -1)), 1, -1, inf, -inf, nan, most, -most, least, -least, 0.5, -0.5, 1.5, 2.5, -2.5, 88, -88, 1e-10, 710, -745, 3, -7)
	}
	return list
}

// righter are operations that the go backend gets wrong: it has no logarithm of numbers below the normal ones, no sign of
// NaN and of zeros, and on ARM no exponentials below the normal numbers.
var righter = map[string]func(float64) float64{
	"abs": math.Abs,
	"exp": exp,
	"logistic": func(x float64) float64 {
		if x < 0 {
			return exp(x) / (1 + exp(x))
		}
		return 1 / (1 + exp(-x))
	},
	"log": func(x float64) float64 {
		if x > 0 && x < 0x1p-1022 {
			return math.Log(x*0x1p60) - 60*math.Ln2
		}
		return math.Log(x)
	},
	"sign": func(x float64) float64 {
		if x == 0 || math.IsNaN(x) {
			return x
		}
		return math.Copysign(1, x)
	},
}

func exp(x float64) float64 {
	if x < -700 {
		return math.Exp(x+64) * 1.6038108905486378e-28 // e^-64
	}
	return math.Exp(x)
}

// TestSpecial compares elementwise operations of special values with the go backend: what is not a number, infinite or
// zero has to be so here, and the rest is within a few units of rounding.
func TestSpecial(t *testing.T) {
	unary := map[string]unaryOp{
		"abs": compute.Function.Abs, "neg": compute.Function.Neg, "sign": compute.Function.Sign, "floor": compute.Function.Floor,
		"ceil": compute.Function.Ceil, "round": compute.Function.Round, "sqrt": compute.Function.Sqrt, "rsqrt": compute.Function.Rsqrt,
		"exp": compute.Function.Exp, "expm1": compute.Function.Expm1, "log": compute.Function.Log, "log1p": compute.Function.Log1p,
		"tanh": compute.Function.Tanh, "logistic": compute.Function.Logistic, "erf": compute.Function.Erf,
		"sin": compute.Function.Sin, "cos": compute.Function.Cos, "finite": compute.Function.IsFinite, "nan": compute.Function.IsNaN,
	}
	binary := map[string]binaryOp{
		"add": compute.Function.Add, "sub": compute.Function.Sub, "mul": compute.Function.Mul, "div": compute.Function.Div,
		"max": compute.Function.Max, "min": compute.Function.Min, "pow": compute.Function.Pow, "atan2": compute.Function.Atan2,
		"rem": compute.Function.Rem, "equal": compute.Function.Equal, "less": compute.Function.LessThan,
		"less or equal": compute.Function.LessOrEqual, "greater": compute.Function.GreaterThan, "not equal": compute.Function.NotEqual,
	}
	for _, list := range []any{special[float32](math.MaxFloat32, math.SmallestNonzeroFloat32), special[float64](math.MaxFloat64, math.SmallestNonzeroFloat64)} {
		n := reflect.ValueOf(list).Len()
		compare := func(name string, build func(f compute.Function, p []compute.Value) (compute.Value, error)) {
			var out [2]reflect.Value
			for i, b := range []string{oracle, "simd"} {
				v, err := testutil.Exec1(open(t, b), []any{list}, func(f compute.Function, p []compute.Value) (compute.Value, error) {
					y, err := build(f, p)
					if err != nil {
						return nil, err
					}
					s, err := f.Shape(y)
					if err != nil {
						return nil, err
					}
					return f.Reshape(y, s.Size())
				})
				if err != nil {
					t.Errorf("%s of %T on %s: %v", name, list, b, err)
					return
				}
				out[i] = reflect.ValueOf(v)
			}
			x := reflect.ValueOf(list)
			for i := range out[0].Len() {
				want, got := out[0].Index(i), out[1].Index(i)
				if want.Kind() == reflect.Bool {
					if want.Bool() != got.Bool() {
						t.Errorf("%s of %T: number %d: %v, want %v", name, list, i, got, want)
					}
					continue
				}
				u := 0x1p-24
				if want.Type().Size() == 8 {
					u = 0x1p-53
				}
				a, b := want.Float(), got.Float()
				if f := righter[name]; f != nil {
					a = f(x.Index(i).Float())
					if want.Type().Size() == 4 {
						a = float64(float32(a))
					}
				}
				same := a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 8*u*math.Abs(a)
				if same && a == 0 && math.Signbit(a) != math.Signbit(b) {
					same = false
				}
				if !same {
					t.Errorf("%s of %T: %v, %v: %v, want %v", name, list, x.Index(i/n), x.Index(i%n), b, a)
				}
			}
		}
		for name, op := range unary {
			compare(name, func(f compute.Function, p []compute.Value) (compute.Value, error) { return op(f, p[0]) })
		}
		for name, op := range binary {
			compare(name, func(f compute.Function, p []compute.Value) (compute.Value, error) {
				a, err := f.Reshape(p[0], n, 1)
				if err != nil {
					return nil, err
				}
				b, err := f.Reshape(p[0], 1, n)
				if err != nil {
					return nil, err
				}
				return op(f, a, b)
			})
		}
	}
}

// TestBitsAreKept moves words of 4 bytes that would be signalling NaNs, were they floating-point numbers: spread over rows of all widths,
// and in pieces of all lengths.
func TestBitsAreKept(t *testing.T) {
	words := []int32{0x7f800001, -0x007fffff, 0x7fa5a5a5, 1, -1, 0x7fc00000}
	for width := 1; width < 40; width++ {
		// [i,j,k] is words[i], and words[k] where k is the last axis: more than one piece in each row.
		for _, axis := range []int{0, 2} {
			words, dims := words, []int{len(words), 3, width}
			if axis == 2 {
				words, dims = slices.Repeat(words, 7)[:width], []int{5, 3, width}
			}
			got, err := testutil.Exec1(open(t, "simd"), []any{words}, func(f compute.Function, p []compute.Value) (compute.Value, error) {
				x, err := f.BroadcastInDim(p[0], shapes.Make(dtypes.Int32, dims...), []int{axis})
				if err != nil {
					return nil, err
				}
				return f.Neg(x)
			})
			if err != nil {
				t.Fatal(err)
			}
			x := reflect.ValueOf(got)
			for i := range dims[0] {
				for j := range dims[1] {
					for k := range dims[2] {
						at := []int{i, j, k}[axis]
						if v := x.Index(i).Index(j).Index(k).Interface(); v != -words[at] {
							t.Fatalf("%v along axis %d: element %d, %d, %d is %#x, want %#x", dims, axis, i, j, k, v, -words[at])
						}
					}
				}
			}
		}
	}
}
