package engine_test

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// numbers returns n reproducible floats.
func numbers(n int, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 3))
	out := make([]float64, n)
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}

func tensor(t dtypes.DType, seed uint64, scale float64, dims ...int) *tensors.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	wide := numbers(n, seed)
	narrow := make([]float32, n)
	for i := range wide {
		wide[i] *= scale
		narrow[i] = float32(wide[i])
	}
	if t == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(wide, dims...)
	}
	return tensors.FromFlatDataAndDimensions(narrow, dims...)
}

// net is a small classifier with a layer of each kind that matters: dense, normalisation, attention, log-softmax.
func net(s *model.Scope, x *Node, t dtypes.DType) *Node {
	g := x.Graph()
	param := func(name string, seed uint64, scale float64, dims ...int) *Node {
		if v := s.GetVariable(name); v != nil {
			return v.NodeValue(g)
		}
		return s.VariableWithValue(name, tensor(t, seed, scale, dims...)).NodeValue(g)
	}
	d := x.Shape().Dim(-1)
	dense := func(name string, x *Node, seed uint64, width int) *Node {
		in := x.Shape().Dim(-1)
		w := param(name, seed, 1/math.Sqrt(float64(in)), in, width)
		b := param(name+"b", seed+1, 0.1, width)
		return Add(DotGeneral(x, []int{-1}, nil, w, []int{0}, nil), ExpandLeftToRank(b, x.Rank()))
	}
	norm := func(x *Node) *Node {
		x = Sub(x, ReduceAndKeep(x, ReduceMean, -1))
		return Div(x, Sqrt(AddScalar(ReduceAndKeep(Square(x), ReduceMean, -1), 1e-5)))
	}
	q, k, v := dense("q", x, 1, d), dense("k", x, 3, d), dense("v", x, 5, d) // [B,T,D]
	w := Softmax(MulScalar(DotGeneral(q, []int{2}, []int{0}, k, []int{2}, []int{0}), 0.3), -1)
	x = norm(Add(x, DotGeneral(w, []int{2}, []int{0}, v, []int{1}, []int{0})))
	x = norm(Add(x, dense("down", Tanh(dense("up", x, 7, 2*d)), 9, d)))
	return LogSoftmax(dense("out", ReduceMean(x, 1), 11, 5), -1)
}

