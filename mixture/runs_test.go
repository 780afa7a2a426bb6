package mixture

import (
	"flag"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"
)

var trials = flag.Int("trials", 30, "runs per method in TestStatistics; 1000 of each take three minutes on two cores")

// TestStatistics compares the methods with their long-run figures. Those come from 4,600 to 24,000 runs of two
// independent implementations that agree within their errors, so that they may count as exact here.
//
// The bounds follow from the number of trials: the exact binomial ones for the successes and, for the mean, a normal
// bound with the long-run deviation of one run. Each row raises a false alarm less than once in ten thousand seeds.
// With the default 30 trials 5 of them are enough to tell exact from mean-field EM, and TestClipRecoversLostMean
// tells the clip from none; telling rates of 0.92 and 0.76 apart by their counts takes 300.
func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		name      string
		method    Method
		rate      float64 // of success
		mean, std float64 // of the log-likelihood as published
		first     [3]float64
	}{
		{"exact EM", ExactEM{}, 0.956, -5.74, 0.6, [3]float64{}},
		{"mean-field EM", MeanField{}, 0.013, -7.323, 1.176, [3]float64{}},
		{"perfect sampler", PerfectSampler{}, 0.919, -5.762, 0.554, [3]float64{}},
		{"without clip", PerfectSampler{Clip: math.Inf(-1)}, 0.758, -6.11, 1.02, [3]float64{}},
		{"closed form", PerfectSampler{ClosedForm: true}, 0.998, -5.63, 0.15, [3]float64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Experiment{Runs: *trials}
			runs := e.Fit(c.method)
			s := Summarise(runs)
			mean := s.Mean + e.Problem.PublishedOffset()
			t.Logf("%d of %d reach the optimum, published log-likelihood %.3f ± %.3f", s.Successes, s.Runs, mean, s.Std)

			if lo, hi := binomialBounds(s.Runs, c.rate, falseAlarm/2); s.Successes < lo || s.Successes > hi {
				t.Errorf("%d successes, want %d to %d", s.Successes, lo, hi)
			}
			if d := 5 * c.std / math.Sqrt(float64(s.Runs)); math.Abs(mean-c.mean) > d {
				t.Errorf("published log-likelihood %.3f, want %.3f ± %.3f", mean, c.mean, d)
			}
			for k, want := range c.first {
				if got := runs[k].LogLikelihood; math.Abs(got-want) > 1e-9 {
					t.Errorf("run %d: log-likelihood %.12f, frozen at %.12f", k, got, want)
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
	m := PerfectSampler{Iterations: 3, Trace: true}
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
	want := Summary{Runs: 2, Successes: 1, Mean: 2, Std: math.Sqrt2}
	if d := cmp.Diff(want, Summarise(runs)); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
}
