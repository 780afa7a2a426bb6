package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

// drawable reports whether v has a place on the axis, inside the limits or not. The bounds keep the limits, which lie
// a little beyond the values, and their difference finite.
func (a Axis) drawable(v float64) bool {
	if a.Log {
		return 1e-150 < v && v < 1e150
	}
	return math.Abs(v) < 1e300 // false for NaN
}

func (a Axes) drawable(x, y float64) bool { return a.X.drawable(x) && a.Y.drawable(y) }

// keep returns the points that have a place.
func (a Axes) keep(points [][2]float64) (kept plotter.XYs) {
	for _, v := range points {
		if a.drawable(v[0], v[1]) {
			kept = append(kept, plotter.XY{X: v[0], Y: v[1]})
		}
	}
	return kept
}

// drawing is a plotter that leaves the limits of the axes alone.
type drawing func(draw.Canvas, *plot.Plot)

func (d drawing) Plot(c draw.Canvas, p *plot.Plot) { d(c, p) }

var gridLine = draw.LineStyle{Color: gray(0xe8), Width: 0.6}

// newChart returns a chart without data.
func newChart(a Axes, width, height vg.Length) *chart {
	p := plot.New()
	p.BackgroundColor = nil
	for axis, a := range map[*plot.Axis]Axis{&p.X: a.X, &p.Y: a.Y} {
		axis.Width, axis.Tick.Length, axis.Padding, axis.Label.Padding = 0, 0, 3, 3
		axis.Tick.Marker = plot.TickerFunc(linearTicks)
		if a.Log {
			axis.Scale, axis.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
		}
		axis.Label.Text = printable(a.Label)
		axis.Label.TextStyle.Font, axis.Label.TextStyle.Color = labelInk.Font, labelInk.Color
		axis.Tick.Label.Font, axis.Tick.Label.Color = tickInk.Font, tickInk.Color
	}
	p.Y.Tick.Label.YAlign = -0.6 // a little below the middle, where digits have theirs
	if !a.NoTicks {
		p.Add(&plotter.Grid{Vertical: gridLine, Horizontal: gridLine})
	}
	return &chart{Plot: p, title: printable(a.Title), width: width, height: height}
}

// fit gives a chart the limits of its axes, with a margin beyond the data, a fraction of its range, and a frame.
func (ch *chart) fit(a Axes, marginX, marginY float64) error {
	if a.NoTicks {
		ch.HideAxes()
	}
	if ch.X.Min > ch.X.Max || ch.Y.Min > ch.Y.Max {
		ch.HideAxes()
		ch.Add(drawing(func(c draw.Canvas, _ *plot.Plot) {
			nothing := labelInk
			nothing.XAlign, nothing.YAlign = draw.XCenter, draw.YCenter
			c.FillText(nothing, c.Center(), "no data")
		}))
	}
	ch.Add(drawing(func(c draw.Canvas, _ *plot.Plot) {
		c.SetLineStyle(draw.LineStyle{Color: gray(0xa8), Width: 0.6})
		c.Stroke(c.Rectangle.Path())
	}))
	if err := a.X.fit(&ch.X, marginX); err != nil {
		return err
	}
	return a.Y.fit(&ch.Y, marginY)
}

// fit decides the limits of an axis that has seen the data.
func (a Axis) fit(axis *plot.Axis, margin float64) error {
	to, from := func(v float64) float64 { return v }, func(v float64) float64 { return v }
	if a.Log {
		to, from = math.Log, math.Exp
	}
	if a.Min != a.Max {
		if a.Min > a.Max || !a.drawable(a.Min) || !a.drawable(a.Max) || constant(a.Min, a.Max) {
			return fmt.Errorf("axis %q: bad limits [%g, %g]", a.Label, a.Min, a.Max)
		}
		axis.Min, axis.Max = a.Min, a.Max
		return nil
	}
	if axis.Min > axis.Max { // there are no data
		axis.Min, axis.Max = 1, 10
	}
	lo, hi := to(axis.Min), to(axis.Max)
	d := margin * (hi - lo)
	if constant(axis.Min, axis.Max) {
		d = max(0.5, 0.1*math.Abs(lo))
	}
	axis.Min, axis.Max = from(lo-d), from(hi+d)
	return nil
}

// constant reports whether lo and hi are equal up to rounding, and so too close to hold ticks.
func constant(lo, hi float64) bool {
	return hi-lo <= max(1e-300, 1e-12*max(math.Abs(lo), math.Abs(hi)))
}

// linearTicks are multiples of 1, 2 or 5 times a power of ten, at most seven.
func linearTicks(lo, hi float64) (ts []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/6)))
	for _, m := range []float64{2, 2.5, 2} { // on to 2, 5 and 10
		if 6*step < hi-lo {
			step *= m
		}
	}
	for k := math.Ceil(lo/step - 1e-9); k <= hi/step+1e-9; k++ { // also limits that are multiples up to rounding
		ts = append(ts, tick(k*step+0)) // −0 becomes 0
	}
	return ts
}

func tick(v float64) plot.Tick {
	return plot.Tick{Value: v, Label: typeset(strconv.FormatFloat(v, 'g', 10, 64))}
}

// logTicks are about eight powers of ten at most, also 2 and 5 times them on a short axis, and those of a linear axis
// on a very short one.
func logTicks(lo, hi float64) (ts []plot.Tick) {
	digits := "1"
	if hi <= 100*lo {
		digits = "125"
	}
	for _, t := range (plot.LogTicks{}).Ticks(lo, hi) {
		digit := strconv.FormatFloat(t.Value, 'e', 0, 64)[:1]
		power := digit == "1" // of which there are two ticks, with and without a label
		if lo <= t.Value && t.Value <= hi && strings.Contains(digits, digit) && power != t.IsMinor() {
			ts = append(ts, tick(t.Value))
		}
	}
	if len(ts) < 2 {
		return linearTicks(lo, hi)
	}
	every := (len(ts) + 7) / 8
	return slices.DeleteFunc(ts, func(t plot.Tick) bool { return int(math.Round(math.Log10(t.Value)))%every != 0 })
}

// unlabel leaves ticks on an axis whose labels a neighbour has.
func unlabel(axis *plot.Axis) {
	full := axis.Tick.Marker
	axis.Label.Text = ""
	axis.Tick.Marker = plot.TickerFunc(func(lo, hi float64) (ts []plot.Tick) {
		for _, t := range full.Ticks(lo, hi) {
			if !t.IsMinor() {
				ts = append(ts, plot.Tick{Value: t.Value, Label: " "})
			}
		}
		return ts
	})
}
