package report

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Figure is a grid of panels under one title and one legend. [NewFigure] makes the common case of a single panel.
type Figure struct {
	Title   string
	Rows    []string  // titles of the rows, none if nil
	Columns []string  // titles of the columns, none if nil
	Panels  [][]Panel // by row; a nil panel leaves a hole, and rows may differ in length
	Shared  bool      // all panels have the same limits, and only the outer ones carry labels
}

// NewFigure returns a figure of one panel.
func NewFigure(p Panel) Figure { return Figure{Panels: [][]Panel{{p}}} }

// Panel is one chart: [Lines], [Scatter], [Strip], [Bars], [Ranks], [Tree] or [Picture].
type Panel interface {
	// chart checks the data of the panel and returns what is to be drawn.
	chart() (*chart, error)
}

// chart is a plot with what its figure must know.
type chart struct {
	*plot.Plot
	title         string
	width, height vg.Length // natural size of the data area
	rigid         bool      // never drawn smaller
	marks         int       // how many separate shapes there are, about
	legend        []entry
	hover         []spot // what is read where, see hover.go
}

// entry is a line of a legend; without a name it is not shown.
type entry struct {
	name string
	look plot.Thumbnailer
}

// Distances in points.
const (
	pageWidth   = 560 // what the data areas of one row may take together
	minPanel    = 80  // but none is made narrower than this
	margin      = 10  // around the figure
	gap         = 12  // between panels, and between entries of a legend
	headGap     = 5   // below titles
	legendPitch = 14  // from one row of a legend to the next
)

// layout is a figure with the sizes of its parts.
type layout struct {
	title         string
	grid          [][]*chart // nil for holes
	charts        []*chart
	legend        [][]plot.Legend // one for each entry, by row
	tiles         draw.Tiles
	panels        vg.Point  // size of all panels
	width, height vg.Length // of the whole figure
	drawn         []area    // of charts with spots, once they are drawn
}

// lay prepares all panels and decides how large they are.
func (f Figure) lay() (*layout, error) {
	l, err := f.prepare()
	if err != nil {
		return nil, err
	}
	if len(l.grid) == 1 && len(l.grid[0]) == 1 && len(l.charts) == 1 && f.Title == "" {
		l.title, l.charts[0].title = l.charts[0].title, "" // the title of a lone panel is that of the figure
	}
	l.size()
	l.width = 2*margin + max(l.panels.X, titleInk.Width(l.title))
	entries := l.entries()
	for _, e := range entries {
		l.width = max(l.width, 2*margin+legendWidth(e))
	}
	x := l.width
	for _, e := range entries {
		w := legendWidth(e) + gap
		if x+w > l.width-margin+gap {
			l.legend, x = append(l.legend, nil), margin
		}
		last := len(l.legend) - 1
		l.legend[last], x = append(l.legend[last], e), x+w
	}
	l.height = 2*margin + titleHeight(titleInk, l.title) + vg.Length(len(l.legend))*legendPitch + l.panels.Y
	l.width, l.height = vg.Length(math.Ceil(float64(l.width))), vg.Length(math.Ceil(float64(l.height)))
	return l, nil
}

// prepare makes the charts, with the heads of rows and columns.
func (f Figure) prepare() (*layout, error) {
	l := &layout{title: printable(f.Title), tiles: draw.Tiles{Rows: len(f.Panels), PadX: gap}}
	for _, row := range f.Panels {
		l.tiles.Cols = max(l.tiles.Cols, len(row))
	}
	if l.tiles.Cols == 0 {
		return nil, fmt.Errorf("figure %q has no panels", f.Title)
	}
	for i, row := range f.Panels {
		charts := make([]*chart, l.tiles.Cols)
		for j, p := range row {
			if p == nil {
				continue
			}
			c, err := p.chart()
			if err != nil {
				return nil, fmt.Errorf("figure %q, row %d, column %d: %w", f.Title, i, j, err)
			}
			if i == 0 && j < len(f.Columns) {
				c.title = strings.TrimSpace(printable(f.Columns[j]) + "\n" + c.title)
			}
			if j == 0 && i < len(f.Rows) {
				c.Y.Label.Text = strings.TrimSpace(printable(f.Rows[i]) + "\n" + c.Y.Label.Text)
				c.Y.Label.TextStyle.Font = headInk.Font
			}
			charts[j], l.charts = c, append(l.charts, c)
		}
		l.grid = append(l.grid, charts)
	}
	if f.Shared && !l.share() {
		return nil, fmt.Errorf("figure %q: panels that share limits differ in their axes", f.Title)
	}
	return l, nil
}

