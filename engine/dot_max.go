package engine

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// minMaxima is the fewest elements of a product of maxima: kernels would compute fewer in mostly empty vectors.
const minMaxima = 8

// maxProduct is what ReduceMax makes of x+y if each operand repeats along an axis of the other: a product in which +
// takes the place of * and the maximum that of +. Axes are those of the sum.
type maxProduct struct {
	x, y                     *access
	batch, rows, cols, terms []int
}

// part is the axes among which an axis is that x has or only repeats, and y. (A variable so that a test can break it.)
var part = func(p *maxProduct, inX, inY bool) *[]int {
	switch {
	case inX && !inY:
		return &p.rows
	case inY && !inX:
		return &p.cols
	}
	return &p.batch
}

// soleUsers are the operations that read a node which nothing else reads.
func soleUsers(order, outputs []*node) map[*node]*node {
	sole := map[*node]*node{}
	for _, n := range order {
		for _, x := range n.inputs {
			if _, again := sole[x]; again {
				sole[x] = nil
			} else {
				sole[x] = n
			}
		}
	}
	for _, n := range outputs {
		sole[n] = nil
	}
	return sole
}

// taken reports whether n is a sum that its only user computes with its maxima, so that it needs no operation.
func (c *compiler) taken(n *node) bool {
	r := c.sole[n]
	if n.op != compute.OpTypeAdd || r == nil || r.op != compute.OpTypeReduceMax || c.backend.noFusion {
		return false
	}
	dims := n.shape.Dimensions
	p := &maxProduct{x: c.views[n.inputs[0]].spread(dims), y: c.views[n.inputs[1]].spread(dims), terms: r.attr.([]int)}
	for i := range dims {
		if !slices.Contains(p.terms, i) {
			axes := part(p, p.x.strides[i] != 0, p.y.strides[i] != 0)
			*axes = append(*axes, i)
		}
	}
	isFloat := n.shape.DType == dtypes.Float32 || n.shape.DType == dtypes.Float64
	m, k, w := p.count(p.rows), p.count(p.terms), p.count(p.cols)
	if !isFloat || m < 2 || k < 2 || w < 2 || m*w < minMaxima || n.shape.Size() == 0 {
		return false
	}
	c.maxima[r] = p
	return true
}

// count is the number of places along axes.
func (p *maxProduct) count(axes []int) int {
	n := 1
	for _, i := range axes {
		n *= p.x.dims[i]
	}
	return n
}

// maximum emits a product of maxima. Its elements are in the order batch, rows, columns, whatever that of the axes is.
func (c *compiler) maximum(n *node, p *maxProduct) {
	t := n.shape.DType
	b, m, k, w := p.count(p.batch), p.count(p.rows), p.count(p.terms), p.count(p.cols)
	x := c.matrix(p.x, t, p.batch, p.rows, p.terms, b, m, k)
	y := c.matrix(p.y, t, p.batch, p.terms, p.cols, b, k, w)
	v := c.newValue(t, b*m*w)
	step := maxStep{dotStep{b, m, k, w, t}}
	c.emit(&lop{form: formOpaque, node: n, ins: []*access{x, y}, outs: []*value{v}, opaque: step})
	made := slices.Concat(p.batch, p.rows, p.cols)
	dims, perm := make([]int, len(made)), make([]int, len(made))
	for i, axis := range made {
		dims[i] = p.x.dims[axis]
	}
	for i, axis := range slices.Sorted(slices.Values(made)) {
		perm[i] = slices.Index(made, axis)
	}
	c.views[n] = dense(v, dims).permute(perm)
}

// maxStep is a product of maxima.
type maxStep struct{ dotStep }

func (d maxStep) bind(fr *frame, l *lop) func() {
	if d.t == dtypes.Float32 {
		return bindGemm[float32](fr, l, d.dotStep, true)
	}
	return bindGemm[float64](fr, l, d.dotStep, true)
}
