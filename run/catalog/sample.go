package catalog

import (
	"math"
	"sort"

	"github.com/gfnem/gfnem/report"
)

// Sampled returns at most about n points of a series that look the same, see report.Sampled.
func (s Series) Sampled(n int) Series {
	x, y := report.Sampled(s.X, s.Y, n)
	return Series{x, y}
}

// Smooth returns the moving average of a series over about so many points, see report.Smoothed.
func (s Series) Smooth(points float64) Series { return Series{s.X, report.Smoothed(s.Y, points)} }

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

// BandOf averages series at so many steps. Steps where none has a value are left out.
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
	steps := make([]float64, points)
	for k := range steps {
		steps[k] = low + (high-low)*float64(k)/float64(max(points-1, 1))
	}
	all := BandAt(series, steps)
	for k, n := range all.N {
		if n > 0 {
			out.X, out.Mean = append(out.X, all.X[k]), append(out.Mean, all.Mean[k])
			out.Std, out.N = append(out.Std, all.Std[k]), append(out.N, n)
		}
	}
	return out
}

// BandAt averages series at some steps, interpolating each between its own. Where a series has no finite value it does
// not count; where none has one, the mean is NaN.
func BandAt(series []Series, steps []float64) (out Band) {
	for _, x := range steps {
		var values []float64
		for _, s := range series {
			if y := s.at(x); finite(y) {
				values = append(values, y)
			}
		}
		stat := StatOf(values)
		out.X, out.Mean = append(out.X, x), append(out.Mean, stat.Mean)
		out.Std, out.N = append(out.Std, stat.Std), append(out.N, stat.N)
	}
	return out
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
