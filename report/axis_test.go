package report

import (
	"image/color"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		log    bool
		lo, hi float64
		want   string
	}{
		{false, 0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{false, -3.2, 3.2, "−2 0 2"},
		{false, 0, 30000, "0 5000 10000 15000 20000 25000 30000"},
		{false, 100000, 100010, "100000 100002 100004 100006 100008 100010"},
		{true, 0.05, 200, "0.1 1 10 100"},
		{true, 1, 30, "1 2 5 10 20"},
		{true, 1e-3, 1, "0.001 0.01 0.1 1"},
		{true, 2, 3, "2 2.2 2.4 2.6 2.8 3"},
		{true, 1e-8, 1e6, "1e−08 1e−06 0.0001 0.01 1 100 10000 1000000"},
		{true, 5e3, 9e5, "10000 100000"},
	} {
		ticks := linearTicks
		if c.log {
			ticks = logTicks
		}
		if got := strings.Join(labels(t, ticks, c.lo, c.hi), " "); got != c.want {
			t.Errorf("log %t, %g to %g: %s, want %s", c.log, c.lo, c.hi, got, c.want)
		}
	}
}

// Whatever the limits are, an axis has a few ticks, which lie in them.
func TestTicksOfAnyLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		lo := math.Exp(20 * r.NormFloat64())
		hi := lo * math.Exp(math.Exp(4*r.Float64()-3))
		for _, ticks := range []plot.TickerFunc{linearTicks, logTicks} {
			if n := len(labels(t, ticks, lo, hi)); n < 2 || n > 9 {
				t.Errorf("%d ticks from %g to %g", n, lo, hi)
			}
		}
	}
}

// labels are those of ticks that have one, which must lie in the limits in order.
func labels(t *testing.T, ticks plot.TickerFunc, lo, hi float64) (out []string) {
	t.Helper()
	last := math.Inf(-1)
	for _, tick := range ticks(lo, hi) {
		if tick.IsMinor() {
			continue
		}
		slack := 1e-9 * (hi - lo)
		if tick.Value <= last || tick.Value < lo-slack || tick.Value > hi+slack {
			t.Errorf("tick %g after %g from %g to %g", tick.Value, last, lo, hi)
		}
		last, out = tick.Value, append(out, tick.Label)
	}
	return out
}

// Colours of classes differ, and those of series too.
func TestColors(t *testing.T) {
	for _, n := range []int{4, maxClasses, 16} {
		seen := map[color.Color]bool{classColor(-1, n): true}
		for k := range n {
			seen[classColor(k, n)] = true
		}
		if len(seen) != n+1 {
			t.Errorf("%d classes and none have %d colours", n, len(seen))
		}
	}
	for i := range 3 * len(okabeIto) {
		for j := range i {
			a, dashes := seriesColor(i)
			b, others := seriesColor(j)
			if a == b && slices.Equal(dashes, others) {
				t.Errorf("series %d and %d look alike", i, j)
			}
		}
	}
}
