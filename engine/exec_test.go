package engine_test

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/testutil"

	"github.com/gfnem/gfnem/engine"
)

// step compiles w - 0.01*x^T tanh(x w), a step with products, a reduction and an update in place.
func step(t testing.TB, b compute.Backend) (compute.Executable, []shapes.Shape) {
	builder := b.Builder("step")
	f := builder.Main()
	s := []shapes.Shape{shapes.Make(dtypes.Float32, 500, 20), shapes.Make(dtypes.Float32, 20, 10)}
	must := func(v compute.Value, err error) compute.Value {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	x, w := must(f.Parameter("x", s[0], nil)), must(f.Parameter("w", s[1], nil))
	y := must(f.Tanh(must(f.DotGeneral(x, []int{1}, nil, w, []int{0}, nil, compute.DotGeneralConfig{}))))
	d := must(f.DotGeneral(x, []int{0}, nil, y, []int{0}, nil, compute.DotGeneralConfig{}))
	rate := must(f.Constant([]float32{0.01}))
	w2 := must(f.Sub(w, must(f.Mul(rate, d))))
	loss := must(f.ReduceSum(y))
	if err := f.Return([]compute.Value{w2, loss}, nil); err != nil {
		t.Fatal(err)
	}
	e, err := builder.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

func buffer(t testing.TB, b compute.Backend, s shapes.Shape, seed uint64) compute.Buffer {
	flat := make([]float32, s.Size())
	for i, v := range numbers(len(flat), seed) {
		flat[i] = float32(v)
	}
	x, err := b.BufferFromFlatData(0, flat, s)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestMemoryIsLent checks that programs that run one after the other share their memory, and need nothing of what is in it.
func TestMemoryIsLent(t *testing.T) {
	b := open(t, "simd")
	var sums []float32
	first := 0
	for range 5 {
		e, s := step(t, b)
		out := must(e.Execute([]compute.Buffer{buffer(t, b, s[0], 1), buffer(t, b, s[1], 2)}, nil, 0))
		sums = append(sums, must(out[1].Data()).([]float32)[0])
		held := engine.Spoil(b)
		if first == 0 {
			first = held
		}
		if held < engine.Arena(e) || held != first {
			t.Errorf("%d programs of %d bytes leave %d bytes to be lent, the first one left %d", len(sums), engine.Arena(e), held, first)
		}
	}
	if len(slices.Compact(slices.Clone(sums))) != 1 {
		t.Errorf("the same program gives %v", sums)
	}
}

// TestSteady checks that steps with donated weights need no new memory.
func TestSteady(t *testing.T) {
	b := open(t, "simd")
	e, s := step(t, b)
	x, w := buffer(t, b, s[0], 1), buffer(t, b, s[1], 2)
	run := func() {
		out, err := e.Execute([]compute.Buffer{x, w}, []bool{false, true}, 0)
		if err != nil {
			t.Fatal(err)
		}
		w = out[0]
		_ = out[1].Finalize()
	}
	run()
	const perOutput = 3 // a Buffer, the header of its elements, and the result list's share
	if n := testing.AllocsPerRun(200, run); n > 2*perOutput+6 {
		t.Errorf("%v allocations a step", n)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	steps := 10000
	if testing.Short() {
		steps = 500
	}
	before := heap()
	for range steps {
		run()
	}
	if after := heap(); after > before+64<<10 {
		t.Errorf("%d bytes became %d after %d steps", before, after, steps)
	}
	runtime.KeepAlive(e)
	runtime.KeepAlive(w)
}

// TestConcurrent runs one executable from several goroutines.
func TestConcurrent(t *testing.T) {
	b := open(t, "simd")
	e, s := step(t, b)
	x, w := buffer(t, b, s[0], 1), buffer(t, b, s[1], 2)
	first, err := e.Execute([]compute.Buffer{x, w}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := first[0].Data()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				out, err := e.Execute([]compute.Buffer{x, w}, nil, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if got, _ := out[0].Data(); !reflect.DeepEqual(got, want) {
					t.Error("a concurrent run gave another result")
					return
				}
				_ = out[0].Finalize()
				_ = out[1].Finalize()
			}
		})
	}
	wg.Wait()
}

// TestErrors checks that mistakes are errors that name the operation.
func TestErrors(t *testing.T) {
	b := open(t, "simd")
	f := b.Builder("errors").Main()
	p := func(t dtypes.DType, dims ...int) compute.Value {
		v, err := f.Parameter("p", shapes.Make(t, dims...), nil)
		if err != nil {
			panic(err)
		}
		return v
	}
	x, y, i := p(dtypes.Float32, 2, 3), p(dtypes.Float32, 4, 5), p(dtypes.Int32, 2, 3)
	for name, build := range map[string]func() (compute.Value, error){
		"Add":         func() (compute.Value, error) { return f.Add(x, y) },
		"Sub":         func() (compute.Value, error) { return f.Sub(x, i) },
		"Reshape":     func() (compute.Value, error) { return f.Reshape(x, 7) },
		"Transpose":   func() (compute.Value, error) { return f.Transpose(x, 0, 0) },
		"Slice":       func() (compute.Value, error) { return f.Slice(x, []int{0, 0}, []int{3, 3}, nil) },
		"Concatenate": func() (compute.Value, error) { return f.Concatenate(0, x, y) },
		"dimension": func() (compute.Value, error) {
			return f.DotGeneral(x, []int{1}, nil, y, []int{0}, nil, compute.DotGeneralConfig{})
		},
		"ReduceSum":    func() (compute.Value, error) { return f.ReduceSum(x, 5) },
		"ReduceMax":    func() (compute.Value, error) { return f.ReduceMax(x, 1, 1) },
		"Iota":         func() (compute.Value, error) { return f.Iota(shapes.Make(dtypes.Int32, 3), 1) },
		"DynamicSlice": func() (compute.Value, error) { return f.DynamicSlice(x, []compute.Value{i}, []int{1, 1}) },
		"Where":        func() (compute.Value, error) { return f.Where(x, x, x) },
		"FFT":          func() (compute.Value, error) { return f.FFT(x, compute.FFTForward, []int{3}) },
		"BroadcastInDim": func() (compute.Value, error) {
			return f.BroadcastInDim(x, shapes.Make(dtypes.Int32, 2, 3), []int{0, 1})
		},
		"value":    func() (compute.Value, error) { return f.Neg("nonsense") },
		"Reverse":  func() (compute.Value, error) { return f.Reverse(x, 1, 1) },
		"Constant": func() (compute.Value, error) { return f.Constant([]int32{}, -1, 0) },
		"Pad": func() (compute.Value, error) {
			return f.Pad(x, x, compute.PadAxis{Start: -3})
		},
		"accumulator": func() (compute.Value, error) {
			return f.DotGeneral(x, []int{1}, nil, x, []int{1}, nil, compute.DotGeneralConfig{AccumulatorDType: dtypes.Bool})
		},
	} {
		if _, err := build(); err == nil {
			t.Errorf("%s: no error", name)
		} else if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(name)) {
			t.Errorf("%s: the error does not say so: %v", name, err)
		}
	}
	if _, err := f.FFT(x, compute.FFTForward, []int{3}); !compute.IsNotImplemented(err) {
		t.Errorf("FFT: %v does not wrap ErrNotImplemented", err)
	}
	e, s := step(t, b)
	short := buffer(t, b, shapes.Make(dtypes.Float32, 3), 1)
	x1, w1 := buffer(t, b, s[0], 1), buffer(t, b, s[1], 1)
	_ = w1.Finalize()
	for what, in := range map[string][]compute.Buffer{"count": {x1}, "shape": {x1, short}, "finalised": {x1, w1}} {
		if _, err := e.Execute(in, nil, 0); err == nil {
			t.Errorf("execute with wrong %s: no error", what)
		}
	}
	if _, err := testutil.Exec1(b, []any{[]int32{1}, []int32{0}}, func(f compute.Function, p []compute.Value) (compute.Value, error) {
		return f.Div(p[0], p[1])
	}); err == nil {
		t.Error("integer division by zero: no error")
	}
}

// TestDynamicSlices checks the operations that the go backend does not have, by hand.
func TestDynamicSlices(t *testing.T) {
	b := open(t, "simd")
	x := [][]int32{{1, 2, 3}, {4, 5, 6}}
	for _, c := range []struct{ i, j int32 }{{0, 0}, {1, 1}, {-3, 9}} {
		cut, err := testutil.Exec1(b, []any{x, c.i, c.j}, func(f compute.Function, p []compute.Value) (compute.Value, error) {
			return f.DynamicSlice(p[0], p[1:], []int{1, 2})
		})
		if err != nil {
			t.Fatal(err)
		}
		i, j := min(max(c.i, 0), 1), min(max(c.j, 0), 1)
		if want := [][]int32{{x[i][j], x[i][j+1]}}; !reflect.DeepEqual(cut, want) {
			t.Errorf("slice at %v: %v, want %v", c, cut, want)
		}
		put, err := testutil.Exec1(b, []any{x, [][]int32{{8, 9}}, c.i, c.j}, func(f compute.Function, p []compute.Value) (compute.Value, error) {
			return f.DynamicUpdateSlice(p[0], p[1], p[2:])
		})
		if err != nil {
			t.Fatal(err)
		}
		want := [][]int32{{1, 2, 3}, {4, 5, 6}}
		want[i][j], want[i][j+1] = 8, 9
		if !reflect.DeepEqual(put, want) {
			t.Errorf("update at %v: %v, want %v", c, put, want)
		}
	}
}

// parameter adds a parameter to a function.
func parameter(t testing.TB, f compute.Function, dtype dtypes.DType, dims ...int) compute.Value {
	t.Helper()
	v, err := f.Parameter("p", shapes.Make(dtype, dims...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDonatedBitcast checks that an output in the memory of a donated input of another type has its own type.
func TestDonatedBitcast(t *testing.T) {
	b := open(t, "simd")
	builder := b.Builder("bitcast")
	f := builder.Main()
	v, err := f.Bitcast(parameter(t, f, dtypes.Int32, 2), dtypes.Uint32)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Return([]compute.Value{v}, nil); err != nil {
		t.Fatal(err)
	}
	e, err := builder.Compile()
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.BufferFromFlatData(0, []int32{-1, 2}, shapes.Make(dtypes.Int32, 2))
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Execute([]compute.Buffer{x}, []bool{true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if flat, _ := out[0].Data(); !reflect.DeepEqual(flat, []uint32{1<<32 - 1, 2}) {
		t.Errorf("%T %v", flat, flat)
	}
}
