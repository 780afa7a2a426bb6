package report

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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
