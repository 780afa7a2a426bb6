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
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"` // with divisor N-1; NaN for a sample of one
	Median float64 `json:"median"`
}

// Summarize returns the summary of a sample, which it leaves as it is.
func Summarize(sample []float64) Summary {
	s := Summary{Median: median(sample)}
	s.Mean, s.Std = stat.MeanStdDev(sample, nil)
	return s
}

// Cell returns the mean and standard deviation as a table cell.
func (s Summary) Cell(decimals int) Cell { return MeanStd(s.Mean, s.Std, decimals) }

// median returns the middle of a sample, or the mean of the two in the middle.
func median(sample []float64) float64 {
	if len(sample) == 0 || slices.ContainsFunc(sample, math.IsNaN) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(sample))
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	if low == high {
		return low
	}
	return low + (high-low)/2
}

// Usage returns how many counts are positive, and exp of the entropy of the distribution they make: the number of
// equally frequent ones that would be as diverse, 1 if all counts but one are zero, or all.
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
