package report

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Path is a walk through the plane, drawn as a polyline from a hollow mark to a full one. The i-th path of a panel has
// the i-th colour of the palette.
type Path struct {
	Name string // for the legend; none if empty
	At   [][2]float64
}

var (
	startEntry = entry{name: "start", long: 8, sample: func(c draw.Canvas, mid vg.Point) {
		outlined(c, disc(mid, 3), gray(0xff), gray(0x44), 1.3)
	}}
	endEntry = entry{name: "end", long: 8, sample: func(c draw.Canvas, mid vg.Point) {
		outlined(c, disc(mid, 3.6), gray(0x44), gray(0xff), 0.8)
	}}
)

func pathEntry(name string, i int) entry { return lineEntry(name, pathLine(i)) }

func pathLine(i int) draw.LineStyle {
	c, dashes := seriesColor(i)
	return draw.LineStyle{Color: c, Width: 1.4, Dashes: dashes}
}

// drawPaths draws all lines, and then all ends, so that no line covers an end.
func drawPaths(p plane, paths []Path) {
	for i, path := range paths {
		var pts []vg.Point
		for _, v := range path.At {
			if p.shows(v[0], v[1]) {
				pts = append(pts, p.at(v[0], v[1]))
			}
		}
		p.StrokeLines(pathLine(i), p.ClipLinesXY(pts)...)
	}
	r := 0.7 * markRadius(p.Max.X-p.Min.X)
	for i, path := range paths {
		if len(path.At) == 0 {
			continue
		}
		c, _ := seriesColor(i)
		if at, ok := p.inside(path.At[0]); ok {
			outlined(p.Canvas, disc(at, r), gray(0xff), c, 0.4*r)
		}
		if at, ok := p.inside(path.At[len(path.At)-1]); ok {
			outlined(p.Canvas, disc(at, 1.15*r), c, gray(0xff), 0.25*r)
		}
	}
}
