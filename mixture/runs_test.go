package mixture

import (
	"flag"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/report"
)

var trials = flag.Int("trials", 20, "runs per method in TestStatistics; 1000 take three minutes on two cores")

// TestStatistics compares the methods with their long-run figures, which come from 4,000 to 27,000 runs of two
// independent implementations, and freezes the first runs.
//
// The bounds follow from the number of trials so that a row raises a false alarm for less than one seed in ten
// thousand: the successes have exact binomial bounds at half that rate, which leaves room for the errors of the
// long-run figures. With 20 trials they tell good methods from mean-field EM only; telling 0.92 from 0.76 takes 300,
// and meanwhile TestClipRecoversLostMean tells the clip from none.
func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		name   string
		method Method
		rate   float64    // of success in the long run
		first  [3]float64 // log-likelihoods of the first runs
	}{
		{"exact EM", ExactEM{}, 0.956, [...]float64{-2.820512142230, -2.821853941849, -2.823394896215}},
		{"mean-field EM", MeanField{}, 0.013, [...]float64{-4.236755789505, -4.310024341330, -6.382025066584}},
		{"perfect sampler", PerfectSampler{}, 0.919, [...]float64{-2.820525442768, -2.821874920539, -2.823406872643}},
		{"perfect sampler, no clip", PerfectSampler{Clip: math.Inf(-1)}, 0.758,
			[...]float64{-2.820525511319, -3.453484684214, -2.917656708988}},
		{"perfect sampler, closed form", PerfectSampler{ClosedForm: true}, 0.9955,
			[...]float64{-2.820585816868, -2.821923663575, -2.823422087428}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Experiment{Runs: max(*trials, len(c.first))}
			runs := e.Fit(c.method)
			s := e.Summarise(runs)
			reached, mean := s.Success.Successes, s.Published
			t.Logf("%d of %d reach the optimum, published log-likelihood %.3f ± %.3f", reached, len(runs), mean, s.Std)

			if lo, hi := binomialBounds(len(runs), c.rate, falseAlarm/2); reached < lo || reached > hi {
				t.Errorf("%d successes, want %d to %d", reached, lo, hi)
			}
			for k, want := range c.first {
				if got := runs[k].LogLikelihood; math.Abs(got-want) > 1e-9 {
					t.Errorf("run %d: log-likelihood %.12f, frozen at %.12f", k, got, want)
				}
			}
			if c.method == (MeanField{}) {
				// A run of mean-field EM is at -7.32 ± 1.18. Chernoff's bound on its distribution over 3,000 runs
				// leaves 8e-5 beyond 4.5 deviations of a mean of 20 or more.
				if d := 4.5 * 1.18 / math.Sqrt(float64(len(runs))); math.Abs(mean+7.32) > d {
					t.Errorf("published log-likelihood %.3f, want -7.32 ± %.3f", mean, d)
				}
			}
		})
	}
}

// binomialBounds returns the widest range of successes of n trials whose two tails hold more than alpha/2 each when
// their edge is counted in: less than alpha lies outside.
func binomialBounds(n int, rate, alpha float64) (lo, hi int) {
	b := distuv.Binomial{N: float64(n), P: rate}
	for lo = 0; b.CDF(float64(lo)) <= alpha/2; lo++ {
	}
	for hi = n; hi > 0 && 1-b.CDF(float64(hi-1)) <= alpha/2; hi-- {
	}
	return lo, hi
}

func TestBinomialBounds(t *testing.T) {
	for _, n := range []int{1, 30, 200} {
		for _, rate := range []float64{0.013, 0.5, 0.956} {
			lo, hi := binomialBounds(n, rate, 1e-3)
			var outside float64
			for k := range n + 1 {
				if k < lo || k > hi {
					outside += distuv.Binomial{N: float64(n), P: rate}.Prob(float64(k))
				}
			}
			if outside > 1e-3 || lo > hi {
				t.Errorf("n = %d, rate %v: %v outside [%d, %d]", n, rate, outside, lo, hi)
			}
		}
	}
}

// Runs depend neither on how they are scheduled nor on how many there are.
func TestScheduling(t *testing.T) {
	m := PerfectSampler{Iterations: 3}
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	one := Experiment{Points: 100, Runs: 9, Seed: 4}.Fit(m)
	runtime.GOMAXPROCS(4)
	four := Experiment{Points: 100, Runs: 17, Seed: 4}.Fit(m)
	if d := cmp.Diff(one, four[:9]); d != "" {
		t.Errorf("runs (-one thread +four threads):\n%s", d)
	}
	if cmp.Equal(one[0], one[1]) {
		t.Error("two runs are the same")
	}
	if n := len(Experiment{Points: 10}.Fit(m)); n != DefaultRuns {
		t.Errorf("%d runs by default", n)
	}
}

func TestSummarise(t *testing.T) {
	runs := []Run{{Fit: Fit{LogLikelihood: 1}, Success: true}, {Fit: Fit{LogLikelihood: 3}}}
	want := Summary{
		Summary: report.Summary{Mean: 2, Std: math.Sqrt2, Median: 2}, Published: 2 + Problem{}.PublishedOffset(),
		Success: report.Rate{Successes: 1, Trials: 2}, Runs: []float64{1, 3},
	}
	if d := cmp.Diff(want, (Experiment{}).Summarise(runs)); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
}
