package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Summary describes a sample. A sample that is empty or holds a NaN has NaN for every statistic, so that a lost run is
// never averaged away.
type Summary struct {
	N                          int
	Mean                       float64
	Std                        float64 // with divisor N-1; NaN for a sample of one
	Min, Q25, Median, Q75, Max float64 // see Quantile
}

// Summarize returns the summary of a sample, which it leaves as it is.
func Summarize(sample []float64) Summary {
	s := Summary{N: len(sample)}
	s.Mean, s.Std = stat.MeanStdDev(sample, nil)
	sorted := slices.Sorted(slices.Values(sample))
	for _, q := range []struct {
		to *float64
		p  float64
	}{{&s.Min, 0}, {&s.Q25, 0.25}, {&s.Median, 0.5}, {&s.Q75, 0.75}, {&s.Max, 1}} {
		*q.to = Quantile(sorted, q.p)
	}
	return s
}

// Cell returns the mean and standard deviation as a table cell.
func (s Summary) Cell(decimals int) Cell { return MeanStd(s.Mean, s.Std, decimals) }

// Quantile returns the p-th quantile of a sample, for p in [0, 1], interpolated linearly between the order statistics
// around (n-1)p: definition 7 of Hyndman and Fan (1996), the default of R and NumPy. It is NaN for a sample that is
// empty or holds a NaN.
func Quantile(sample []float64, p float64) float64 {
	if len(sample) == 0 || slices.ContainsFunc(sample, math.IsNaN) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(sample))
	at := p * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	t := at - float64(i)
	if t == 0 {
		return sorted[i]
	}
	return sorted[i] + t*(sorted[i+1]-sorted[i])
}

// Usage returns how many counts are positive, and exp of the entropy of the distribution they make, the number of equally frequent
// ones that would be as diverse: 1 if all counts but one are zero, or all.
func Usage(counts []float64) (used int, perplexity float64) {
	total := 0.0
	for _, c := range counts {
		total += c
	}
	entropy := 0.0
	for _, c := range counts {
		if c > 0 {
			used++
			entropy -= c / total * math.Log(c/total)
		}
	}
	return used, math.Exp(entropy)
}

// Rate is a number of successes in a number of independent trials.
type Rate struct {
	Successes int `json:"successes"`
	Trials    int `json:"trials"`
}

// Count returns the rate at which values of a sample satisfy success.
func Count(sample []float64, success func(float64) bool) Rate {
	r := Rate{Trials: len(sample)}
	for _, v := range sample {
		if success(v) {
			r.Successes++
		}
	}
	return r
}

// Value returns the fraction of successes, NaN without trials.
func (r Rate) Value() float64 { return float64(r.Successes) / float64(r.Trials) }

// Interval returns the 95 % interval of Wilson (1927) for the probability of success. Unlike the normal approximation
// it lies within [0, 1] and has a width also when all trials end alike. Without trials it is [0, 1].
func (r Rate) Interval() (lo, hi float64) {
	if r.Trials == 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // the 0.975 quantile of the standard normal
	n, p := float64(r.Trials), r.Value()
	centre := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, centre-half), min(1, centre+half)
}

// String returns the rate as "19/20".
func (r Rate) String() string { return fmt.Sprintf("%d/%d", r.Successes, r.Trials) }

// Cell returns the rate with its interval in percent, "19/20 (76–99 %)", as a table cell.
func (r Rate) Cell() Cell {
	if r.Trials == 0 {
		return Cell{}
	}
	lo, hi := r.Interval()
	return Cell{
		head: r.String(),
		tail: fmt.Sprintf(" (%.0f–%.0f %%)", 100*lo, 100*hi),
		raw: struct {
			Rate
			Low  float64 `json:"low"`
			High float64 `json:"high"`
		}{r, lo, hi},
		numeric: true,
	}
}
