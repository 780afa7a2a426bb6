package report

import (
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Distances of the layout, in points.
const (
	pageWidth = 560 // what the data areas of one row may take together
	minPanel  = 80  // but none is made narrower than this
	margin    = 10  // around the figure
	gap       = 12  // between panels
	tickGap   = 4   // between a tick label and the data area
	labelGap  = 5   // between an axis label and what is beside it
	headGap   = 6   // below titles
)

// layout is a figure with every place decided.
type layout struct {
	f             Figure
	all           [][]*chart
	legend        []entry
	width, height vg.Length   // of the whole figure
	wide, high    []vg.Length // data areas, by column and by row
	left, right   []vg.Length // room beside them, by column
	above, below  []vg.Length // room over and under them, by row
	rowHead       vg.Length   // room for the titles of rows
	colHead       vg.Length   // room for the titles of columns
	top           vg.Length   // room for title and legend
}

// lay decides the size and place of everything in f.
func (f Figure) lay() (*layout, error) {
	all, err := f.charts()
	if err != nil {
		return nil, err
	}
	rows, cols := len(all), len(all[0])
	if only := all[0][0]; rows == 1 && cols == 1 && only != nil && f.Title == "" {
		f.Title, only.title = only.title, "" // the title of a lone panel is that of the figure
	}
	l := &layout{
		f: f, all: all, legend: mergeLegends(all),
		wide: make([]vg.Length, cols), left: make([]vg.Length, cols), right: make([]vg.Length, cols),
		high: make([]vg.Length, rows), above: make([]vg.Length, rows), below: make([]vg.Length, rows),
	}
	l.sizePanels()
	for i, row := range all {
		for j, c := range row {
			if c == nil {
				continue
			}
			s := l.surround(i, j, c)
			l.left[j], l.right[j] = max(l.left[j], s.left), max(l.right[j], s.right)
			l.above[i], l.below[i] = max(l.above[i], s.above), max(l.below[i], s.below)
		}
	}
	if len(f.Rows) > 0 {
		l.rowHead = headInk.size() + 2*headGap
	}
	if len(f.Columns) > 0 {
		l.colHead = headInk.size() + headGap
	}
	l.width = 2*margin + l.rowHead + sum(l.left) + sum(l.wide) + sum(l.right) + vg.Length(cols-1)*gap
	l.width = max(l.width, 2*margin+l.indent()+titleInk.width(f.Title))
	for _, e := range l.legend {
		l.width = max(l.width, 2*margin+l.indent()+e.width())
	}
	if f.Title != "" {
		l.top += titleInk.size() + headGap + 2
	}
	if n := len(l.legendRows()); n > 0 {
		l.top += vg.Length(n)*legendPitch + headGap - 2
	}
	l.height = 2*margin + l.top + l.colHead + sum(l.above) + sum(l.high) + sum(l.below) + vg.Length(rows-1)*gap
	l.width, l.height = vg.Length(math.Ceil(float64(l.width))), vg.Length(math.Ceil(float64(l.height)))
	return l, nil
}

// sizePanels decides the data areas: their natural size, shrunk to fit the page.
func (l *layout) sizePanels() {
	for i, row := range l.all {
		for j, c := range row {
			if c != nil {
				l.wide[j], l.high[i] = max(l.wide[j], c.width), max(l.high[i], c.height)
			}
		}
	}
	shrink := min(1, max(pageWidth/sum(l.wide), minPanel/slices.Max(l.wide)))
	for j := range l.wide {
		l.wide[j] *= shrink
	}
	for i := range l.high {
		l.high[i] *= shrink
	}
}

// labelled reports whether the chart at (i, j) carries labels on its x and on its y axis.
func (l *layout) labelled(i, j int) (x, y bool) {
	if !l.f.Shared {
		return true, true
	}
	x = i == len(l.all)-1 || l.all[i+1][j] == nil
	y = j == 0 || l.all[i][j-1] == nil
	return x, y
}

// room is the space a chart takes around its data area.
type room struct{ left, right, above, below vg.Length }

func (l *layout) surround(i, j int, c *chart) room {
	showX, showY := l.labelled(i, j)
	xs, ys := c.ticks(l.wide[j], l.high[i])
	var r room
	if c.title != "" {
		r.above = headInk.size() + headGap
	}
	if showY && len(ys) > 0 {
		r.left += widest(ys) + tickGap
	}
	if showY && c.y.label != "" {
		r.left += labelInk.size() + labelGap
	}
	if showX {
		r.below = underX(xs)
		for _, t := range xs { // labels at the ends may reach beyond the data area
			at, half := vg.Length(c.x.at(t.value)), tickInk.width(t.label)/2
			r.left = max(r.left, half-at*l.wide[j])
			r.right = max(r.right, half-(1-at)*l.wide[j])
		}
	}
	if showX && c.x.label != "" {
		r.below += labelInk.size() + labelGap
	}
	return r
}

// ticks returns the ticks of a chart drawn at a size, few enough not to collide.
func (c *chart) ticks(width, height vg.Length) (xs, ys []tick) {
	if c.noTicks || c.empty {
		return nil, nil
	}
	if c.y.names != nil {
		ys = c.y.ticks(int(height / tickInk.size()))
	} else {
		ys = c.y.ticks(int(height / 30))
	}
	for n := int(width / 40); ; n-- {
		xs = c.x.ticks(n)
		if n <= 2 || (widest(xs)+8)*vg.Length(len(xs)-1) <= width {
			return xs, ys
		}
	}
}

// underX is the room that tick labels take below an axis.
func underX(xs []tick) vg.Length {
	if len(xs) == 0 {
		return 0
	}
	return tickInk.size() + tickGap
}

func widest(ts []tick) (w vg.Length) {
	for _, t := range ts {
		w = max(w, tickInk.width(t.label))
	}
	return w
}

// indent is where titles and legend begin: over the first data area, unless its labels are very wide.
func (l *layout) indent() vg.Length {
	if d := l.rowHead + l.left[0]; d < 60 {
		return d
	}
	return 0
}

func sum(xs []vg.Length) (s vg.Length) {
	for _, x := range xs {
		s += x
	}
	return s
}

// draw draws the figure on a canvas of its size.
func (l *layout) draw(c draw.Canvas) {
	c.SetColor(gray(0xff))
	c.Fill(c.Rectangle.Path())
	x0, y := c.Min.X+margin, c.Max.Y-margin
	if l.f.Title != "" {
		titleInk.line(c, x0+l.indent(), y-titleInk.size(), 0, l.f.Title)
		y -= titleInk.size() + headGap + 2
	}
	for _, row := range l.legendRows() {
		x := x0 + l.indent()
		for _, e := range row {
			e.draw(c, x, y-legendPitch/2)
			x += e.width() + legendGap
		}
		y -= legendPitch
	}
	y = c.Max.Y - margin - l.top - l.colHead
	for i, row := range l.all {
		y -= l.above[i]
		if i < len(l.f.Rows) {
			headInk.upward(c, x0+headInk.size(), y-l.high[i]/2, l.f.Rows[i])
		}
		x := x0 + l.rowHead
		for j, ch := range row {
			x += l.left[j]
			area := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: x, Y: y - l.high[i]},
				Max: vg.Point{X: x + l.wide[j], Y: y},
			}}
			if i == 0 && j < len(l.f.Columns) {
				headInk.line(c, area.Center().X, y+l.above[0]+headGap, 0.5, l.f.Columns[j])
			}
			if ch != nil {
				showX, showY := l.labelled(i, j)
				ch.drawOn(area, showX, showY)
			}
			x += l.wide[j] + l.right[j] + gap
		}
		y -= l.high[i] + l.below[i] + gap
	}
}
