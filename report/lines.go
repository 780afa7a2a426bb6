package report

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a panel of curves. The i-th series has the i-th colour of the palette, in every panel.
type Lines struct {
	Axes
	Series []Series
	Levels []Level
}

// Series is one curve.
type Series struct {
	Name string    // for the legend; none if empty
	X    []float64 // nil means 0, 1, 2, ...
	Y    []float64
}

// Level is a constant to compare with, drawn as a dashed line across the panel.
type Level struct {
	Name  string // for the legend; none if empty
	Value float64
}

func (l Lines) chart() (*chart, error) {
	ch := newChart(l.Axes, 380, 220)
	for i, s := range l.Series {
		if s.X != nil && len(s.X) != len(s.Y) {
			return nil, fmt.Errorf("series %q: %d values at %d places", s.Name, len(s.Y), len(s.X))
		}
		color, dashes := seriesColor(i)
		look := draw.LineStyle{Color: color, Width: 1.5, Dashes: dashes}
		if len(s.Y) > 1000 {
			look.Width = 1
		}
		for _, piece := range s.pieces(l.Axes) {
			if len(piece) == 1 { // a value between two gaps is a dot, or it would not be seen
				ch.Add(glyphs{piece, draw.GlyphStyle{Color: color, Radius: 1.8, Shape: draw.CircleGlyph{}}})
			} else {
				ch.Add(&plotter.Line{XYs: piece, LineStyle: look})
			}
		}
		ch.marks += 1 + len(s.Y)/50 // a long curve is a long text
		ch.legend = append(ch.legend, entry{s.Name, &plotter.Line{LineStyle: look}})
	}
	ch.levels(l.Levels, l.Y, &ch.Y)
	return ch, ch.fit(l.Axes, 0, 0.05)
}

// pieces returns the curve broken where a value cannot be drawn.
func (s Series) pieces(a Axes) (all []plotter.XYs) {
	gap := true
	for i, y := range s.Y {
		x := float64(i)
		if s.X != nil {
			x = s.X[i]
		}
		if !a.drawable(x, y) {
			gap = true
			continue
		}
		if gap {
			all, gap = append(all, nil), false
		}
		all[len(all)-1] = append(all[len(all)-1], plotter.XY{X: x, Y: y})
	}
	return all
}

var levelLine = draw.LineStyle{Color: gray(0x55), Width: 1, Dashes: []vg.Length{4, 3}}

// levels adds levels of one of its axes to a chart.
func (ch *chart) levels(levels []Level, a Axis, axis *plot.Axis) {
	for _, v := range levels {
		ch.legend = append(ch.legend, entry{v.Name, &plotter.Line{LineStyle: levelLine}})
		if !a.drawable(v.Value) {
			continue
		}
		axis.Min, axis.Max = min(axis.Min, v.Value), max(axis.Max, v.Value)
		ch.Add(drawing(func(c draw.Canvas, p *plot.Plot) {
			at, from, to := axis.Norm(v.Value), c.Min, c.Max
			if axis == &p.X {
				from.X, to.X = c.X(at), c.X(at)
			} else {
				from.Y, to.Y = c.Y(at), c.Y(at)
			}
			c.StrokeLines(levelLine, c.ClipLinesXY([]vg.Point{from, to})...)
		}))
	}
}
