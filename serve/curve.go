package serve

import "math"

// cells is the greatest number of cells of a curve, an even number.
const cells = 400

// cell is what was logged in a range of steps: the least and the greatest value, where they are, and the mean.
type cell struct {
	n                        float64
	min, max, sum            float64
	minAt, maxAt, begin, end float64
}

func (c *cell) add(x, y float64) {
	if c.n == 0 {
		*c = cell{1, y, y, y, x, x, x, x}
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
	switch {
	case o.n == 0:
		return
	case c.n == 0:
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

// curve is a metric of a run, in cells of equal width. However long the run, it has a few hundred of them, and no
// least or greatest value is lost. Values that are not finite are counted, not kept.
type curve struct {
	width float64 // steps of a cell
	cells []cell
	other int // values that are not finite, or at no step
}

func (c *curve) add(x, y float64) {
	if math.IsNaN(y) || math.IsInf(y, 0) || !(x >= 0) || math.IsInf(x, 1) {
		c.other++
		return
	}
	if c.width == 0 {
		c.width = 1
	}
	for x >= c.width*cells {
		c.halve()
	}
	at := int(x / c.width)
	for len(c.cells) <= at {
		c.cells = append(c.cells, cell{})
	}
	c.cells[at].add(x, y)
}

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
	out := make([]cell, g.n)
	for _, one := range c.cells {
		if one.n == 0 {
			continue
		}
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

// extremes are the least and greatest values of cells in the order of their steps, two for each cell; NaN where
// there is none.
func extremes(all []cell) []float64 {
	out := make([]float64, 0, 2*len(all))
	for _, c := range all {
		switch {
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
		}
	}
	return out
}

// filled has values in the gaps between those that are there, on straight lines.
func filled(y []float64) []float64 {
	out := append([]float64(nil), y...)
	last := -1
	for i, v := range out {
		if math.IsNaN(v) {
			continue
		}
		for k := last + 1; last >= 0 && k < i; k++ {
			t := float64(k-last) / float64(i-last)
			out[k] = (1-t)*out[last] + t*v
		}
		last = i
	}
	return out
}
