package serve

import (
	"math"
	"unsafe"

	"github.com/gfnem/gfnem/run/catalog"
)

const (
	cells     = 400 // the greatest number of cells of a curve, an even number
	perOctave = 8   // cells of a curve for a logarithmic axis, from one step to twice as many
)

// cell is what was logged in a range of steps: the least and the greatest value, where they are, and the mean.
type cell struct {
	n                        float64
	min, max, sum            float64
	minAt, maxAt, begin, end float64
	badAt                    float64 // one more than the last step of a value that is not finite; 0 if there is none
}

const cellBytes = int64(unsafe.Sizeof(cell{}))

func (c *cell) add(x, y float64) {
	if c.n == 0 {
		*c = cell{1, y, y, y, x, x, x, x, c.badAt}
		return
	}
	c.n, c.sum = c.n+1, c.sum+y
	c.begin, c.end = min(c.begin, x), max(c.end, x)
	if y < c.min {
		c.min, c.minAt = y, x
	}
	if y > c.max {
		c.max, c.maxAt = y, x
	}
}

// join adds all of another cell.
func (c *cell) join(o cell) {
	c.badAt = max(c.badAt, o.badAt)
	switch {
	case o.n == 0:
		return
	case c.n == 0:
		o.badAt = c.badAt
		*c = o
		return
	}
	c.n, c.sum = c.n+o.n, c.sum+o.sum
	c.begin, c.end = min(c.begin, o.begin), max(c.end, o.end)
	if o.min < c.min {
		c.min, c.minAt = o.min, o.minAt
	}
	if o.max > c.max {
		c.max, c.maxAt = o.max, o.maxAt
	}
}

// isGap says whether all that was logged there is not finite.
func (c *cell) isGap() bool { return c.n == 0 && c.badAt > 0 }

// curve is a metric of a run, in cells of equal width. However long the run, it has a few hundred of them, and no
// least or greatest value is lost. Values that are not finite are counted, and where they are is kept.
type curve struct {
	width float64 // steps of a cell
	cells []cell
	logs  []cell  // the same values in cells that grow with the steps, for a logarithmic axis
	other int     // values that are not finite, or at no step
	last  float64 // the value that was logged last

	asked uint64 // when it was asked for last, by index.clock
	gone  bool   // its cells were let go, see keep.go
}

func (c *curve) add(x, y float64) {
	c.last = y
	if !finite(y) || !(x >= 0) || math.IsInf(x, 1) {
		c.other++
	}
	if c.gone || !(x >= 0) || math.IsInf(x, 1) {
		return
	}
	if c.width == 0 {
		c.width = 1
	}
	for x >= c.width*cells {
		c.halve()
	}
	put := func(to []cell, at int) []cell {
		for len(to) <= at {
			to = append(to, cell{})
		}
		if finite(y) {
			to[at].add(x, y)
		} else {
			to[at].badAt = max(to[at].badAt, x+1)
		}
		return to
	}
	c.cells = put(c.cells, int(x/c.width))
	c.logs = put(c.logs, int(perOctave*math.Log2(1+x)))
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// bytes is how much memory a curve takes, roughly.
func (c *curve) bytes() int64 { return 256 + cellBytes*int64(cap(c.cells)+cap(c.logs)) }

// halve makes cells twice as wide.
func (c *curve) halve() {
	c.width *= 2
	for i := range c.cells {
		one := c.cells[i]
		c.cells[i] = cell{}
		c.cells[i/2].join(one)
	}
	c.cells = c.cells[:(len(c.cells)+1)/2]
}

// span returns the first and the last step that has a value; ok is false if none has.
func (c *curve) span() (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, one := range c.cells {
		if one.n > 0 {
			low, high = min(low, one.begin), max(high, one.end)
		}
		if one.badAt > 0 {
			low, high = min(low, one.badAt-1), max(high, one.badAt-1)
		}
	}
	return low, high, low <= high
}

// grid is steps that curves share, so that they can be drawn and averaged together: edges of cells.
type grid struct {
	low, high float64
	n         int
	log       bool
}

func (g grid) at(x float64) int {
	a, b := g.low, g.high
	if g.log {
		x, a, b = math.Log(max(x, 1)), math.Log(max(a, 1)), math.Log(max(b, 1))
	}
	if !(b > a) {
		return 0
	}
	return min(g.n-1, max(0, int(float64(g.n)*(x-a)/(b-a))))
}

// edge is where cell i begins; a fraction is within it.
func (g grid) edge(i float64) float64 {
	t := i / float64(g.n)
	if g.log {
		a, b := math.Log(max(g.low, 1)), math.Log(max(g.high, 1))
		return math.Exp(a + t*(b-a))
	}
	return g.low + t*(g.high-g.low)
}

// on lays a curve out on a grid.
func (c *curve) on(g grid) []cell {
	out, from := make([]cell, g.n), c.cells
	if g.log {
		from = c.logs
	}
	for _, one := range from {
		if one.badAt > 0 {
			at := &out[g.at(one.badAt-1)]
			at.badAt = max(at.badAt, one.badAt)
		}
		if one.n == 0 {
			continue
		}
		one.badAt = 0
		a, b := g.at(one.minAt), g.at(one.maxAt)
		if a == b {
			out[a].join(one)
			continue
		}
		// The two extremes go where they are; each takes half of the rest along.
		half := cell{n: one.n / 2, sum: one.sum / 2, begin: one.begin, end: one.end}
		mean := one.sum / one.n
		least, greatest := half, half
		least.min, least.minAt, least.max, least.maxAt = one.min, one.minAt, mean, one.minAt
		greatest.min, greatest.minAt, greatest.max, greatest.maxAt = mean, one.maxAt, one.max, one.maxAt
		out[a].join(least)
		out[b].join(greatest)
	}
	return out
}

// gap is what rows of a picture have where all that was logged is not finite; where nothing was logged they have NaN.
var gap = math.Inf(1)

// extremes are the least and greatest values of cells in the order of their steps, two for each cell.
func extremes(all []cell) []float64 {
	out := make([]float64, 0, 2*len(all))
	for _, c := range all {
		switch {
		case c.isGap():
			out = append(out, gap, gap)
		case c.n == 0:
			out = append(out, math.NaN(), math.NaN())
		case c.minAt <= c.maxAt:
			out = append(out, c.min, c.max)
		default:
			out = append(out, c.max, c.min)
		}
	}
	return out
}

// means are those of cells, smoothed by an exponential average over about so many cells.
func means(all []cell, smooth float64) []float64 {
	out := make([]float64, len(all))
	keep := 1 - 1/max(smooth, 1)
	sum, weight := 0.0, 0.0
	for i, c := range all {
		if out[i] = math.NaN(); c.n > 0 {
			sum, weight = keep*sum+(1-keep)*c.sum/c.n, keep*weight+(1-keep)
			out[i] = sum / weight
		} else if c.isGap() {
			out[i] = gap
		}
	}
	return out
}

// series has the values of a row at their steps; a gap is NaN.
func series(steps, row []float64) (out catalog.Series) {
	for i, y := range row {
		if math.IsNaN(y) {
			continue
		} else if y == gap {
			y = math.NaN()
		}
		out.X, out.Y = append(out.X, steps[i]), append(out.Y, y)
	}
	return out
}
