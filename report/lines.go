package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a panel of curves. The i-th series has the i-th colour of the palette, in every panel.
type Lines struct {
	Axes
	Series []Series
	Levels []Level
}

// Series is one curve.
type Series struct {
	Name string    // for the legend; none if empty
	X    []float64 // nil means 0, 1, 2, ...
	Y    []float64
}

// Level is a constant to compare with, drawn as a dashed line across the panel.
type Level struct {
	Name  string // for the legend; none if empty
	Value float64
}

var levelLine = draw.LineStyle{Color: gray(0x55), Width: 1, Dashes: []vg.Length{4, 3}}

// x returns the abscissa of the i-th value.
func (s Series) x(i int) float64 {
	if s.X == nil {
		return float64(i)
	}
	return s.X[i]
}

func (l Lines) chart() (*chart, error) {
	ex, ey := newExtent(), newExtent()
	ch := &chart{title: l.Title, noTicks: l.NoTicks, width: 380, height: 220, draw: l.draw}
	for i, s := range l.Series {
		if s.X != nil && len(s.X) != len(s.Y) {
			return nil, fmt.Errorf("series %q: %d values at %d places", s.Name, len(s.Y), len(s.X))
		}
		for t, y := range s.Y {
			l.seePoint(&ex, &ey, s.x(t), y)
		}
		ch.marks++
		ch.legend = append(ch.legend, lineEntry(s.Name, s.line(i)))
	}
	for _, v := range l.Levels {
		ey.see(l.Y.Log, v.Value)
		ch.legend = append(ch.legend, lineEntry(v.Name, levelLine))
	}
	return ch, l.fit(ch, ex, ey, 0)
}

// line is the look of s as the i-th series of a panel; dense curves are thinner.
func (s Series) line(i int) draw.LineStyle {
	c, dashes := seriesColor(i)
	sty := draw.LineStyle{Color: c, Width: 1.5, Dashes: dashes}
	if len(s.Y) > 1000 {
		sty.Width = 1
	}
	return sty
}

func (l Lines) draw(p plane) {
	for _, v := range l.Levels {
		if p.y.shows(v.Value) {
			y := p.Y(p.y.at(v.Value))
			p.StrokeLines(levelLine, p.ClipLinesXY([]vg.Point{{X: p.Min.X, Y: y}, {X: p.Max.X, Y: y}})...)
		}
	}
	for i, s := range l.Series {
		sty := s.line(i)
		for _, piece := range s.pieces(p) {
			if len(piece) == 1 { // a value between two gaps is a dot, or it would not be seen
				if p.Contains(piece[0]) {
					p.SetColor(sty.Color)
					p.Fill(disc(piece[0], 1.8))
				}
				continue
			}
			p.StrokeLines(sty, p.ClipLinesXY(thin(piece))...)
		}
	}
}

// pieces returns the curve as polylines, broken where a value cannot be drawn.
func (s Series) pieces(p plane) [][]vg.Point {
	var all [][]vg.Point
	gap := true
	for i, y := range s.Y {
		if !p.shows(s.x(i), y) {
			gap = true
			continue
		}
		if gap {
			all, gap = append(all, nil), false
		}
		all[len(all)-1] = append(all[len(all)-1], p.at(s.x(i), y))
	}
	return all
}

// thin drops points of a polyline that cannot be seen: of those that follow each other within a column a quarter of a
// point wide, the first, the lowest, the highest and the last stay, in their order.
func thin(pts []vg.Point) []vg.Point {
	var kept []vg.Point
	column := func(i int) float64 { return math.Floor(4 * float64(pts[i].X)) }
	for i := 0; i < len(pts); {
		first, low, high := i, i, i
		for ; i < len(pts) && column(i) == column(first); i++ {
			if pts[i].Y < pts[low].Y {
				low = i
			}
			if pts[i].Y > pts[high].Y {
				high = i
			}
		}
		previous := -1
		for _, k := range []int{first, min(low, high), max(low, high), i - 1} {
			if k != previous {
				kept = append(kept, pts[k])
			}
			previous = k
		}
	}
	return kept
}
