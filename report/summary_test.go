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
		{nil, Summary{nan, nan, nan}},
		{[]float64{3}, Summary{3, nan, 3}},
		// squares of the deviations -3, -1, 0, 4: 26, over n-1 = 3
		{[]float64{5, 2, 9, 4}, Summary{5, math.Sqrt(26.0 / 3), 4.5}},
		{[]float64{1, nan, 2}, Summary{nan, nan, nan}},
	} {
		if diff := cmp.Diff(c.want, Summarize(c.sample), approx); diff != "" {
			t.Errorf("%v: %s", c.sample, diff)
		}
	}
}

func TestMedian(t *testing.T) {
	sample := []float64{40, 10, 30, 20}
	if got := median(sample); got != 25 {
		t.Errorf("the median is %g, want 25", got)
	}
	if sample[0] != 40 {
		t.Error("the sample was sorted in place")
	}
	if got := median([]float64{1, math.Inf(1), math.Inf(1)}); !math.IsInf(got, 1) {
		t.Errorf("the median of 1 and two infinities is %g", got)
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
