package report

import (
	"fmt"
	"math"
	"slices"

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

func (s Strip) chart() (*chart, error) {
	if len(s.Groups) == 0 {
		return nil, fmt.Errorf("strip: no groups")
	}
	e := newExtent()
	ch := &chart{title: s.Title, noTicks: s.NoTicks, draw: s.draw}
	ch.y = scale{label: s.Y.Label, lo: -0.5, hi: float64(len(s.Groups)) - 0.5, down: true, names: []string{}}
	for _, g := range s.Groups {
		e.see(s.X.Log, g.Values...)
		ch.marks += len(g.Values)
		ch.y.names = append(ch.y.names, g.Name)
	}
	ch.legend = append(ch.legend, medianEntry)
	ch.empty = e.empty()
	ch.width, ch.height = 380, vg.Length(max(36*len(s.Groups), 60))
	var err error
	ch.x, err = s.X.fit(e, 0.05)
	return ch, err
}

var (
	medianLine  = draw.LineStyle{Color: gray(0x1a), Width: 2}
	medianEntry = entry{name: "median", long: 4, sample: func(c draw.Canvas, mid vg.Point) {
		c.StrokeLine2(medianLine, mid.X, mid.Y-4.5, mid.X, mid.Y+4.5)
	}}
)

func (s Strip) draw(p plane) {
	for i := 1; i < len(s.Groups); i++ {
		y := p.Y(p.y.at(float64(i) - 0.5))
		p.StrokeLine2(gridLine, p.Min.X, y, p.Max.X, y)
	}
	for i, g := range s.Groups {
		color, _ := seriesColor(i)
		var values []float64
		for _, v := range g.Values {
			if p.x.shows(v) {
				values = append(values, v)
			}
		}
		slices.Sort(values)
		p.SetColor(faded(color, dotOpacity(len(values))))
		for k, v := range values {
			if at, ok := p.inside([2]float64{v, float64(i) + spread(k, len(values))}); ok {
				p.Fill(disc(at, 2.2))
			}
		}
		if len(values) == 0 {
			continue
		}
		if at, ok := p.inside([2]float64{median(values), float64(i)}); ok {
			half := 0.36 * (p.Max.Y - p.Min.Y) / vg.Length(len(s.Groups))
			p.StrokeLine2(medianLine, at.X, at.Y-half, at.X, at.Y+half)
		}
	}
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
