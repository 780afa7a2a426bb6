package report

import (
	"fmt"

	"gonum.org/v1/plot/vg"
)

// Bars is a panel of horizontal bars from zero, the first on top. X is the axis of the values; Y gives its label alone.
// Values that are not finite have no bar.
type Bars struct {
	Axes
	Names  []string
	Values []float64
	Levels []Level
}

// barPitch is the room of one bar.
const barPitch = 13

func (b Bars) chart() (*chart, error) {
	if len(b.Names) == 0 || len(b.Names) != len(b.Values) {
		return nil, fmt.Errorf("bars: %d names for %d values; give one each, and at least one", len(b.Names), len(b.Values))
	}
	if b.X.Log {
		return nil, fmt.Errorf("bars: they begin at zero, which a logarithmic axis does not have")
	}
	e := newExtent()
	e.see(false, b.Values...)
	ch := &chart{title: b.Title, noTicks: b.NoTicks, empty: e.empty(), marks: len(b.Values), draw: b.draw}
	for _, v := range b.Levels {
		e.see(false, v.Value)
		ch.legend = append(ch.legend, lineEntry(v.Name, levelLine))
	}
	e.see(false, 0)
	ch.y = scale{label: b.Y.Label, lo: -0.7, hi: float64(len(b.Names)) - 0.3, down: true, names: b.Names}
	ch.width, ch.height = 380, vg.Length(max(barPitch*len(b.Names), 60))
	var err error
	ch.x, err = b.X.fit(e, 0)
	return ch, err
}

func (b Bars) draw(p plane) {
	color, _ := seriesColor(0)
	p.SetColor(color)
	for i, v := range b.Values {
		if !p.x.shows(v) {
			continue
		}
		zero, end := p.at(0, float64(i)-0.34), p.at(v, float64(i)+0.34)
		r := vg.Rectangle{
			Min: vg.Point{X: max(p.Min.X, min(zero.X, end.X)), Y: end.Y},
			Max: vg.Point{X: min(p.Max.X, max(zero.X, end.X)), Y: zero.Y},
		}
		if r.Max.X > r.Min.X {
			p.Fill(r.Path())
		}
	}
	for _, v := range b.Levels {
		if at, ok := p.inside([2]float64{v.Value, 0}); ok {
			p.StrokeLine2(levelLine, at.X, p.Min.Y, at.X, p.Max.Y)
		}
	}
}
