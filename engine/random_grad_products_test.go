package engine_test

import (
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// dot contracts an axis with one of a matrix, possibly with a batch axis.
func (d *drawer) dot(x *value) {
	if len(x.dims) == 0 {
		return
	}
	axes := d.r.Perm(len(x.dims))
	k, cols := x.dims[axes[0]], 1+d.r.IntN(4)
	var batch []int
	if len(axes) > 1 && d.r.IntN(3) == 0 {
		batch = axes[1:2]
	}
	wDims, wContract := []int{k, cols}, 0
	if d.r.IntN(2) == 0 {
		wDims, wContract = []int{cols, k}, 1
	}
	var wBatch, dims []int
	rows := x.size() / float64(k)
	for _, b := range batch {
		wBatch, wDims, dims = []int{2}, append(wDims, x.dims[b]), []int{x.dims[b]}
		rows /= float64(x.dims[b])
	}
	var w *value
	for _, v := range d.all { // another value, if one has the dimensions
		if slices.Equal(v.dims, wDims) && v != x {
			w = v
		}
	}
	if w == nil {
		w = &value{name: "parameter", dims: wDims, mag: 1.5, frac: 2}
		d.params = append(d.params, w)
		d.all = slices.Insert(d.all, len(d.params)-1, w)
	}
	for i, n := range x.dims {
		if i != axes[0] && !slices.Contains(batch, i) {
			dims = append(dims, n)
		}
	}
	dims = append(dims, cols)
	n := float64(k)
	y := &value{name: "dot", dims: dims, ins: []*value{x, w}, mag: n * x.mag * w.mag, frac: -1,
		err:    n*(x.err*w.mag+x.mag*w.err) + n*(n+1)*x.mag*w.mag,
		onward: []influence{{w.mag, w.err, float64(cols)}, {x.mag, x.err, rows}},
		build: func(in []*Node) *Node {
			return DotGeneral(in[0], []int{axes[0]}, batch, in[1], []int{wContract}, wBatch)
		}}
	if x.exact() && w.exact() {
		y.frac = x.frac + w.frac
	}
	d.add(y)
}

// rows gathers rows of x, or scatters them.
func (d *drawer) rows(x *value) {
	if len(x.dims) == 0 {
		return
	}
	n := 1 + d.r.IntN(6)
	if d.r.IntN(2) == 0 {
		idx, most := make([]int32, n), make([]int, x.dims[0])
		for i := range idx {
			idx[i] = int32(d.r.IntN(x.dims[0]))
			most[idx[i]]++
		}
		d.moved("gather", x, append([]int{n}, x.dims[1:]...), float64(slices.Max(most)), func(x *Node) *Node {
			return Gather(x, Const(x.Graph(), tensors.FromFlatDataAndDimensions(idx, n, 1)))
		})
		return
	}
	idx, most := make([]int32, x.dims[0]), make([]int, n)
	for i := range idx {
		idx[i] = int32(d.r.IntN(n))
		most[idx[i]]++
	}
	k := float64(slices.Max(most))
	dims := append([]int{n}, x.dims[1:]...)
	d.add(&value{name: "scatter", dims: dims, ins: []*value{x}, mag: k * x.mag, err: k*x.err + k*k*x.mag, frac: x.frac,
		onward: []influence{{1, 0, 1}}, build: func(in []*Node) *Node {
			g := in[0].Graph()
			to := Zeros(g, in[0].Shape().Clone())
			if n != x.dims[0] {
				s := in[0].Shape().Clone()
				s.Dimensions[0] = n
				to = Zeros(g, s)
			}
			return ScatterSum(to, Const(g, tensors.FromFlatDataAndDimensions(idx, len(idx), 1)), in[0], false, false)
		}})
}

// convolve applies a kernel of the parameters' numbers to x as images.
func (d *drawer) convolve(x *value) {
	if len(x.dims) != 3 && len(x.dims) != 4 {
		return
	}
	spatial := len(x.dims) - 2
	in, out := x.dims[len(x.dims)-1], 1+d.r.IntN(3)
	stride, same := 1+d.r.IntN(2), d.r.IntN(2) == 0
	dims, kernel := []int{x.dims[0]}, []int{}
	taps, places := 1.0, float64(x.dims[0])
	for i := range spatial {
		n := x.dims[1+i]
		k := 1 + d.r.IntN(min(3, n))
		kernel = append(kernel, k)
		to := (n-k)/stride + 1
		if same {
			to = (n + stride - 1) / stride
		}
		dims = append(dims, to)
		taps *= float64(k)
		places *= float64(to)
	}
	dims, kernel = append(dims, out), append(kernel, in, out)
	w := &value{name: "parameter", dims: kernel, mag: 1.5, frac: 2}
	n := taps * float64(in)
	y := &value{name: "convolve", dims: dims, ins: []*value{x, w}, mag: n * x.mag * w.mag, frac: -1,
		err:    n*x.err*w.mag + n*(n+1)*x.mag*w.mag,
		onward: []influence{{w.mag, 0, taps * float64(out)}, {x.mag, x.err, places}},
		build: func(in []*Node) *Node {
			c := Convolve(in[0], in[1]).Strides(stride)
			if same {
				return c.PadSame().Done()
			}
			return c.NoPadding().Done()
		}}
	if x.exact() {
		y.frac = x.frac + w.frac
	}
	d.params = append(d.params, w)
	d.all = slices.Insert(d.all, len(d.params)-1, w)
	d.add(y)
}

func (d *drawer) pool(x *value) {
	if len(x.dims) != 3 && len(x.dims) != 4 {
		return
	}
	window, stride := 1+d.r.IntN(2), 1+d.r.IntN(2)
	dims, n := slices.Clone(x.dims), 1.0
	for i := 1; i < len(dims)-1; i++ {
		if dims[i] < window {
			return
		}
		dims[i] = (dims[i]-window)/stride + 1
		n *= float64(window)
	}
	y := &value{name: "mean pool", dims: dims, ins: []*value{x}, mag: x.mag, err: x.err + (n+4)*x.mag, frac: -1,
		onward: []influence{{1 / n, 4 / n, n}},
		build:  func(in []*Node) *Node { return MeanPool(in[0]).Window(window).Strides(stride).NoPadding().Done() }}
	if d.r.IntN(2) == 0 && x.exact() {
		y.name, y.err, y.frac, y.onward = "max pool", 0, x.frac, []influence{{1, 0, n}}
		y.build = func(in []*Node) *Node { return MaxPool(in[0]).Window(window).Strides(stride).NoPadding().Done() }
	}
	d.add(y)
}
