package report

import (
	"math"
	"strconv"
	"strings"
)

// tick is a labelled place on an axis.
type tick struct {
	value float64
	label string
}

// ticks returns about n ticks within the limits of s, in increasing order. Of names there are at most n, evenly spaced.
func (s scale) ticks(n int) []tick {
	n = max(n, 2)
	switch {
	case s.names != nil:
		var ts []tick
		for i := 0; i < len(s.names); i += (len(s.names) + n - 1) / n {
			ts = append(ts, tick{float64(i), s.names[i]})
		}
		return ts
	case s.log:
		return logTicks(s.lo, s.hi, n)
	default:
		return linearTicks(s.lo, s.hi, n)
	}
}

// linearTicks places ticks at multiples of 1, 2 or 5 times a power of ten.
func linearTicks(lo, hi float64, n int) []tick {
	step := niceStep((hi - lo) / float64(n))
	var ts []tick
	format := tickFormat(lo, hi, step)
	const slack = 1e-9 // a limit that is a multiple of step up to rounding gets its tick
	for k := math.Ceil(lo/step - slack); k <= math.Floor(hi/step+slack); k++ {
		ts = append(ts, tick{k * step, format(k * step)})
	}
	return ts
}

// niceStep returns the smallest of 1, 2, 5 times a power of ten that is at least d.
func niceStep(d float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(d)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= d*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// tickFormat returns how multiples of step between lo and hi are written: with just the decimals that step needs, and
// with k for thousands and M for millions where numbers are long.
func tickFormat(lo, hi, step float64) func(float64) string {
	largest := max(math.Abs(lo), math.Abs(hi))
	unit, suffix := 1.0, ""
	switch {
	case largest >= 1e9 || step < 1e-4:
		return func(v float64) string {
			if math.Abs(v) < step/2 {
				return "0"
			}
			return typeset(strconv.FormatFloat(v, 'g', 4, 64))
		}
	case largest >= 1e6 && step >= 1e4:
		unit, suffix = 1e6, "M"
	case largest >= 1e4 && step >= 1e2:
		unit, suffix = 1e3, "k"
	}
	decimals := max(0, -int(math.Floor(math.Log10(step/unit)+1e-9)))
	return func(v float64) string {
		if math.Abs(v) < step/2 {
			return "0"
		}
		return typeset(strconv.FormatFloat(v/unit, 'f', decimals, 64)) + suffix
	}
}

// logTicks places ticks at powers of ten, thinned to about n; up to two decades also at 2 and 5 times them, and below
// a third of a decade where a linear axis would have them.
func logTicks(lo, hi float64, n int) []tick {
	first, last := math.Log10(lo), math.Log10(hi)
	decades := last - first
	if decades < 1.0/3 {
		return linearTicks(lo, hi, n)
	}
	multiples, stride := []float64{1}, 1.0
	switch {
	case decades < 2+1e-9:
		multiples = []float64{1, 2, 5}
	case decades > float64(n):
		stride = math.Ceil(decades / float64(n))
	}
	var ts []tick
	for e := stride * math.Floor(first/stride); e <= last; e += stride {
		for _, m := range multiples {
			if v := m * math.Pow(10, e); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
				ts = append(ts, tick{v, powerLabel(m, int(e))})
			}
		}
	}
	return ts
}

// powerLabel writes m·10^e for a digit m.
func powerLabel(m float64, e int) string {
	v := m * math.Pow(10, float64(e))
	if -4 <= e && e <= 3 {
		return strconv.FormatFloat(v, 'f', max(0, -e), 64)
	}
	if 4 <= e && e <= 5 {
		return strconv.FormatFloat(v/1000, 'f', 0, 64) + "k"
	}
	return typeset(strconv.FormatFloat(m, 'f', 0, 64) + "e" + strconv.Itoa(e))
}

// typeset writes the hyphens of a formatted number as minus signs.
func typeset(number string) string { return strings.ReplaceAll(number, "-", "−") }