// trainer returns a step of gradient descent with momentum, which returns the loss, and what holds the variables. With
// noise, random numbers are added to the inputs.
func trainer(t *testing.T, b compute.Backend, dtype dtypes.DType, batch int, noise bool) (step func() float64, store *model.Store) {
	store = model.NewStore()
	x := tensor(dtype, 20, 1, batch, 6, 8)
	labels := make([]int32, batch)
	for i := range labels {
		labels[i] = int32(i % 5)
	}
	y := tensors.FromFlatDataAndDimensions(labels, batch)
	exec, err := model.NewExec(b, store, func(s *model.Scope, in []*Node) *Node {
		g := in[0].Graph()
		x := in[0]
		if noise {
			state := s.GetVariable("rng")
			if state == nil {
				state = s.VariableWithValue("rng", tensors.FromFlatDataAndDimensions([]uint64{1, 2, 3}, 3)).SetTrainable(false)
			}
			next, r := RandomNormal(state.NodeValue(g), x.Shape())
			state.SetNodeValue(next)
			x = Add(x, MulScalar(r, 0.1))
		}
		logp := net(s, x, dtype)
		loss := Neg(ReduceAllMean(ReduceSum(Mul(OneHot(in[1], 5, dtype), logp), -1)))
		var list []*model.Variable
		var values []*Node
		for v := range store.IterVariables() {
			if v.InUseByGraph(g) && v.Trainable {
				list, values = append(list, v), append(values, v.NodeValue(g))
			}
		}
		for i, d := range Gradient(loss, values...) {
			m := "momentum of " + list[i].Name()
			mv := s.GetVariable(m)
			if mv == nil {
				mv = s.VariableWithValue(m, tensor(dtype, 0, 0, list[i].Shape().Dimensions...)).SetTrainable(false)
			}
			next := Add(MulScalar(mv.NodeValue(g), 0.9), d)
			mv.SetNodeValue(next)
			list[i].SetNodeValue(Sub(values[i], MulScalar(next, 0.05)))
		}
		return ConvertDType(loss, dtypes.Float64)
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() float64 {
		out, err := exec.Exec(x, y)
		if err != nil {
			t.Fatal(err)
		}
		defer out[0].MustFinalizeAll()
		return tensors.ToScalar[float64](out[0])
	}, store
}

// trained runs some steps and returns losses and final variables.
func trained(t *testing.T, b compute.Backend, dtype dtypes.DType, batch, steps int, noise bool) (losses []float64, vars map[string][]float64) {
	step, store := trainer(t, b, dtype, batch, noise)
	for range steps {
		losses = append(losses, step())
	}
	vars = map[string][]float64{}
	for v := range store.IterVariables() {
		var flat []float64
		if v.DType() == dtypes.Uint64 {
			flat = []float64{float64(tensors.MustCopyFlatData[uint64](v.MustValue())[1])}
		} else if dtype == dtypes.Float64 {
			flat = tensors.MustCopyFlatData[float64](v.MustValue())
		} else {
			for _, x := range tensors.MustCopyFlatData[float32](v.MustValue()) {
				flat = append(flat, float64(x))
			}
		}
		vars[v.Path()] = flat
	}
	return losses, vars
}

// TestTraining trains through GoMLX on both backends.
func TestTraining(t *testing.T) {
	for _, c := range []struct {
		t            dtypes.DType
		tol          float64
		batch, steps int
	}{{dtypes.Float32, 2e-5, 20, 10}, {dtypes.Float64, 1e-12, 20, 10}, {dtypes.Float64, 1e-12, 1500, 2}} {
		want, wantVars := trained(t, open(t, oracle), c.t, c.batch, c.steps, false)
		got, gotVars := trained(t, open(t, "simd"), c.t, c.batch, c.steps, false)
		for i := range want {
			if !(math.Abs(want[i]-got[i]) <= c.tol) {
				t.Errorf("%s: loss %d is %v, want %v", c.t, i, got[i], want[i])
			}
		}
		if !(want[c.steps-1] < want[0]) {
			t.Errorf("%s: no progress: %v", c.t, want)
		}
		for path, w := range wantVars {
			for i := range w {
				if !(math.Abs(w[i]-gotVars[path][i]) <= c.tol*10) {
					t.Errorf("%s: %s[%d] = %v, want %v", c.t, path, i, gotVars[path][i], w[i])
					break
				}
			}
		}
	}
}

// TestThreads checks that the number of threads changes no bit, random ones included.
func TestThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, oneVars := trained(t, open(t, "simd"), dtypes.Float32, 3000, 3, true)
	for _, n := range []int{2, 3} {
		runtime.GOMAXPROCS(n)
		some, someVars := trained(t, open(t, "simd"), dtypes.Float32, 3000, 3, true)
		if !slices.Equal(one, some) {
			t.Errorf("losses with 1 thread %v, with %d %v", one, n, some)
		}
		for path, v := range oneVars {
			if !slices.Equal(v, someVars[path]) {
				t.Errorf("%s differs between 1 thread and %d", path, n)
			}
		}
	}
}

// TestMemory checks that training needs no more memory as it goes on, over the second half of MEMORY_STEPS steps.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	steps := 8000
	if k, err := strconv.Atoi(os.Getenv("MEMORY_STEPS")); err == nil {
		steps = k
	}
	t.Logf("%d steps (MEMORY_STEPS)", steps)
	measure := func() (live uint64, goroutines int) {
		var m runtime.MemStats
		for range 8 { // what has finalisers takes several turns
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	step, _ := trainer(t, open(t, "simd"), dtypes.Float32, 20, true)
	for range 200 + steps/2 {
		step()
	}
	before, running := measure()
	for range steps / 2 {
		step()
	}
	after, now := measure()
	runtime.KeepAlive(step)
	t.Logf("%d bytes are live after the first half, %d after all", before, after)
	// A step that kept as little as one number would be far above this.
	if after > before+16<<10 || now > running {
		t.Errorf("%d bytes and %d goroutines became %d and %d", before, running, after, now)
	}
}
