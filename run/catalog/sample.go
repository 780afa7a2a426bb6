package catalog

import (
	"math"
	"slices"
	"sort"
)

// Sampled returns at most about n points of a series that look the same: of each part of its steps the first, the last,
// the least and the greatest one, in order. Values that are not finite are kept apart: they end a part.
func (s Series) Sampled(n int) Series {
	if len(s.X) <= n || len(s.X) == 0 {
		return s
	}
	parts := max(1, n/4)
	low, width := s.X[0], s.X[len(s.X)-1]-s.X[0]
	part := func(x float64) int {
		if !(width > 0) {
			return 0
		}
		return min(parts-1, max(0, int(float64(parts)*(x-low)/width)))
	}
	var out Series
	for i := 0; i < len(s.X); {
		j, least, greatest := i, i, i
		for ; j < len(s.X) && part(s.X[j]) == part(s.X[i]); j++ {
			// A NaN is neither less nor greater than anything, so that it must not stand for a part.
			if s.Y[j] < s.Y[least] || math.IsNaN(s.Y[least]) {
				least = j
			}
			if s.Y[j] > s.Y[greatest] || math.IsNaN(s.Y[greatest]) {
				greatest = j
			}
		}
		kept := []int{i, least, greatest, j - 1}
		slices.Sort(kept)
		for _, k := range slices.Compact(kept) {
			out.X, out.Y = append(out.X, s.X[k]), append(out.Y, s.Y[k])
		}
		i = j
	}
	return out
}

// Smooth returns the exponential moving average of a series, over about so many points and corrected for its start; values
// that are not finite are passed over.
func (s Series) Smooth(points float64) Series {
	out := Series{X: s.X, Y: make([]float64, len(s.Y))}
	keep := 1 - 1/max(points, 1)
	sum, weight := 0.0, 0.0
	for i, y := range s.Y {
		if finite(y) {
			sum, weight = keep*sum+(1-keep)*y, keep*weight+(1-keep)
		}
		out.Y[i] = sum / weight // NaN before the first
	}
	return out
}

// at interpolates a series; NaN outside of its steps.
func (s Series) at(x float64) float64 {
	i := sort.SearchFloat64s(s.X, x)
	switch {
	case i < len(s.X) && s.X[i] == x:
		return s.Y[i]
	case i == 0 || i == len(s.X):
		return math.NaN()
	}
	t := (x - s.X[i-1]) / (s.X[i] - s.X[i-1])
	return (1-t)*s.Y[i-1] + t*s.Y[i]
}

// Band is the mean of several series over steps, and their standard deviation.
type Band struct {
	X, Mean, Std []float64 // Std is NaN where there is one series only
	N            []int     // how many series have a value there
}

// BandOf averages series at so many steps, interpolating each between its own. Where a series has no finite value it does
// not count; steps where none has one are left out.
func BandOf(series []Series, points int) Band {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range series {
		if len(s.X) > 0 {
			low, high = min(low, s.X[0]), max(high, s.X[len(s.X)-1])
		}
	}
	var out Band
	if low > high {
		return out
	}
	points = max(points, 2)
	if low == high {
		points = 1
	}
	for k := range points {
		x := low + (high-low)*float64(k)/float64(max(points-1, 1))
		var values []float64
		for _, s := range series {
			if y := s.at(x); finite(y) {
				values = append(values, y)
			}
		}
		if len(values) > 0 {
			stat := StatOf(values)
			out.X, out.Mean = append(out.X, x), append(out.Mean, stat.Mean)
			out.Std, out.N = append(out.Std, stat.Std), append(out.N, stat.N)
		}
	}
	return out
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
