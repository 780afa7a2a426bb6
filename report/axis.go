package report

import (
	"fmt"
	"math"
)

// Axes is what surrounds the data of a panel.
type Axes struct {
	Title   string
	X, Y    Axis
	NoTicks bool // neither ticks nor grid, for panels where only the shape matters
}

// Axis is one direction of a panel.
type Axis struct {
	Label    string
	Min, Max float64 // the limits; equal (as when left zero) means fitted to the data
	Log      bool    // a logarithmic scale; values that are not positive leave a gap
}

// scale is an Axis whose limits are known: it maps [lo, hi] onto [0, 1].
type scale struct {
	label  string
	lo, hi float64
	log    bool
	down   bool     // grows downwards, as rows do
	names  []string // the labels of 0, 1, 2, ... instead of numbers
}

// at returns where v lies between the limits.
func (s scale) at(v float64) float64 {
	lo, hi := s.lo, s.hi
	if s.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	t := (v - lo) / (hi - lo)
	if s.down {
		t = 1 - t
	}
	return t
}

// shows reports whether v has a place on the axis, inside the limits or not.
func (s scale) shows(v float64) bool { return drawable(v, s.log) }

// drawable reports whether v can be drawn at all. The bounds keep the limits of an axis, which lie a little beyond its
// values, and their difference finite.
func drawable(v float64, log bool) bool {
	if log {
		return 1e-150 < v && v < 1e150
	}
	return math.Abs(v) < 1e300 // false for NaN
}

// constant reports whether lo and hi are equal up to rounding, and so too close to hold ticks.
func constant(lo, hi float64) bool { return hi-lo <= 1e-12*max(math.Abs(lo), math.Abs(hi)) }

// extent is the smallest interval around the values it has seen.
type extent struct{ lo, hi float64 }

func newExtent() extent { return extent{math.Inf(1), math.Inf(-1)} }

// empty reports whether there was no drawable value.
func (e extent) empty() bool { return e.lo > e.hi }

// see grows e to hold every drawable value.
func (e *extent) see(log bool, values ...float64) {
	for _, v := range values {
		if drawable(v, log) {
			e.lo, e.hi = min(e.lo, v), max(e.hi, v)
		}
	}
}

// seePoint grows the extents of both axes to hold a point that can be drawn.
func (a Axes) seePoint(ex, ey *extent, x, y float64) {
	if drawable(x, a.X.Log) && drawable(y, a.Y.Log) {
		ex.see(a.X.Log, x)
		ey.see(a.Y.Log, y)
	}
}

// fit gives a chart the scales of its axes over data of extents ex and ey; for the margin of x see Axis.fit.
func (a Axes) fit(ch *chart, ex, ey extent, marginX float64) (err error) {
	ch.empty = ex.empty()
	if ch.x, err = a.X.fit(ex, marginX); err == nil {
		ch.y, err = a.Y.fit(ey, 0.05)
	}
	return err
}

// fit returns the scale of axis a over data of extent e. The margin is the fraction of the range left free at both
// ends when the limits come from the data.
func (a Axis) fit(e extent, margin float64) (scale, error) {
	s := scale{label: a.Label, log: a.Log, lo: a.Min, hi: a.Max}
	if a.Min != a.Max {
		if a.Min > a.Max || !drawable(a.Min, a.Log) || !drawable(a.Max, a.Log) || constant(a.Min, a.Max) {
			return s, fmt.Errorf("axis %q: bad limits [%g, %g]", a.Label, a.Min, a.Max)
		}
		return s, nil
	}
	if e.empty() {
		e = extent{1, 10}
	}
	if a.Log {
		lo, hi := math.Log(e.lo), math.Log(e.hi)
		d := margin * (hi - lo)
		if lo == hi {
			d = math.Ln10 / 2
		}
		s.lo, s.hi = math.Exp(lo-d), math.Exp(hi+d)
		return s, nil
	}
	d := margin * (e.hi - e.lo)
	if constant(e.lo, e.hi) {
		d = max(0.5, 0.1*math.Abs(e.lo))
	}
	s.lo, s.hi = e.lo-d, e.hi+d
	return s, nil
}
