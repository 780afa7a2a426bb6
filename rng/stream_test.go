package rng_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// alpha is the false-alarm rate of one check; no test makes more than twenty.
const alpha = 5e-6

var backend = sync.OnceValue(func() compute.Backend {
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		panic(err)
	}
	return b
})

// draw runs a graph on one key and returns its outputs as numbers.
func draw(t testing.TB, key *tensors.Tensor, f func(r *rng.Stream) []*Node) [][]float64 {
	t.Helper()
	out, err := CallOnceN(backend(), func(in []*Node) []*Node {
		nodes := f(rng.In(in[0]))
		for i := range nodes {
			nodes[i] = ConvertDType(nodes[i], dtypes.Float64)
		}
		return nodes
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	res := make([][]float64, len(out))
	for i := range out {
		res[i] = tensors.MustCopyFlatData[float64](out[i])
	}
	return res
}

// chi2 returns the probability of counts at least as far from what the distribution p expects as these.
func chi2(counts, p []float64) float64 {
	n, x := 0.0, 0.0
	for _, c := range counts {
		n += c
	}
	cells := 0.0
	for i, c := range counts {
		if p[i] == 0 {
			if c > 0 {
				return 0
			}
			continue
		}
		x += (c - n*p[i]) * (c - n*p[i]) / (n * p[i])
		cells++
	}
	if cells == 1 {
		return 1
	}
	return distuv.ChiSquared{K: cells - 1}.Survival(x)
}

func count(x []float64, k int) []float64 {
	c := make([]float64, k)
	for _, v := range x {
		c[int(v)]++
	}
	return c
}

var distributions = map[string][]float64{
	"even":                 {0.25, 0.25, 0.25, 0.25},
	"uneven":               {0.6, 1e-4, 0.3, 0.1 - 1e-4},
	"rare against certain": {1e-4, 1 - 1e-4},
	"with zeros":           {0, 0.2, 0, 0.8, 0},
}

func TestCategorical(t *testing.T) {
	seed := testkit.Seed(t)
	const n = 200_000
	for name, p := range distributions {
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
			t.Run(name+" "+dtype.String(), func(t *testing.T) {
				got := draw(t, rng.Key(seed, name), func(r *rng.Stream) []*Node {
					g := r.Uniform(dtype).Graph()
					// Unnormalised: three times the probabilities.
					table := BroadcastToDims(InsertAxes(ConstAsDType(g, dtype, scaled(p, 3)), 0), n, len(p))
					return []*Node{r.Categorical(table)}
				})[0]
				counts := count(got, len(p))
				if q := chi2(counts, p); q < alpha {
					t.Errorf("counts %v of %v: p-value %g", counts, p, q)
				}
				// The check can fail: against probabilities that are a little different, it does.
				wrong := slices.Clone(p)
				i, j := slices.Index(p, slices.Max(p)), len(p)/2-1
				wrong[i], wrong[j] = p[i]-0.01, p[j]+0.01
				if q := chi2(counts, wrong); q > alpha {
					t.Errorf("counts %v pass for %v, too: p-value %g", counts, wrong, q)
				}
			})
		}
	}
}

func scaled(p []float64, by float64) []float64 {
	out := make([]float64, len(p))
	for i := range p {
		out[i] = by * p[i]
	}
	return out
}

// TestCategoricalNever draws a million times from rows with one possible outcome each, the rest being 0 or so small that
// nobody lives to see it.
func TestCategoricalNever(t *testing.T) {
	seed := testkit.Seed(t)
	const n, k = 250_000, 4
	for _, small := range []float64{0, 1e-30} {
		got := draw(t, rng.Key(seed, "never"), func(r *rng.Stream) []*Node {
			g := r.Uniform(dtypes.Float32).Graph()
			table := make([][]float64, k)
			for i := range table {
				table[i] = slices.Repeat([]float64{small}, k)
				table[i][i] = 1e-3
			}
			p := BroadcastToDims(InsertAxes(ConstAsDType(g, dtypes.Float32, table), 0), n, k, k)
			return []*Node{r.Categorical(p)} // [N,K]
		})[0]
		for i, v := range got {
			if int(v) != i%k {
				t.Fatalf("drew %g in a row where only %d is possible", v, i%k)
			}
		}
	}
}

func TestUniform(t *testing.T) {
	seed := testkit.Seed(t)
	const n, cells = 100_000, 50
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
		u := draw(t, rng.Key(seed, "uniform"), func(r *rng.Stream) []*Node { return []*Node{r.Uniform(dtype, n)} })[0]
		counts := make([]float64, cells)
		for _, v := range u {
			if v < 0 || v >= 1 {
				t.Fatalf("%s: %g is not in [0, 1)", dtype, v)
			}
			counts[int(v*cells)]++
		}
		if q := chi2(counts, even(cells)); q < alpha {
			t.Errorf("%s: p-value %g", dtype, q)
		}
	}
}

