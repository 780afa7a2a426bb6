package report

import (
	"cmp"
	"fmt"
	"iter"

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

// Panel is one chart: [Lines], [Scatter], [Strip], [Bars], [Tree] or [Picture].
type Panel interface {
	// chart checks the data of the panel and returns what is to be drawn.
	chart() (*chart, error)
}

// chart is a panel ready to be laid out.
type chart struct {
	title         string
	x, y          scale
	noTicks       bool
	bare          bool      // has no frame, and its title on the left
	empty         bool      // there is nothing to draw, which the figure then says
	width, height vg.Length // natural size of the data area
	marks         int       // how many separate shapes draw makes, about
	legend        []entry
	draw          func(plane)
}

// plane is the data area of a chart, with its coordinates.
type plane struct {
	draw.Canvas
	x, y scale
}

// at returns the place of a point.
func (p plane) at(x, y float64) vg.Point { return vg.Point{X: p.X(p.x.at(x)), Y: p.Y(p.y.at(y))} }

// shows reports whether a point has a place.
func (p plane) shows(x, y float64) bool { return p.x.shows(x) && p.y.shows(y) }

// charts prepares all panels, as a full matrix with nil for holes.
func (f Figure) charts() ([][]*chart, error) {
	cols := 0
	for _, row := range f.Panels {
		cols = max(cols, len(row))
	}
	if cols == 0 {
		return nil, fmt.Errorf("figure %q has no panels", f.Title)
	}
	all := make([][]*chart, len(f.Panels))
	for i, row := range f.Panels {
		all[i] = make([]*chart, cols)
		for j, p := range row {
			if p == nil {
				continue
			}
			c, err := p.chart()
			if err != nil {
				return nil, fmt.Errorf("figure %q, row %d, column %d: %w", f.Title, i, j, err)
			}
			all[i][j] = c
		}
	}
	if f.Shared && !share(all) {
		return nil, fmt.Errorf("figure %q: panels that share limits differ in their axes", f.Title)
	}
	return all, nil
}

// share gives all charts the union of their limits. It reports whether that means something: whether they are
// linear or logarithmic alike.
func share(all [][]*chart) bool {
	x, y := newExtent(), newExtent()
	var first *chart
	for c := range each(all) {
		first = cmp.Or(first, c)
		if c.x.log != first.x.log || c.y.log != first.y.log {
			return false
		}
		x = extent{min(x.lo, c.x.lo), max(x.hi, c.x.hi)}
		y = extent{min(y.lo, c.y.lo), max(y.hi, c.y.hi)}
	}
	for c := range each(all) {
		c.x.lo, c.x.hi = x.lo, x.hi
		c.y.lo, c.y.hi = y.lo, y.hi
	}
	return true
}

// each yields the charts of a matrix by row, without its holes.
func each(all [][]*chart) iter.Seq[*chart] {
	return func(yield func(*chart) bool) {
		for _, row := range all {
			for _, c := range row {
				if c != nil && !yield(c) {
					return
				}
			}
		}
	}
}