// share gives all charts the union of their limits, and ticks without labels where a neighbour has the labels. It
// reports whether that means something: whether they are linear or logarithmic alike.
func (l *layout) share() bool {
	first := l.charts[0]
	for _, c := range l.charts {
		if c.X.Scale != first.X.Scale || c.Y.Scale != first.Y.Scale {
			return false
		}
		first.X.Min, first.X.Max = min(first.X.Min, c.X.Min), max(first.X.Max, c.X.Max)
		first.Y.Min, first.Y.Max = min(first.Y.Min, c.Y.Min), max(first.Y.Max, c.Y.Max)
	}
	for i, row := range l.grid {
		for j, c := range row {
			if c == nil {
				continue
			}
			c.X.Min, c.X.Max, c.Y.Min, c.Y.Max = first.X.Min, first.X.Max, first.Y.Min, first.Y.Max
			if i+1 < len(l.grid) && l.grid[i+1][j] != nil {
				unlabel(&c.X)
			}
			if j > 0 && row[j-1] != nil {
				unlabel(&c.Y)
			}
		}
	}
	return true
}

// size decides how large the panels are together: their natural size, shrunk to fit the page, and what surrounds them.
func (l *layout) size() {
	rows, cols := l.tiles.Rows, l.tiles.Cols
	var w, h vg.Length
	rigid := false
	for _, c := range l.charts {
		w, h, rigid = max(w, c.width), max(h, c.height), rigid || c.rigid
	}
	if shrink := min(1, max(pageWidth/(w*vg.Length(cols)), minPanel/w)); !rigid {
		w, h = shrink*w, shrink*h
	}
	around := make([]vg.Rectangle, max(rows, cols)) // by column in x, by row in y
	for i, row := range l.grid {
		for j, c := range row {
			if c == nil {
				continue
			}
			if head := titleHeight(headInk, c.title); i == 0 {
				l.tiles.PadTop = max(l.tiles.PadTop, head)
			} else {
				l.tiles.PadY = max(l.tiles.PadY, gap+head)
			}
			outer := vg.Point{X: w + 100, Y: h + 100}
			data := c.DataCanvas(draw.Canvas{Rectangle: vg.Rectangle{Max: outer}})
			around[j].Min.X, around[j].Max.X = max(around[j].Min.X, data.Min.X), max(around[j].Max.X, outer.X-data.Max.X)
			around[i].Min.Y, around[i].Max.Y = max(around[i].Min.Y, data.Min.Y), max(around[i].Max.Y, outer.Y-data.Max.Y)
		}
	}
	l.panels = vg.Point{X: vg.Length(cols)*w + vg.Length(cols-1)*gap,
		Y: vg.Length(rows)*h + vg.Length(rows-1)*l.tiles.PadY + l.tiles.PadTop}
	for _, r := range around {
		l.panels = l.panels.Add(r.Min).Add(r.Max)
	}
}

// titleHeight is the room of a title.
func titleHeight(k text.Style, title string) vg.Length {
	if title == "" {
		return 0
	}
	return k.Height(title) + headGap
}

// entries are the legends of all charts, each name once, as legends of one line.
func (l *layout) entries() (entries []plot.Legend) {
	seen := map[string]bool{"": true}
	for _, c := range l.charts {
		for _, e := range c.legend {
			if !seen[e.name] {
				seen[e.name] = true
				legend := plot.NewLegend()
				legend.Top, legend.Left, legend.ThumbnailWidth, legend.TextStyle = true, true, 16, legendInk
				legend.Add(" "+printable(e.name), e.look)
				entries = append(entries, legend)
			}
		}
	}
	return entries
}

func legendWidth(l plot.Legend) vg.Length { return l.Rectangle(draw.Canvas{}).Size().X }

// draw draws the figure on a canvas of its size.
func (l *layout) draw(c draw.Canvas) {
	l.drawn = nil
	c.SetColor(gray(0xff))
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	c.FillText(titleInk, vg.Point{X: c.Min.X, Y: c.Max.Y}, l.title)
	c.Max.Y -= titleHeight(titleInk, l.title)
	for _, row := range l.legend {
		at := c
		for _, e := range row {
			e.Draw(at)
			at.Min.X += legendWidth(e) + gap
		}
		c.Max.Y -= legendPitch
	}
	c.Max = c.Min.Add(l.panels)
	plots := make([][]*plot.Plot, len(l.grid))
	for i, row := range l.grid {
		plots[i] = make([]*plot.Plot, len(row))
		for j, ch := range row {
			if ch != nil {
				plots[i][j] = ch.Plot
			}
		}
	}
	for i, row := range plot.Align(plots, l.tiles, c) {
		for j, at := range row {
			if ch := l.grid[i][j]; ch != nil {
				ch.Draw(at)
				data := ch.DataCanvas(at)
				if ch.hover != nil {
					l.drawn = append(l.drawn, area{ch, data.Rectangle})
				}
				c.FillText(headInk, vg.Point{X: data.Center().X, Y: data.Max.Y + headGap}, ch.title)
			}
		}
	}
}
