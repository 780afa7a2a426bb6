package catalog_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/run/catalog"
)

func TestSampledKeepsExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n := 1 + r.IntN(5000)
		var s catalog.Series
		step := 0.0
		for range n {
			step += float64(r.IntN(3))
			y := r.NormFloat64()
			if r.IntN(50) == 0 {
				y = math.NaN()
			}
			s.X, s.Y = append(s.X, step), append(s.Y, y)
		}
		most := 8 + r.IntN(400)
		out := s.Sampled(most)
		if len(out.X) > most || len(out.X) != len(out.Y) {
			t.Fatalf("%d of %d points, at most %d", len(out.X), n, most)
		}
		real := func(y []float64) []float64 { return slices.DeleteFunc(slices.Clone(y), math.IsNaN) }
		if all, some := real(s.Y), real(out.Y); len(all) > 0 && (slices.Min(all) != slices.Min(some) || slices.Max(all) != slices.Max(some)) {
			t.Fatalf("%d points of %d: extremes are lost", len(out.X), n)
		}
		if out.X[0] != s.X[0] || out.X[len(out.X)-1] != s.X[n-1] {
			t.Fatal("the ends are lost")
		}
		i := 0
		for k := range out.X { // they are points of the series, in order
			for i < n && !(s.X[i] == out.X[k] && same(s.Y[i:i+1], out.Y[k:k+1])) {
				i++
			}
			if i == n {
				t.Fatalf("point %d is none of the series", k)
			}
			i++
		}
	}
}

// TestBandOf compares with averages point by point, for series with the same steps; every second step is asked for, so
// that interpolation is seen where one series has other steps.
func TestBandOf(t *testing.T) {
	x := []float64{0, 10, 20, 30, 40}
	a := catalog.Series{X: x, Y: []float64{1, 2, 3, 4, 5}}
	b := catalog.Series{X: x, Y: []float64{3, 2, math.NaN(), 0, 9}}
	c := catalog.Series{X: []float64{0, 40}, Y: []float64{2, 10}} // 2, 4, 6, 8, 10
	got := catalog.BandOf([]catalog.Series{a, b, c, {}}, 5)
	values := [][]float64{{1, 3, 2}, {2, 2, 4}, {3, 6}, {4, 0, 8}, {5, 9, 10}}
	for i, v := range values {
		mean := 0.0
		for _, y := range v {
			mean += y / float64(len(v))
		}
		square := 0.0
		for _, y := range v {
			square += (y - mean) * (y - mean)
		}
		std := math.Sqrt(square / float64(len(v)-1))
		if got.X[i] != x[i] || math.Abs(got.Mean[i]-mean) > 1e-12 || math.Abs(got.Std[i]-std) > 1e-12 || got.N[i] != len(v) {
			t.Errorf("at %g: %g ± %g of %d, want %g ± %g of %d", x[i], got.Mean[i], got.Std[i], got.N[i], mean, std, len(v))
		}
	}
	if b := catalog.BandOf(nil, 5); b.X != nil {
		t.Errorf("nothing has a band: %v", b)
	}
	if b := catalog.BandOf([]catalog.Series{{X: []float64{7}, Y: []float64{1}}}, 5); len(b.X) != 1 || !math.IsNaN(b.Std[0]) {
		t.Errorf("one point: %v", b)
	}
}

func TestSmooth(t *testing.T) {
	s := catalog.Series{X: []float64{1, 2, 3, 4}, Y: []float64{math.NaN(), 4, 8, math.Inf(1)}}
	// Forward the weights are 1/2 and 1/4: 4, (4/4 + 8/2) / (3/4) = 20/3; backward 8, (8/4 + 4/2) / (3/4) = 16/3.
	got := s.Smooth(2).Y
	if !math.IsNaN(got[0]) || math.Abs(got[1]-(4+16./3)/2) > 1e-12 || math.Abs(got[2]-(8+20./3)/2) > 1e-12 || !math.IsInf(got[3], 1) {
		t.Errorf("%v", got)
	}
}

func TestGroups(t *testing.T) {
	one := func(task, seed, lr string, value float64) catalog.Run {
		return catalog.Run{Task: task, Status: catalog.Finished, Config: map[string]string{"seed": seed, "lr": lr, "only." + task: "1", "k": "4"},
			Results: map[string]float64{"f1": value}}
	}
	runs := []catalog.Run{one("a", "0", "0.1", 1), one("a", "1", "0.1", 2), one("a", "0", "0.2", 5), {Status: catalog.Broken}}
	keys := catalog.Differ(runs)
	if !slices.Equal(keys, []string{"lr"}) {
		t.Fatalf("keys %q", keys)
	}
	groups := catalog.GroupBy(runs, keys)
	if len(groups) != 2 || groups[0].Label(keys) != "lr=0.1" || len(groups[0].Runs) != 2 {
		t.Fatalf("%+v", groups)
	}
	if s := groups[0].Stat("f1"); s.Mean != 1.5 || math.Abs(s.Std-math.Sqrt(0.5)) > 1e-15 || s.N != 2 {
		t.Errorf("%+v", s)
	}
	if s := groups[1].Stat("f1"); s.Mean != 5 || !math.IsNaN(s.Std) || s.N != 1 {
		t.Errorf("%+v", s)
	}
	if s := groups[1].Stat("other"); s.N != 0 || !math.IsNaN(s.Mean) {
		t.Errorf("%+v", s)
	}
	runs = append(runs, one("b", "0", "0.1", 7)) // another task, whose other keys are no difference
	if keys := catalog.Differ(runs); !slices.Equal(keys, []string{"task", "lr"}) {
		t.Errorf("keys %q", keys)
	}
	runs[1].Config["extra"] = "x"
	if keys := catalog.Differ(runs); !slices.Equal(keys, []string{"task", "extra", "lr"}) {
		t.Errorf("keys %q", keys)
	}
}
