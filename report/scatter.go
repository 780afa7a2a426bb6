package report

import (
	"fmt"
	"image/color"

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

func (s Scatter) chart() (*chart, error) {
	if s.Class != nil && len(s.Class) != len(s.Points) {
		return nil, fmt.Errorf("scatter: %d points with %d classes", len(s.Points), len(s.Class))
	}
	for i, k := range s.Class {
		if k < 0 || k >= maxClasses {
			return nil, fmt.Errorf("scatter: class %d of point %d is not in [0, %d)", k, i, maxClasses)
		}
	}
	ch := &chart{title: s.Title, noTicks: s.NoTicks, width: 300, height: 300, marks: len(s.Points), draw: s.draw}
	ex, ey := newExtent(), newExtent()
	see := func(points [][2]float64) {
		for _, p := range points {
			s.seePoint(&ex, &ey, p[0], p[1])
		}
	}
	see(s.Points)
	for _, path := range s.Paths {
		see(path)
		ch.marks += 3
	}
	if len(s.Paths) > 0 {
		ch.legend = append(ch.legend, startEntry, endEntry)
	}
	for _, m := range s.Marks {
		see(m.At)
		ch.marks += len(m.At)
		ch.legend = append(ch.legend, markEntry(m.Name, m.Shape))
	}
	return ch, s.fit(ch, ex, ey, 0.05)
}

func (s Scatter) draw(p plane) {
	classes := 0
	for _, k := range s.Class {
		classes = max(classes, k+1)
	}
	colors := make([]color.NRGBA, classes)
	for k := range colors {
		colors[k] = faded(classColor(k, len(colors)), 0.9)
	}
	r := pointRadius(len(s.Points), p.Max.X-p.Min.X)
	for i, v := range s.Points {
		c := rgb(0xb4bcc6)
		if s.Class != nil {
			c = colors[s.Class[i]]
		}
		if at, ok := p.inside(v); ok {
			p.SetColor(c)
			p.Fill(disc(at, r))
		}
	}
	drawPaths(p, s.Paths)
	size := markRadius(p.Max.X - p.Min.X)
	for _, m := range s.Marks {
		for _, v := range m.At {
			if at, ok := p.inside(v); ok {
				m.Shape.draw(p.Canvas, at, size)
			}
		}
	}
}

var (
	startEntry = entry{name: "start", long: 8, sample: func(c draw.Canvas, mid vg.Point) {
		outlined(c, disc(mid, 3), gray(0xff), gray(0x44), 1.3)
	}}
	endEntry = entry{name: "end", long: 8, sample: func(c draw.Canvas, mid vg.Point) {
		outlined(c, disc(mid, 3.6), gray(0x44), gray(0xff), 0.8)
	}}
)

func pathLine(i int) draw.LineStyle {
	c, dashes := seriesColor(i)
	return draw.LineStyle{Color: c, Width: 1.4, Dashes: dashes}
}

// drawPaths draws all lines, and then all ends, so that no line covers an end.
func drawPaths(p plane, paths [][][2]float64) {
	for i, path := range paths {
		var pts []vg.Point
		for _, v := range path {
			if p.shows(v[0], v[1]) {
				pts = append(pts, p.at(v[0], v[1]))
			}
		}
		p.StrokeLines(pathLine(i), p.ClipLinesXY(pts)...)
	}
	r := 0.7 * markRadius(p.Max.X-p.Min.X)
	for i, path := range paths {
		if len(path) == 0 {
			continue
		}
		c, _ := seriesColor(i)
		if at, ok := p.inside(path[0]); ok {
			outlined(p.Canvas, disc(at, r), gray(0xff), c, 0.4*r)
		}
		if at, ok := p.inside(path[len(path)-1]); ok {
			outlined(p.Canvas, disc(at, 1.15*r), c, gray(0xff), 0.25*r)
		}
	}
}

// inside returns the place of v if it lies within the limits.
func (p plane) inside(v [2]float64) (vg.Point, bool) {
	if !p.shows(v[0], v[1]) {
		return vg.Point{}, false
	}
	at := p.at(v[0], v[1])
	return at, p.Contains(at)
}

// pointRadius makes n points cover about the same share of a square panel whatever n is, within reason.
func pointRadius(n int, width vg.Length) vg.Length {
	r := width / 300
	switch {
	case n <= 200:
		r *= 2.6
	case n <= 1000:
		r *= 1.9
	default:
		r *= 1.35
	}
	return max(r, 0.5)
}

// markRadius is the size of marks in a panel.
func markRadius(width vg.Length) vg.Length { return min(max(5*width/300, 2.8), 6) }
