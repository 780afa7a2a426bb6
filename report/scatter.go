package report

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Scatter is a panel of points in the plane, with marks and paths over them.
type Scatter struct {
	Axes
	Points [][2]float64
	Class  []int   // the class of every point, which gives its colour; nil means one pale colour for all
	Marks  []Marks // drawn last, in order
	// Paths are walks through the plane, each drawn as a polyline from a hollow mark to a full one. The i-th has the i-th
	// colour of the palette.
	Paths [][][2]float64
}

// Marks are places of interest drawn over a scatter.
type Marks struct {
	Name  string // for the legend; none if empty
	Shape Shape
	At    [][2]float64
}

// Shape is how a marked place looks.
type Shape int

const (
	Dot  Shape = iota // a black dot with a white outline, for estimates
	Star              // an orange five-pointed star with a dark outline, for references
)

const scatterSide = 300 // natural size of a panel

func (s Scatter) chart() (*chart, error) {
	if s.Class != nil && len(s.Class) != len(s.Points) {
		return nil, fmt.Errorf("scatter: %d points with %d classes", len(s.Points), len(s.Class))
	}
	classes, count := make([][][2]float64, maxClasses), 1
	for i, p := range s.Points {
		k := 0
		if s.Class != nil {
			k = s.Class[i]
		}
		if k < 0 || k >= maxClasses {
			return nil, fmt.Errorf("scatter: class %d of point %d is not in [0, %d)", k, i, maxClasses)
		}
		classes[k], count = append(classes[k], p), max(count, k+1)
	}
	ch := newChart(s.Axes, scatterSide, scatterSide)
	ch.marks = len(s.Points)
	look := draw.GlyphStyle{Color: rgb(0xb4bcc6), Radius: pointRadius(len(s.Points)), Shape: draw.CircleGlyph{}}
	for k, points := range classes[:count] {
		if s.Class != nil {
			look.Color = classColor(k, count)
		}
		ch.Add(glyphs{s.keep(points), look})
	}
	s.addPaths(ch)
	for _, m := range s.Marks {
		ch.Add(glyphs{s.keep(m.At), m.Shape.look()})
		ch.marks += len(m.At)
		ch.legend = append(ch.legend, legendGlyph(m.Name, m.Shape.look()))
	}
	return ch, ch.fit(s.Axes, 0.05, 0.05)
}

// addPaths adds all lines, and then all ends, so that no line covers an end.
func (s Scatter) addPaths(ch *chart) {
	var ends []plot.Plotter
	for i, path := range s.Paths {
		at := s.keep(path)
		if len(at) == 0 {
			continue
		}
		c, dashes := seriesColor(i)
		ch.Add(&plotter.Line{XYs: at, LineStyle: draw.LineStyle{Color: c, Width: 1.4, Dashes: dashes}})
		ends = append(ends, glyphs{at[:1], ring(c, 4)}, glyphs{at[len(at)-1:], disc(c, 4.5)})
		ch.marks += 3
	}
	ch.Add(ends...)
	if len(s.Paths) > 0 {
		ch.legend = append(ch.legend, legendGlyph("start", ring(gray(0x44), 4)), legendGlyph("end", disc(gray(0x44), 4.5)))
	}
}

// pointRadius makes n points cover about the same share of a panel whatever n is, within reason.
func pointRadius(n int) vg.Length {
	return vg.Length(min(2.6, max(1.35, 2.6*math.Pow(200/float64(n), 0.2))))
}

// glyphs draws a glyph at each point, smaller in panels that are smaller than a natural scatter.
type glyphs struct {
	at   plotter.XYs
	look draw.GlyphStyle
}

func (g glyphs) Plot(c draw.Canvas, p *plot.Plot) {
	g.look.Radius *= min(1, max(0.45, (c.Max.X-c.Min.X)/scatterSide))
	(&plotter.Scatter{XYs: g.at, GlyphStyle: g.look}).Plot(c, p)
}

func (g glyphs) DataRange() (xmin, xmax, ymin, ymax float64) { return plotter.XYRange(g.at) }

func legendGlyph(name string, look draw.GlyphStyle) entry {
	look.Radius *= 0.75
	return entry{name, &plotter.Scatter{GlyphStyle: look}}
}

// outlined is a shape over a larger one of another colour.
type outlined struct {
	border, fill color.Color
	shape        draw.GlyphDrawer
	inner        vg.Length // size of the smaller one
}

func (o outlined) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	c.SetColor(o.border)
	o.shape.DrawGlyph(c, sty, at)
	sty.Radius *= o.inner
	c.SetColor(o.fill)
	o.shape.DrawGlyph(c, sty, at)
}

// disc is a full mark, set off by white.
func disc(c color.Color, r vg.Length) draw.GlyphStyle {
	return draw.GlyphStyle{Radius: r, Shape: outlined{gray(0xff), c, draw.CircleGlyph{}, 0.8}}
}

// ring is a hollow mark.
func ring(c color.Color, r vg.Length) draw.GlyphStyle {
	return draw.GlyphStyle{Radius: r, Shape: outlined{c, gray(0xff), draw.CircleGlyph{}, 0.6}}
}

// look of a mark.
func (s Shape) look() draw.GlyphStyle {
	if s == Star {
		return draw.GlyphStyle{Radius: 9.6, Shape: outlined{gray(0x26), rgb(0xff9d1e), star{}, 0.82}}
	}
	return disc(gray(0), 4)
}

// star has five points, one of them up.
type star struct{}

func (star) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	for k := range 10 {
		r := float64(sty.Radius)
		if k%2 == 1 {
			r *= 0.42 // rounder than the 0.382 of a pentagram, so that small stars keep a body
		}
		sin, cos := math.Sincos(math.Pi/2 + float64(k)*math.Pi/5)
		v := at.Add(vg.Point{X: vg.Length(r * cos), Y: vg.Length(r * sin)})
		if k == 0 {
			p.Move(v)
		} else {
			p.Line(v)
		}
	}
	p.Close()
	c.Fill(p)
}
