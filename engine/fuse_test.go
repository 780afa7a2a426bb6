package engine_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/engine"
)

// maker chains operations and fails the test on an error.
type maker struct {
	t testing.TB
	f compute.Function
}

func (m maker) must(v compute.Value, err error) compute.Value {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
	return v
}

func (m maker) param(dims ...int) compute.Value {
	return m.must(m.f.Parameter("p", shapes.Make(dtypes.Float32, dims...), nil))
}

// row repeats per-row values of [rows] along cols.
func (m maker) row(v compute.Value, rows, cols int) compute.Value {
	return m.must(m.f.BroadcastInDim(v, shapes.Make(dtypes.Float32, rows, cols), []int{0}))
}

// logSoftmax is the textbook one.
func (m maker) logSoftmax(x compute.Value, rows, cols int) compute.Value {
	x = m.must(m.f.Sub(x, m.row(m.must(m.f.ReduceMax(x, 1)), rows, cols)))
	s := m.must(m.f.Log(m.must(m.f.ReduceSum(m.must(m.f.Exp(x)), 1))))
	return m.must(m.f.Sub(x, m.row(s, rows, cols)))
}

// TestFusion counts the steps that graphs become.
func TestFusion(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  int
		build func(m maker) []compute.Value
	}{
		{"log-softmax is one pass", 1, func(m maker) []compute.Value {
			return []compute.Value{m.logSoftmax(m.param(100, 7), 100, 7)}
		}},
		{"layer norm is one pass", 1, func(m maker) []compute.Value {
			x := m.param(100, 8)
			n := m.must(m.f.Constant([]float32{8}))
			mean := m.must(m.f.Div(m.must(m.f.ReduceSum(x, 1)), n))
			x = m.must(m.f.Sub(x, m.row(mean, 100, 8)))
			v := m.must(m.f.Div(m.must(m.f.ReduceSum(m.must(m.f.Mul(x, x)), 1)), n))
			return []compute.Value{m.must(m.f.Mul(x, m.row(m.must(m.f.Rsqrt(v)), 100, 8)))}
		}},
		{"two dense layers, their loss and a gradient are one pass", 1, func(m maker) []compute.Value {
			dot := func(x, w compute.Value, a, b int) compute.Value {
				return m.must(m.f.DotGeneral(x, []int{a}, nil, w, []int{b}, nil, compute.DotGeneralConfig{}))
			}
			x, w1, b1, w2 := m.param(500, 6), m.param(6, 16), m.param(16), m.param(16, 4)
			bias := m.must(m.f.BroadcastInDim(b1, shapes.Make(dtypes.Float32, 500, 16), []int{1}))
			h := m.must(m.f.Tanh(m.must(m.f.Add(dot(x, w1, 1, 0), bias))))
			y := m.logSoftmax(dot(h, w2, 1, 0), 500, 4)
			return []compute.Value{m.must(m.f.ReduceSum(y)), dot(h, y, 0, 0)}
		}},
		{"a transpose is part of the product", 1, func(m maker) []compute.Value {
			x, w := m.param(300, 200), m.param(250, 200)
			wt := m.must(m.f.Transpose(w, 1, 0))
			return []compute.Value{m.must(m.f.DotGeneral(x, []int{1}, nil, wt, []int{0}, nil, compute.DotGeneralConfig{}))}
		}},
		{"the bias is part of a large product", 1, func(m maker) []compute.Value {
			y := m.must(m.f.DotGeneral(m.param(300, 200), []int{1}, nil, m.param(200, 250), []int{0}, nil, compute.DotGeneralConfig{}))
			bias := m.must(m.f.BroadcastInDim(m.param(250), shapes.Make(dtypes.Float32, 300, 250), []int{1}))
			return []compute.Value{m.must(m.f.Add(y, bias))}
		}},
		{"what does not matter is not computed", 1, func(m maker) []compute.Value {
			x := m.param(10)
			m.must(m.f.Exp(x))
			one := m.must(m.f.Constant([]float32{1}))
			two := m.must(m.f.Add(one, one))
			return []compute.Value{m.must(m.f.Mul(m.must(m.f.Mul(x, one)), two))}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, "simd").Builder("fusion")
			m := maker{t, b.Main()}
			if err := m.f.Return(c.build(m), nil); err != nil {
				t.Fatal(err)
			}
			e, err := b.Compile()
			if err != nil {
				t.Fatal(err)
			}
			if n := engine.Steps(e); n != c.want {
				t.Errorf("%d steps, want %d", n, c.want)
			}
		})
	}
}
