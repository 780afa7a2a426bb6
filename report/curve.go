package report

import (
	"math"
	"slices"
)

// Sampled returns at most about n points of a curve that look the same: of each part of its range of x the first, the
// last, the least and the greatest one, in order.
func Sampled(x, y []float64, n int) (sx, sy []float64) {
	if len(x) <= n || len(x) == 0 {
		return x, y
	}
	parts := max(1, n/4)
	low, width := x[0], x[len(x)-1]-x[0]
	part := func(v float64) int {
		if !(width > 0) {
			return 0
		}
		return min(parts-1, max(0, int(float64(parts)*(v-low)/width)))
	}
	for i := 0; i < len(x); {
		j, least, greatest := i, i, i
		for ; j < len(x) && part(x[j]) == part(x[i]); j++ {
			// A NaN is neither less nor greater than anything, so that it must not stand for a part.
			if y[j] < y[least] || math.IsNaN(y[least]) {
				least = j
			}
			if y[j] > y[greatest] || math.IsNaN(y[greatest]) {
				greatest = j
			}
		}
		kept := []int{i, least, greatest, j - 1}
		slices.Sort(kept)
		for _, k := range slices.Compact(kept) {
			sx, sy = append(sx, x[k]), append(sy, y[k])
		}
		i = j
	}
	return sx, sy
}

// Smoothed returns the moving average of values, with weights that fall exponentially on both sides over about so many
// points. Values that are not finite are passed over, and stay.
func Smoothed(y []float64, points float64) []float64 {
	keep := 1 - 1/max(points, 1)
	out := make([]float64, len(y))
	average := func(at func(i int) int) {
		sum, weight := 0.0, 0.0
		for i := range y {
			k := at(i)
			if v := y[k]; !math.IsNaN(v) && !math.IsInf(v, 0) {
				sum, weight = keep*sum+(1-keep)*v, keep*weight+(1-keep)
				out[k] += sum / weight / 2
			} else {
				out[k] = v
			}
		}
	}
	average(func(i int) int { return i })
	average(func(i int) int { return len(y) - 1 - i })
	return out
}

// noisy reports whether values go up and down from one to the next, so that a moving average shows more than they do.
// Of independent ones two thirds of the steps turn.
func noisy(y []float64) bool {
	const least = 50
	turns, steps, last := 0, 0, 0.0
	for i := 1; i < len(y); i++ {
		step := y[i] - y[i-1]
		if step == 0 || math.IsNaN(step) || math.IsInf(step, 0) {
			continue
		}
		steps++
		if last != 0 && (step < 0) != (last < 0) {
			turns++
		}
		last = step
	}
	return steps >= least && turns > steps/3
}

// window is over how many points the average of a curve is taken.
func window(points int) int { return min(max(points/40, 5), 500) }

// smooth replaces a noisy curve by its moving average, on the scale of its axis, and keeps what it was behind it.
func (s *Series) smooth(a Axis) (points int) {
	if !noisy(s.Y) {
		return 0
	}
	points = window(len(s.Y))
	s.Raw = s.Y
	values := slices.Clone(s.Y)
	if a.Log {
		for i, v := range values {
			values[i] = math.Log(max(v, 0)) // −∞ and NaN are passed over
		}
	}
	s.Y = Smoothed(values, float64(points))
	if a.Log {
		for i, v := range s.Y {
			s.Y[i] = math.Exp(v)
		}
	}
	return points
}
