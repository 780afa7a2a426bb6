package engine_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/nn"

	"github.com/gfnem/gfnem/engine"
)

// watched is a backend that shows what it compiles.
type watched struct {
	compute.Backend
	see func(compute.Executable)
}

type watchedBuilder struct {
	compute.Builder
	see func(compute.Executable)
}

func (b watched) Builder(name string) compute.Builder {
	return watchedBuilder{b.Backend.Builder(name), b.see}
}

func (b watchedBuilder) Compile() (compute.Executable, error) {
	e, err := b.Builder.Compile()
	if err == nil {
		b.see(e)
	}
	return e, err
}

// fused are functions of x [5,3,8], a matrix [8,8] and a vector [8] that GoMLX gives to backends in one piece.
var fused = map[string]func(x, w, b *Node) *Node{
	"softmax":      func(x, w, b *Node) *Node { return Softmax(x, 1) },
	"softmax last": func(x, w, b *Node) *Node { return Softmax(x) },
	"gelu":         func(x, w, b *Node) *Node { return activation.Gelu(x) },
	"norm":         func(x, w, b *Node) *Node { return nn.LayerNorm(x, []int{-1}, 1e-5, b, b, nil) },
	"norm of two":  func(x, w, b *Node) *Node { return nn.LayerNorm(x, []int{0, 2}, 1e-5, nil, b, nil) },
	"dense":        func(x, w, b *Node) *Node { return nn.Dense(x, w, b, compute.DenseLayoutInputOutputs) },
	"dense relu": func(x, w, b *Node) *Node {
		return nn.Dense(x, w, b, compute.DenseLayoutOutputsInput, activation.TypeRelu)
	},
	"dense silu": func(x, w, b *Node) *Node {
		return nn.Dense(x, w, nil, compute.DenseLayoutInputOutputs, activation.TypeSilu)
	},
	"dense hard": func(x, w, b *Node) *Node {
		return nn.Dense(x, Reshape(w, 8, 2, 4), Reshape(b, 2, 4), compute.DenseLayoutInputOutputs, activation.TypeHardSwish)
	},
	"dense tanh": func(x, w, b *Node) *Node {
		return nn.Dense(x, Reshape(w, 2, 4, 8), nil, compute.DenseLayoutOutputsInput, activation.TypeTanh)
	},
	"dense gelu": func(x, w, b *Node) *Node {
		return nn.Dense(x, w, b, compute.DenseLayoutInputOutputs, activation.TypeGelu)
	},
	"dense approximate gelu": func(x, w, b *Node) *Node {
		return nn.Dense(x, w, b, compute.DenseLayoutInputOutputs, activation.TypeGeluApprox)
	},
	"projection": func(x, w, b *Node) *Node {
		x = Reshape(x, -1, 8)
		q, k := Slice(b, AxisRange(0, 4)), Slice(b, AxisRange(6, 8))
		out, _ := InternalFusedOpCallerMulti(func() []*Node {
			q, k, v := BackendFusedAttentionQKVProjection(x, w, q, k, nil, 4, 2)
			return []*Node{q, k, v}
		}, func() []*Node {
			y := DotProduct(x, w)
			part := func(lo, hi int) *Node { return Slice(y, AxisRange(), AxisRange(lo, hi)) }
			return []*Node{Add(part(0, 4), ExpandLeftToRank(q, 2)), Add(part(4, 6), ExpandLeftToRank(k, 2)), part(6, 8)}
		}, true)
		return Concatenate([]*Node{out[0], Mul(out[1], out[1]), out[2]}, -1)
	},
}

