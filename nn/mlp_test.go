package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

func newBackend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// param makes one variable in a store and returns its values.
func param(t *testing.T, store *model.Store, dtype dtypes.DType, scope, name string, bound float64, dims ...int) *tensors.Tensor {
	t.Helper()
	out, err := model.CallOnce(newBackend(t), store, func(_ *model.Scope, g *Graph) *Node {
		return Param(store.Scope(scope), g, dtype, name, bound, dims...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func seeded(seed uint64) *model.Store {
	store := model.NewStore()
	store.RootScope().SetParam(SeedParam, seed)
	return store
}

// The first values are frozen: a change of them changes every training.
func TestParamGolden(t *testing.T) {
	for _, c := range []struct {
		store       *model.Store
		scope, name string
		want        []float64
	}{
		{model.NewStore(), "/phi", "w", []float64{-1.2000780200924175, -1.1217604815025295, -0.8544315215101688}},
		{seeded(0), "/phi", "w", []float64{-1.2000780200924175, -1.1217604815025295, -0.8544315215101688}},
		{seeded(1), "/phi", "w", []float64{-0.2559678696321548, -1.881911520030234, -1.497480074684963}},
		{seeded(1), "/phi/0", "w", []float64{1.3989458539020303, -0.9661471118133855, 1.0382255241831735}},
		{seeded(1), "/", "w", []float64{1.99598609955676, 1.9558641501519571, -1.3205203654030724}},
	} {
		got := tensors.MustCopyFlatData[float64](param(t, c.store, dtypes.Float64, c.scope, c.name, 2, 3))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s/%s: %#v, want %v", c.scope, c.name, got, c.want)
		}
	}
}

// Values do not depend on what else exists, nor on the order of creation, and a narrower dtype rounds them.
func TestParamIsNamed(t *testing.T) {
	read := func(names ...string) map[string][]float64 {
		store, out := seeded(7), map[string][]float64{}
		for _, n := range names {
			out[n] = tensors.MustCopyFlatData[float64](param(t, store, dtypes.Float64, "/a", n, 0.5, 2, 3))
		}
		return out
	}
	one, other := read("u", "v", "w"), read("w", "u")
	for n := range other {
		if !slices.Equal(one[n], other[n]) {
			t.Errorf("%s depends on the order of creation: %v, %v", n, one[n], other[n])
		}
	}
	if slices.Equal(one["u"], one["v"]) {
		t.Error("two names share their values")
	}

	narrow := param(t, seeded(7), dtypes.Float32, "/a", "u", 0.5, 2, 3)
	for i, v := range tensors.MustCopyFlatData[float32](narrow) {
		if v != float32(one["u"][i]) {
			t.Errorf("float32 value %d is %v, want %v rounded", i, v, one["u"][i])
		}
	}
	if !slices.Equal(narrow.Shape().Dimensions, []int{2, 3}) {
		t.Errorf("shape %s", narrow.Shape())
	}
	if got := param(t, seeded(7), dtypes.Float32, "/a", "u", 0.5); got.Rank() != 0 {
		t.Errorf("without dimensions the shape is %s, want a scalar", got.Shape())
	}
}

func TestParamBounds(t *testing.T) {
	const n, bound = 20000, 0.25
	v := tensors.MustCopyFlatData[float64](param(t, seeded(3), dtypes.Float64, "/a", "w", bound, n))
	if lo, hi := slices.Min(v), slices.Max(v); lo < -bound || hi > bound || lo > -0.99*bound || hi < 0.99*bound {
		t.Errorf("values between %g and %g, want all of ±%g", lo, hi, bound)
	}
	// The mean of n uniforms has standard deviation bound/sqrt(3n); five of them is a false alarm of 6e-7 over seeds.
	var mean float64
	for _, x := range v {
		mean += x / n
	}
	if !(math.Abs(mean) <= 5*bound/math.Sqrt(3*n)) {
		t.Errorf("mean %g", mean)
	}
}

// An existing variable, trained or loaded, is used as it is.
func TestParamExists(t *testing.T) {
	store := seeded(1)
	store.VariableWithValue("/a/w", []float32{5, 6})
	got := tensors.MustCopyFlatData[float32](param(t, store, dtypes.Float32, "/a", "w", 1, 2))
	if !slices.Equal(got, []float32{5, 6}) {
		t.Errorf("got %v", got)
	}
}

// run evaluates a function of one input with the variables of a store.
func run(t *testing.T, store *model.Store, x *tensors.Tensor, f func(*model.Scope, *Node) *Node) *tensors.Tensor {
	t.Helper()
	out, err := model.CallOnce(newBackend(t), store, f, x)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// values returns a variable as float64.
func values(t *testing.T, store *model.Store, path string) []float64 {
	t.Helper()
	v := store.GetVariable(path)
	if v == nil {
		t.Fatalf("no variable %s", path)
	}
	return tensors.MustCopyFlatData[float64](v.MustValue())
}

// slowLinear is x W + b for one row.
func slowLinear(x, w, b []float64) []float64 {
	y := slices.Clone(b)
	for i := range x {
		for j := range b {
			y[j] += x[i] * w[i*len(b)+j]
		}
	}
	return y
}

func random(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= 1e-12) {
			t.Errorf("%s: number %d is %.15g, want %.15g", what, i, got[i], want[i])
		}
	}
}

func TestLinear(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, dims := range [][]int{{4, 3}, {2, 5, 3}, {1, 1}, {2, 2, 2, 3}} {
		store := seeded(9)
		size := 1
		for _, d := range dims {
			size *= d
		}
		x := random(r, size)
		out := run(t, store, tensors.FromFlatDataAndDimensions(x, dims...), func(s *model.Scope, x *Node) *Node {
			return Linear(s.At("lin"), x, 2)
		})
		in := dims[len(dims)-1]
		if want := append(slices.Clone(dims[:len(dims)-1]), 2); !slices.Equal(out.Shape().Dimensions, want) {
			t.Errorf("input %v: output %s, want %v", dims, out.Shape(), want)
		}
		w, b := values(t, store, "/lin/weights"), values(t, store, "/lin/bias")
		var want []float64
		for row := range slices.Chunk(x, in) {
			want = append(want, slowLinear(row, w, b)...)
		}
		near(t, fmt.Sprint("input ", dims), tensors.MustCopyFlatData[float64](out), want)
		bound := 1 / math.Sqrt(float64(in))
		for _, v := range append(w, b...) {
			if !(math.Abs(v) <= bound) {
				t.Errorf("initial value %g beyond %g", v, bound)
			}
		}
	}
}

func TestMLP(t *testing.T) {
	const seed = 6
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, slope := range []float64{0, 0.01, 0.5} {
		store := seeded(10)
		x := random(r, 4*3)
		out := run(t, store, tensors.FromFlatDataAndDimensions(x, 4, 3), func(s *model.Scope, x *Node) *Node {
			return MLP{Widths: []int{6, 5, 2}, Slope: slope}.Apply(s.At("net"), x)
		})
		var want []float64
		for row := range slices.Chunk(x, 3) {
			h := row
			for layer := range 3 {
				if layer > 0 {
					for i, v := range h {
						if v < 0 {
							h[i] = slope * v
						}
					}
				}
				path := fmt.Sprintf("/net/%d/", layer)
				h = slowLinear(h, values(t, store, path+"weights"), values(t, store, path+"bias"))
			}
			want = append(want, h...)
		}
		near(t, fmt.Sprint("slope ", slope), tensors.MustCopyFlatData[float64](out), want)
		if n := store.NumVariables(); n != 6 {
			t.Errorf("%d variables, want 6", n)
		}
	}
}

// One graph may apply a network many times: they share their variables.
func TestMLPShares(t *testing.T) {
	store := seeded(1)
	x := tensors.FromValue([][]float64{{1, -2}})
	out := run(t, store, x, func(s *model.Scope, x *Node) *Node {
		m := MLP{Widths: []int{3, 2}}
		return Sub(m.Apply(s.At("net"), x), m.Apply(s.At("net"), x))
	})
	near(t, "difference", tensors.MustCopyFlatData[float64](out), []float64{0, 0})
	if n := store.NumVariables(); n != 4 {
		t.Errorf("%d variables, want 4", n)
	}
}

func TestLeakyReLU(t *testing.T) {
	x := []float64{-3, -1e-3, 1e-3, 2}
	for _, slope := range []float64{0, 0.01, 0.3, 1} {
		f := func(_ *model.Scope, x *Node) *Node { return LeakyReLU(x, slope) }
		got := tensors.MustCopyFlatData[float64](run(t, model.NewStore(), tensors.FromValue(x), f))
		near(t, fmt.Sprint("slope ", slope), got, []float64{-3 * slope, -1e-3 * slope, 1e-3, 2})

		grad := run(t, model.NewStore(), tensors.FromValue(x), func(s *model.Scope, x *Node) *Node {
			return Gradient(ReduceAllSum(f(s, x)), x)[0]
		})
		const h = 1.0 / (1 << 12) // differences are exact but for rounding: the function is linear on each side
		shift := func(by float64) []float64 {
			y := slices.Clone(x)
			for i := range y {
				y[i] += by
			}
			return tensors.MustCopyFlatData[float64](run(t, model.NewStore(), tensors.FromValue(y), f))
		}
		up, down := shift(h), shift(-h)
		for i, g := range tensors.MustCopyFlatData[float64](grad) {
			if want := (up[i] - down[i]) / (2 * h); !(math.Abs(g-want) <= 1e-9) {
				t.Errorf("slope %g at %g: gradient %g, want %g", slope, x[i], g, want)
			}
		}
	}
}

func TestParamDType(t *testing.T) {
	store := model.NewStore()
	_, err := model.CallOnce(newBackend(t), store, func(_ *model.Scope, g *Graph) *Node {
		return Param(store.Scope("/a"), g, dtypes.Int32, "w", 1, 2)
	})
	if err == nil || !strings.Contains(err.Error(), "/a/w") {
		t.Errorf("an integer parameter gave %v, want an error that names it", err)
	}
}

// Normal draws from the right distribution: with 40,000 values, mean and deviation are within 0.025 of theirs (five
// deviations of the mean, seven of the deviation), and about 4.55% are beyond two deviations.
func TestNormal(t *testing.T) {
	const n, deviation = 40_000, 0.5
	out, err := model.CallOnce(newBackend(t), seeded(1), func(scope *model.Scope, g *Graph) *Node {
		return Normal(scope, g, dtypes.Float64, "n", deviation, n)
	})
	if err != nil {
		t.Fatal(err)
	}
	sum, squares, far := 0.0, 0.0, 0
	for _, v := range tensors.MustCopyFlatData[float64](out) {
		v /= deviation
		sum, squares = sum+v, squares+v*v
		if !(math.Abs(v) <= 2) {
			far++
		}
	}
	mean := sum / n
	if d := math.Sqrt(squares/n - mean*mean); !(math.Abs(mean) <= 0.025) || !(math.Abs(d-1) <= 0.025) || far < 1600 || far > 2040 {
		t.Errorf("mean %v, deviation %v of 1, %d values beyond two deviations", mean, d, far)
	}
}
