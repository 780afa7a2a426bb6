package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a panel of curves. The i-th series has the i-th colour of the palette, in every panel. On a page, whoever points
// at a place reads the values there.
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
	// Low and High are the limits of a band around the curve, Raw the values that Y is a moving average of, pale behind it.
	// All of them may be nil.
	Low, High, Raw []float64
}

// Level is a constant to compare with, drawn as a dashed line across the panel.
type Level struct {
	Name  string // for the legend; none if empty
	Value float64
}

// drawnPoints is how many points of a curve are drawn, about: more make no difference to see.
const drawnPoints = 1200

func (l Lines) chart() (*chart, error) {
	ch := newChart(l.Axes, 380, 220)
	for i := range l.Series {
		if err := l.Series[i].check(); err != nil {
			return nil, err
		}
	}
	for i, s := range l.Series { // below all curves
		color, _ := seriesColor(i)
		ch.Add(band{s.band(l.Axes), faded(color, 0.16)})
		ch.addCurve(l.Axes, s.X, s.Raw, draw.LineStyle{Color: faded(color, 0.3), Width: 0.7})
	}
	for i, s := range l.Series {
		color, dashes := seriesColor(i)
		look := draw.LineStyle{Color: color, Width: 1.5, Dashes: dashes}
		if len(s.Y) > 1000 && s.Raw == nil {
			look.Width = 1
		}
		ch.addCurve(l.Axes, s.X, s.Y, look)
		ch.legend = append(ch.legend, entry{s.Name, &plotter.Line{LineStyle: look}})
	}
	ch.levels(l.Levels, l.Y, &ch.Y)
	ch.hover = l.hover()
	return ch, ch.fit(l.Axes, 0, 0.05)
}

// check returns an error unless all parts of a series have one length.
func (s Series) check() error {
	if s.X != nil && len(s.X) != len(s.Y) {
		return fmt.Errorf("series %q: %d values at %d places", s.Name, len(s.Y), len(s.X))
	}
	for _, part := range [][]float64{s.Low, s.High, s.Raw} {
		if part != nil && len(part) != len(s.Y) || len(s.Low) != len(s.High) {
			return fmt.Errorf("series %q: a band or raw values of another length than its %d values", s.Name, len(s.Y))
		}
	}
	return nil
}

// x is where value i of a series is.
func (s Series) x(i int) float64 {
	if s.X == nil {
		return float64(i)
	}
	return s.X[i]
}

// addCurve adds a curve, and a dot for each value between two gaps, or it would not be seen.
func (ch *chart) addCurve(a Axes, x, y []float64, look draw.LineStyle) {
	if len(y) == 0 {
		return
	}
	s := Series{X: x, Y: y}
	if len(y) > drawnPoints {
		if x == nil {
			s.X = make([]float64, len(y))
			for i := range y {
				s.X[i] = float64(i)
			}
		}
		s.X, s.Y = Sampled(s.X, s.Y, drawnPoints)
	}
	for _, piece := range s.pieces(a) {
		if len(piece) == 1 {
			ch.Add(glyphs{piece, draw.GlyphStyle{Color: look.Color, Radius: 1.8, Shape: draw.CircleGlyph{}}})
		} else {
			ch.Add(&plotter.Line{XYs: piece, LineStyle: look})
		}
	}
	ch.marks += 1 + len(s.Y)/50 // a long curve is a long text
}

// pieces returns the curve broken where a value cannot be drawn.
func (s Series) pieces(a Axes) (all []plotter.XYs) {
	gap := true
	for i, y := range s.Y {
		x := s.x(i)
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

// band is areas, each by its outline.
type band struct {
	areas []plotter.XYs
	color color.NRGBA
}

// band returns the areas between the limits of a series, broken where one cannot be drawn.
func (s Series) band(a Axes) (areas []plotter.XYs) {
	var low, high plotter.XYs
	end := func() {
		if len(low) > 1 {
			slices.Reverse(high)
			areas = append(areas, append(low, high...))
		}
		low, high = nil, nil
	}
	for i := range s.Low {
		x := s.x(i)
		if !a.drawable(x, s.Low[i]) || !a.drawable(x, s.High[i]) {
			end()
			continue
		}
		low, high = append(low, plotter.XY{X: x, Y: s.Low[i]}), append(high, plotter.XY{X: x, Y: s.High[i]})
	}
	end()
	return areas
}

func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	for _, area := range b.areas {
		outline := make([]vg.Point, len(area))
		for i, v := range area {
			outline[i] = vg.Point{X: toX(v.X), Y: toY(v.Y)}
		}
		c.FillPolygon(b.color, c.ClipPolygonXY(outline))
	}
}

// DataRange implements plot.DataRanger.
func (b band) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, area := range b.areas {
		x0, x1, y0, y1 := plotter.XYRange(area)
		xmin, xmax, ymin, ymax = min(xmin, x0), max(xmax, x1), min(ymin, y0), max(ymax, y1)
	}
	return xmin, xmax, ymin, ymax
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