// TestFused compares fused operations and their gradients with the go backend, which computes gradients from primitives,
// and checks that asking for them in one piece makes no more steps than not doing so.
func TestFused(t *testing.T) {
	for name, f := range fused {
		t.Run(name, func(t *testing.T) {
			eval := func(config, fusion string) (out []*tensors.Tensor, steps int) {
				t.Setenv(FusionEnv, fusion)
				backend := watched{open(t, config), func(e compute.Executable) { steps += engine.Steps(e) }}
				var on compute.Backend = backend
				if config == oracle {
					on = backend.Backend
				}
				out, err := ExecOnceN(on, func(in []*Node) []*Node {
					y := f(in[0], in[1], in[2])
					// A weighted sum, so that all elements of the gradient matter, apart.
					weight := Sin(Add(IotaFull(in[0].Graph(), y.Shape()), ScalarOne(in[0].Graph(), y.DType())))
					return append([]*Node{y}, Gradient(ReduceAllSum(Mul(y, weight)), in...)...)
				}, tensor(dtypes.Float64, 1, 1, 5, 3, 8), tensor(dtypes.Float64, 2, 0.4, 8, 8), tensor(dtypes.Float64, 3, 1, 8))
				if err != nil {
					t.Fatal(err)
				}
				return out, steps
			}
			want, _ := eval(oracle, "false")
			got, steps := eval("simd", "true")
			plain, plainSteps := eval("simd", "false")
			if steps > plainSteps {
				t.Errorf("%d steps, but %d without fused operations", steps, plainSteps)
			}
			for i := range want {
				a, c, d := tensors.MustCopyFlatData[float64](want[i]), tensors.MustCopyFlatData[float64](got[i]), tensors.MustCopyFlatData[float64](plain[i])
				if fmt.Sprint(c) != fmt.Sprint(d) {
					t.Errorf("output %d is not what primitives give", i)
				}
				for j := range a {
					// Sums of at most 120 terms of size about 1.
					if !(math.Abs(a[j]-c[j]) <= 1e-12) {
						t.Errorf("output %d, element %d: %v, want %v", i, j, c[j], a[j])
						break
					}
				}
			}
		})
	}
}

// TestFusedErrors checks that wrong arguments are errors.
func TestFusedErrors(t *testing.T) {
	f := open(t, "simd").Builder("errors").Main()
	p := func(dims ...int) compute.Value { return parameter(t, f, dtypes.Float32, dims...) }
	x, w, v := p(2, 3), p(3, 4), p(3)
	ints := parameter(t, f, dtypes.Int32, 2, 3)
	first := func(v compute.Value, _, _ compute.Value, err error) (compute.Value, error) { return v, err }
	for name, build := range map[string]func() (compute.Value, error){
		"softmax axis":     func() (compute.Value, error) { return f.FusedSoftmax(x, 2) },
		"softmax type":     func() (compute.Value, error) { return f.FusedSoftmax(ints, 1) },
		"softmax nil":      func() (compute.Value, error) { return f.FusedSoftmax(nil, 1) },
		"gelu type":        func() (compute.Value, error) { return f.FusedGelu(ints, true) },
		"norm axes":        func() (compute.Value, error) { return f.FusedLayerNorm(x, []int{1, 1}, 1e-5, nil, nil) },
		"norm no axes":     func() (compute.Value, error) { return f.FusedLayerNorm(x, nil, 1e-5, nil, nil) },
		"norm gamma":       func() (compute.Value, error) { return f.FusedLayerNorm(x, []int{1}, 1e-5, w, nil) },
		"dense inner":      func() (compute.Value, error) { return f.FusedDense(x, x, nil, compute.DenseConfig{}) },
		"dense bias":       func() (compute.Value, error) { return f.FusedDense(x, w, v, compute.DenseConfig{}) },
		"dense no weights": func() (compute.Value, error) { return f.FusedDense(x, nil, nil, compute.DenseConfig{}) },
		"projection":       func() (compute.Value, error) { return first(f.FusedAttentionQKVProjection(x, w, nil, nil, nil, 1, 1)) },
		"projection bias":  func() (compute.Value, error) { return first(f.FusedAttentionQKVProjection(x, w, v, nil, nil, 2, 1)) },
	} {
		if _, err := build(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
