package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"sort"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// Whoever points at a panel of curves on a page reads their values there. A page runs no script: each upright strip of the
// panel holds its values, unseen, and the page's style shows those of the strip below the pointer.

// spots are how many strips a panel has at most.
const spots = 90

// spot is a place on the x axis with the values there.
type spot struct {
	x      float64
	values []value
}

type value struct {
	series int
	name   string
	y      float64
	spread float64 // from the curve to the top of its band; NaN if there is none
}

// area is where the data of a chart were drawn.
type area struct {
	*chart
	vg.Rectangle
}

// hover chooses spots, where the longest series has values.
func (l Lines) hover() (out []spot) {
	var xs []float64
	for _, s := range l.Series {
		for i := range s.Y {
			if x := s.x(i); l.drawable(x, s.Y[i]) {
				xs = append(xs, x)
			}
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	for k := range min(spots, len(xs)) {
		i := k
		if len(xs) > spots { // the nearest to an even division, in each part another one
			even := xs[0] + (xs[len(xs)-1]-xs[0])*float64(k)/(spots-1)
			i = min(sort.SearchFloat64s(xs, even), len(xs)-1)
		}
		at := spot{x: xs[i]}
		if len(out) > 0 && at.x == out[len(out)-1].x {
			continue
		}
		for n, s := range l.Series {
			if i, ok := s.nearest(at.x); ok && l.drawable(s.x(i), s.Y[i]) {
				v := value{series: n, name: s.Name, y: s.Y[i], spread: math.NaN()}
				if s.Low != nil {
					v.spread = s.High[i] - s.Y[i] // the lower half may be cut, where a logarithm ends
				}
				at.values = append(at.values, v)
			}
		}
		out = append(out, at)
	}
	return out
}

// nearest finds the value of a series at a place, or the last one before it; false outside of the series.
func (s Series) nearest(x float64) (int, bool) {
	i := sort.Search(len(s.Y), func(i int) bool { return s.x(i) > x }) - 1
	return i, i >= 0 && (i < len(s.Y)-1 || s.x(i) == x)
}

// Sizes of what is shown, in points.
const (
	tipLine = 11
	tipPad  = 5
	tipGap  = 7 // from the place that is pointed at
)

// tips writes the strips of what was drawn as parts of an svg element.
func (l *layout) tips() []byte {
	var b bytes.Buffer
	for _, a := range l.drawn {
		// Coordinates of the element run downwards.
		x := func(v float64) float64 { return (a.Min.X + vg.Length(a.X.Norm(v))*a.Size().X).Points() }
		y := func(v float64) float64 { return (l.height - a.Min.Y - vg.Length(a.Y.Norm(v))*a.Size().Y).Points() }
		top, bottom := (l.height - a.Max.Y).Points(), (l.height - a.Min.Y).Points()
		left, right := a.Min.X.Points(), a.Max.X.Points()
		for i, s := range a.hover {
			at, from, to := x(s.x), left, right
			if i > 0 {
				from = (x(a.hover[i-1].x) + at) / 2
			}
			if i+1 < len(a.hover) {
				to = (x(a.hover[i+1].x) + at) / 2
			}
			fmt.Fprintf(&b, `<g class="h"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"/><g class="t"><path d="M%.1f,%.1fV%.1f"/>`,
				from, top, max(to-from, 0), bottom-top, at, top, bottom)
			for _, v := range s.values {
				color, _ := seriesColor(v.series)
				if inside := y(v.y); top <= inside && inside <= bottom {
					fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2.4" style="fill:%s"/>`, at, inside, hex(color))
				}
			}
			l.tip(&b, a, s, at, top)
			b.WriteString("</g></g>\n")
		}
	}
	return b.Bytes()
}

// tip writes the box of values at a place, on that side which has more room.
func (l *layout) tip(b *bytes.Buffer, a area, s spot, at, top float64) {
	lines := []string{a.chart.X.Label.Text + " " + short(s.x)}
	for _, v := range s.values {
		text := short(v.y)
		if !math.IsNaN(v.spread) {
			text += " ± " + short(v.spread)
		}
		if v.name != "" {
			text = printable(v.name) + ": " + text
		}
		lines = append(lines, text)
	}
	width := 0.0
	for _, text := range lines {
		width = max(width, tickInk.Width(text).Points())
	}
	width += 2 * tipPad
	left := at + tipGap
	if left+width > l.width.Points()-2 {
		left = max(at-tipGap-width, 2)
	}
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="3"/>`, left, top+4, width, len(lines)*tipLine+2*tipPad-2)
	for i, text := range lines {
		fill := ""
		if i > 0 {
			color, _ := seriesColor(s.values[i-1].series)
			fill = fmt.Sprintf(` style="fill:%s"`, hex(color))
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f"%s>%s</text>`, left+tipPad, top+4+float64(tipPad+8+i*tipLine), fill, html.EscapeString(text))
	}
}

// short writes a number with four digits, or a whole one.
func short(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e9 {
		return typeset(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return typeset(strconv.FormatFloat(v, 'g', 4, 64))
}
