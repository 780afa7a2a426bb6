package report

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	legendPitch = 14 // from one row of a legend to the next
	legendGap   = 14 // between entries
	sampleGap   = 5  // between a sample and its name
)

// entry is a line of a legend: a name and a sample of what it names.
type entry struct {
	name   string
	long   vg.Length                         // length of the sample
	sample func(c draw.Canvas, mid vg.Point) // draws it around mid
}

func (e entry) width() vg.Length { return e.long + sampleGap + legendInk.width(e.name) }

func (e entry) draw(c draw.Canvas, x, y vg.Length) {
	e.sample(c, vg.Point{X: x + e.long/2, Y: y})
	legendInk.middle(c, x+e.long+sampleGap, y, 0, e.name)
}

// mergeLegends returns the entries of all charts, each name once; nameless things have no entry.
func mergeLegends(all [][]*chart) []entry {
	var entries []entry
	seen := map[string]bool{"": true}
	for c := range each(all) {
		for _, e := range c.legend {
			if !seen[e.name] {
				seen[e.name] = true
				entries = append(entries, e)
			}
		}
	}
	return entries
}

// legendRows breaks the legend into rows no wider than the figure.
func (l *layout) legendRows() (rows [][]entry) {
	free := l.width - 2*margin - l.indent()
	x := free
	for _, e := range l.legend {
		if x += legendGap + e.width(); x > free || len(rows) == 0 {
			rows, x = append(rows, nil), e.width()
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], e)
	}
	return rows
}