func even(k int) []float64 { return slices.Repeat([]float64{1 / float64(k)}, k) }

func TestNormal(t *testing.T) {
	seed := testkit.Seed(t)
	const n, cells = 100_000, 50
	x := draw(t, rng.Key(seed, "normal"), func(r *rng.Stream) []*Node { return []*Node{r.Normal(dtypes.Float32, n)} })[0]
	counts := make([]float64, cells)
	for _, v := range x {
		counts[min(cells-1, int(distuv.UnitNormal.CDF(v)*cells))]++
	}
	if q := chi2(counts, even(cells)); q < alpha {
		t.Errorf("p-value %g", q)
	}
}

func TestBernoulli(t *testing.T) {
	seed := testkit.Seed(t)
	const n = 100_000
	for _, p := range []float64{0, 1e-3, 0.3, 1} {
		x := draw(t, rng.Key(seed, "bernoulli"), func(r *rng.Stream) []*Node {
			g := r.Uniform(dtypes.Float32).Graph()
			return []*Node{r.Bernoulli(BroadcastToDims(Scalar(g, dtypes.Float32, p), n))}
		})[0]
		if q := chi2(count(x, 2), []float64{1 - p, p}); q < alpha {
			t.Errorf("p = %g: p-value %g", p, q)
		}
	}
}

// TestIndependent draws from a stream before and after a split and from what was split off, and checks all pairs.
func TestIndependent(t *testing.T) {
	seed := testkit.Seed(t)
	const n, k = 60_000, 4
	x := draw(t, rng.Key(seed, "split"), func(r *rng.Stream) []*Node {
		u := func(r *rng.Stream) *Node { return Floor(MulScalar(r.Uniform(dtypes.Float32, n), k)) }
		a := u(r)
		s := r.Split()
		b, c := u(r), u(s)
		return []*Node{a, b, c, u(s), u(s.Split())}
	})
	for i := range x {
		for j := range i {
			if q := chi2(pairs(x[i], x[j], k), even(k*k)); q < alpha {
				t.Errorf("draws %d and %d: p-value %g", i, j, q)
			}
		}
		// Neighbours within a draw, too.
		if q := chi2(pairs(x[i][:n-1], x[i][1:], k), even(k*k)); q < alpha {
			t.Errorf("draw %d with itself, shifted: p-value %g", i, q)
		}
	}
	if q := chi2(pairs(x[0], x[0], k), even(k*k)); q > alpha {
		t.Errorf("a draw passes as independent of itself: p-value %g", q)
	}
}

func pairs(a, b []float64, k int) []float64 {
	joint := make([]float64, len(a))
	for i := range a {
		joint[i] = a[i]*float64(k) + b[i]
	}
	return count(joint, k*k)
}

// TestKeys checks that a key decides all draws, and another key others.
func TestKeys(t *testing.T) {
	f := func(key *tensors.Tensor) []float64 {
		return draw(t, key, func(r *rng.Stream) []*Node { return []*Node{r.Uniform(dtypes.Float64, 8)} })[0]
	}
	a, b, c := f(rng.Key(1, "a", 0)), f(rng.Key(1, "a", 0)), f(rng.Key(1, "a", 1))
	if !slices.Equal(a, b) {
		t.Errorf("one key, two draws: %v, %v", a, b)
	}
	for i := range a {
		if a[i] == c[i] {
			t.Errorf("two keys, one draw: %v, %v", a, c)
		}
	}
}
