package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
)

// Heat is a panel that shows a matrix by colour, its first row on top, with a colour bar. Cells that are not finite
// are grey. The limits of X and Y are those of the matrix; Min, Max and Log of the axes are not used.
type Heat struct {
	Axes
	Values   [][]float64
	Rows     []string // names of the rows; nil means their numbers
	Columns  []string // names of the columns; nil means their numbers
	Min, Max float64  // the ends of the colour bar; equal (as when left zero) means those of the values
	Bar      string   // what the colours mean
}

const (
	barGap   = 8  // between the data area and the colour bar
	barWidth = 9  // of the colour bar
	barSteps = 96 // shades of the colour bar
	barTicks = 5  // about
)

func (h Heat) chart() (*chart, error) {
	rows, cols := len(h.Values), 0
	if rows > 0 {
		cols = len(h.Values[0])
	}
	if cols == 0 {
		return nil, fmt.Errorf("heat map: no values")
	}
	for i, row := range h.Values {
		if len(row) != cols {
			return nil, fmt.Errorf("heat map: row %d has %d values, row 0 has %d", i, len(row), cols)
		}
	}
	if h.Rows != nil && len(h.Rows) != rows || h.Columns != nil && len(h.Columns) != cols {
		return nil, fmt.Errorf("heat map: %d by %d values with %d and %d names",
			rows, cols, len(h.Rows), len(h.Columns))
	}
	bar, err := h.bar()
	if err != nil {
		return nil, err
	}
	cell := min(300/float64(max(rows, cols)), 34)
	ch := &chart{
		title: h.Title, noTicks: h.NoTicks, marks: rows * cols,
		draw:  func(p plane) { h.draw(p, bar) },
		x:     scale{label: h.X.Label, lo: -0.5, hi: float64(cols) - 0.5, whole: true, names: h.Columns},
		y:     scale{label: h.Y.Label, lo: -0.5, hi: float64(rows) - 0.5, whole: true, names: h.Rows, down: true},
		width: vg.Length(cell * float64(cols)), height: vg.Length(cell * float64(rows)),
	}
	ch.width, ch.height = max(ch.width, 80), max(ch.height, 60) // room for labels; cells need not be square
	ch.right = barGap + barWidth + tickGap + widest(bar.ticks(barTicks))
	if h.Bar != "" {
		ch.right += labelGap + labelInk.size()
	}
	return ch, nil
}

// bar returns the scale of the colours.
func (h Heat) bar() (scale, error) {
	e := newExtent()
	for _, row := range h.Values {
		e.see(false, row...)
	}
	return Axis{Label: h.Bar, Min: h.Min, Max: h.Max}.fit(e, 0)
}

func (h Heat) draw(p plane, bar scale) {
	const seam = 0.3 // cells reach under their neighbours, or hairlines of background would shine through
	for i, row := range h.Values {
		for j, v := range row {
			lo, hi := p.at(float64(j)-0.5, float64(i)+0.5), p.at(float64(j)+0.5, float64(i)-0.5)
			lo.Y, hi.X = max(lo.Y-seam, p.Min.Y), min(hi.X+seam, p.Max.X)
			p.SetColor(gray(0xd9))
			if drawable(v, false) {
				p.SetColor(viridis(bar.at(v)))
			}
			p.Fill(vg.Rectangle{Min: lo, Max: hi}.Path())
		}
	}
	drawBar(p, bar)
}

// drawBar draws the colour bar on the right of a plane.
func drawBar(p plane, bar scale) {
	b := p
	b.Min.X = p.Max.X + barGap
	b.Max.X = b.Min.X + barWidth
	for k := range barSteps {
		lo, hi := float64(k)/barSteps, math.Min(float64(k+2)/barSteps, 1)
		p.SetColor(viridis((float64(k) + 0.5) / barSteps))
		p.Fill(vg.Rectangle{Min: vg.Point{X: b.Min.X, Y: b.Y(lo)}, Max: vg.Point{X: b.Max.X, Y: b.Y(hi)}}.Path())
	}
	p.SetLineStyle(frameLine)
	p.Stroke(b.Rectangle.Path())
	ts := bar.ticks(barTicks)
	for _, t := range ts {
		y := b.Y(bar.at(t.value))
		p.StrokeLine2(frameLine, b.Max.X, y, b.Max.X+2, y)
		tickInk.middle(p.Canvas, b.Max.X+tickGap, y, 0, t.label)
	}
	labelInk.upward(p.Canvas, b.Max.X+tickGap+widest(ts)+labelGap+labelInk.size()-2, b.Center().Y, bar.label)
}
