package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Strip is a panel that shows how a value is distributed in several groups: one row of points per group, the first
// on top, with a tick at its median. X is the axis of the value; Y gives its label alone.
type Strip struct {
	Axes
	Groups []Group
}

// Group is one row of a Strip. Values that are not finite are not drawn and do not count for the median.
type Group struct {
	Name   string
	Values []float64
}

// stripPitch is the room of one group.
const stripPitch = 36

func (s Strip) chart() (*chart, error) {
	if len(s.Groups) == 0 {
		return nil, fmt.Errorf("strip: no groups")
	}
	ch := newChart(s.Axes, 380, vg.Length(max(stripPitch*len(s.Groups), 60)))
	tick := draw.GlyphStyle{Radius: 0.36 * stripPitch, Shape: upright{}}
	var names []string
	for i, g := range s.Groups {
		names = append(names, g.Name)
		values := slices.DeleteFunc(slices.Clone(g.Values), func(v float64) bool { return !s.X.drawable(v) })
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		at := make(plotter.XYs, len(values))
		for k, v := range values {
			at[k] = plotter.XY{X: v, Y: float64(i) + spread(k, len(values))}
		}
		color, _ := seriesColor(i)
		dot := draw.GlyphStyle{Color: faded(color, dotOpacity(len(values))), Radius: 2.2, Shape: draw.CircleGlyph{}}
		middle := plotter.XYs{{X: median(values), Y: float64(i)}}
		ch.Add(&plotter.Scatter{XYs: at, GlyphStyle: dot}, &plotter.Scatter{XYs: middle, GlyphStyle: tick})
		ch.marks += len(values)
	}
	tick.Radius = 4.5
	ch.legend = append(ch.legend, entry{"median", &plotter.Scatter{GlyphStyle: tick}})
	return ch, ch.fit(Axes{X: s.X, Y: ch.names(names, 0.5), NoTicks: s.NoTicks}, 0.05, 0)
}

// upright is a line as mark.
type upright struct{}

func (upright) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	c.StrokeLine2(draw.LineStyle{Color: gray(0x1a), Width: 2}, at.X, at.Y-sty.Radius, at.X, at.Y+sty.Radius)
}

// spread moves the k-th smallest of n values off the middle of its row, by less than a third of the row. Multiples of
// the golden ratio keep neighbours apart without chance.
func spread(k, n int) float64 {
	if n == 1 {
		return 0
	}
	_, turn := math.Modf(float64(k) * (math.Sqrt(5) - 1) / 2)
	return 0.56 * (turn - 0.5)
}

// dotOpacity keeps n points on a row from merging into one.
func dotOpacity(n int) float64 { return min(max(6/math.Sqrt(float64(n)), 0.12), 0.75) }
