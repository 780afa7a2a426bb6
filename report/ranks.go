package report

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Ranks is a panel of a histogram of ranks between 0 and 1, with a band that counts are to stay in.
type Ranks struct {
	Axes
	Counts    []int
	Low, High float64 // of the band; equal means none
}

func (r Ranks) chart() (*chart, error) {
	if len(r.Counts) == 0 {
		return nil, fmt.Errorf("ranks: no counts")
	}
	ch := newChart(r.Axes, 170, 110)
	ch.marks = len(r.Counts)
	ch.Add(drawing(func(c draw.Canvas, p *plot.Plot) {
		at := func(x, y float64) vg.Point { return vg.Point{X: c.X(p.X.Norm(x)), Y: c.Y(p.Y.Norm(y))} }
		box := func(x0, x1, y0, y1 float64) []vg.Point {
			return c.ClipPolygonXY([]vg.Point{at(x0, y0), at(x1, y0), at(x1, y1), at(x0, y1)})
		}
		blue, _ := seriesColor(0)
		width, total := 1/float64(len(r.Counts)), 0
		for i, n := range r.Counts {
			shade := blue
			if r.outside(n) {
				shade, _ = seriesColor(1)
			}
			c.FillPolygon(shade, box((float64(i)+0.08)*width, (float64(i)+0.92)*width, 0, float64(n)))
			total += n
		}
		if r.Low != r.High {
			c.FillPolygon(faded(gray(0x60), 0.22), box(0, 1, r.Low, r.High))
			mean := float64(total) * width
			c.StrokeLines(levelLine, c.ClipLinesXY([]vg.Point{at(0, mean), at(1, mean)})...)
		}
	}))
	most := r.High
	for _, n := range r.Counts {
		most = max(most, float64(n))
	}
	ch.X.Min, ch.X.Max, ch.Y.Min, ch.Y.Max = 0, 1, 0, 1.05*max(most, 1)
	if r.Low != r.High {
		blue, _ := seriesColor(0)
		red, _ := seriesColor(1)
		ch.legend = append(ch.legend, swatch("inside", blue), swatch("outside the band", red),
			swatch("where uniform ranks stay", faded(gray(0x60), 0.22)), entry{"mean", &plotter.Line{LineStyle: levelLine}})
	}
	return ch, ch.fit(r.Axes, 0, 0)
}

// swatch is an area of a colour in a legend.
func swatch(name string, c color.Color) entry { return entry{name, &plotter.BarChart{Color: c}} }

func (r Ranks) outside(n int) bool {
	return r.Low != r.High && (float64(n) < r.Low || float64(n) > r.High)
}
