package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Shape is how a marked place looks.
type Shape int

const (
	Dot  Shape = iota // a black dot with a white outline, for estimates
	Star              // an orange five-pointed star with a dark outline, for references
)

// Marks are places of interest drawn over a scatter.
type Marks struct {
	Name  string // for the legend; none if empty
	Shape Shape
	At    [][2]float64
}

// draw draws one mark of radius about r.
func (s Shape) draw(c draw.Canvas, at vg.Point, r vg.Length) {
	if s == Star {
		outlined(c, star(at, 1.8*r), rgb(0xff9d1e), gray(0x26), 0.16*r)
	} else {
		outlined(c, disc(at, 0.7*r), gray(0), gray(0xff), 0.22*r)
	}
}

// outlined fills p and strokes its border.
func outlined(c draw.Canvas, p vg.Path, fill, border color.Color, width vg.Length) {
	c.SetColor(fill)
	c.Fill(p)
	c.SetLineStyle(draw.LineStyle{Color: border, Width: width})
	c.Stroke(p)
}

// disc returns the outline of a circle.
func disc(at vg.Point, r vg.Length) vg.Path {
	var p vg.Path
	p.Move(vg.Point{X: at.X + r, Y: at.Y})
	p.Arc(at, r, 0, 2*math.Pi)
	p.Close()
	return p
}

// star returns the outline of a five-pointed star with one point up, whose points lie at distance r.
func star(at vg.Point, r vg.Length) vg.Path {
	const inner = 0.42 // rounder than the 0.382 of a pentagram, so that small stars keep a body
	var p vg.Path
	for k := range 10 {
		d := float64(r)
		if k%2 == 1 {
			d *= inner
		}
		sin, cos := math.Sincos(math.Pi/2 + float64(k)*math.Pi/5)
		v := vg.Point{X: at.X + vg.Length(d*cos), Y: at.Y + vg.Length(d*sin)}
		if k == 0 {
			p.Move(v)
		} else {
			p.Line(v)
		}
	}
	p.Close()
	return p
}

// markEntry is the legend of a shape.
func markEntry(name string, s Shape) entry {
	return entry{name: name, long: 11, sample: func(c draw.Canvas, mid vg.Point) { s.draw(c, mid, 3.6) }}
}

// lineEntry is the legend of a line.
func lineEntry(name string, sty draw.LineStyle) entry {
	return entry{name: name, long: 16, sample: func(c draw.Canvas, mid vg.Point) {
		c.StrokeLine2(sty, mid.X-8, mid.Y, mid.X+8, mid.Y)
	}}
}
