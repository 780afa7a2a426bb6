package report

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var approx = cmp.Options{cmpopts.EquateApprox(0, 1e-12), cmpopts.EquateNaNs()}

func TestSummarize(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		sample []float64
		want   Summary
	}{
		{nil, Summary{0, nan, nan, nan, nan, nan, nan, nan}},
		{[]float64{3}, Summary{1, 3, nan, 3, 3, 3, 3, 3}},
		// squares of the deviations -3, -1, 0, 4: 26, over n-1 = 3
		{[]float64{5, 2, 9, 4}, Summary{4, 5, math.Sqrt(26.0 / 3), 2, 3.5, 4.5, 6, 9}},
		{[]float64{1, nan, 2}, Summary{3, nan, nan, nan, nan, nan, nan, nan}},
	} {
		if diff := cmp.Diff(c.want, Summarize(c.sample), approx); diff != "" {
			t.Errorf("%v: %s", c.sample, diff)
		}
	}
}

func TestQuantile(t *testing.T) {
	sample := []float64{40, 10, 30, 20}
	for p, want := range map[float64]float64{0: 10, 0.1: 13, 0.25: 17.5, 0.5: 25, 0.9: 37, 1: 40} {
		if got := Quantile(sample, p); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile %g is %g, want %g", p, got, want)
		}
	}
	if sample[0] != 40 {
		t.Error("the sample was sorted in place")
	}
	if got := Quantile([]float64{1, math.Inf(1)}, 0); got != 1 {
		t.Errorf("the least of 1 and infinity is %g", got)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		counts     []float64
		used       int
		perplexity float64
	}{
		{[]float64{1, 0, 1, 2}, 3, math.Pow(2, 1.5)},
		{[]float64{5, 5, 5, 5, 5}, 5, 5},
		{[]float64{0, 9}, 1, 1},
		{[]float64{0, 0}, 0, 1},
	} {
		if used, p := Usage(c.counts); used != c.used || !(math.Abs(p-c.perplexity) <= 1e-12) {
			t.Errorf("%v: %d used, perplexity %v", c.counts, used, p)
		}
	}
}

func TestRateInterval(t *testing.T) {
	for _, c := range []struct {
		rate   Rate
		lo, hi float64 // to three digits, from the closed form by hand
	}{
		{Rate{0, 0}, 0, 1},
		{Rate{0, 10}, 0, 0.278}, // z²/(n+z²)
		{Rate{10, 10}, 0.722, 1},
		{Rate{5, 10}, 0.237, 0.763},
		{Rate{19, 20}, 0.764, 0.991},
	} {
		lo, hi := c.rate.Interval()
		if math.Abs(lo-c.lo) > 5e-4 || math.Abs(hi-c.hi) > 5e-4 {
			t.Errorf("%v: [%.4f, %.4f], want [%g, %g]", c.rate, lo, hi, c.lo, c.hi)
		}
	}
}

// The ends of Wilson's interval are the probabilities p at which the observed rate lies z standard errors away.
func TestRateIntervalInvertsTheScoreTest(t *testing.T) {
	for n := 1; n <= 30; n++ {
		for k := 1; k < n; k++ {
			r := Rate{k, n}
			lo, hi := r.Interval()
			for _, p := range []float64{lo, hi} {
				z := math.Abs(r.Value()-p) / math.Sqrt(p*(1-p)/float64(n))
				if math.Abs(z-1.959963984540054) > 1e-9 {
					t.Errorf("%v: at %g the score is %g", r, p, z)
				}
			}
		}
	}
}

func TestCount(t *testing.T) {
	got := Count([]float64{-5.6, -9, math.NaN(), -5.7}, func(v float64) bool { return v > -6 })
	if want := (Rate{2, 4}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
