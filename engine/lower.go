package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/engine/internal/gemm"
)

// value is a dense tensor in memory, or in registers of the row program that makes and uses it.
type value struct {
	id   int
	t    dtypes.DType
	size int // elements
	def  *lop
	slot int // in the frame's memory; -1 if it has none

	constant    ptr
	input       bool // a parameter or captured value
	output      bool // memory comes from the caller
	first, last int  // steps between which the memory is in use
}

func (v *value) bytes() int { return v.size * sizeOf(v.t) }

// form is how a lowered operation is carried out.
type form int

const (
	formMap     form = iota // elementwise; a copy if it has no kernel
	formReduce              // rows of [n, inner] elements become inner
	formCollect             // rows of n elements are combined into n (a reduction of leading axes)
	formArg                 // where rows of n elements have their extreme
	formConcat              // rows side by side
	formPad                 // rows with gaps
	formDot                 // rows times a matrix
	formOuter               // a sum over rows of products of their elements
	formOpaque              // a step of its own
)

// lop is a lowered operation: views are gone, operands are accesses to values.
type lop struct {
	form form
	node *node
	ins  []*access
	outs []*value
	pos  int
	set  *cluster

	kernel  kernel          // formMap
	reducer *reducer        // formReduce, formCollect
	inner   int             // formReduce: elements that are reduced side by side
	n       int             // formReduce, formCollect, formArg: see there
	rows    int             // leading elements that stay apart: a group's rows must divide it
	chunks  []int           // formConcat: elements of each operand, per row
	place   []int32         // formPad: where the elements of a row go
	width   int             // formPad: elements of a row of the result
	cols    int             // formDot: columns of the result
	biased  bool            // a product: the last operand is added to every row
	act     gemm.Activation // a product or convolution: what is applied then
	slope   float64
	opaque  opaque // formOpaque
}

// compiler turns a function into a program.
type compiler struct {
	fn      *Function
	backend *Backend
	views   map[*node]*access
	copies  map[string]*access // dense ones, by what they are copies of
	results map[*node][]*value
	lops    []*lop
	values  []*value
	fold    map[*node]*node
	sole    map[*node]*node
	maxima  map[*node]*maxProduct // by the reduction
	extra   []*node               // made by simplify besides its result
}

func (c *compiler) newValue(t dtypes.DType, size int) *value {
	v := &value{id: len(c.values), t: t, size: size, slot: -1}
	c.values = append(c.values, v)
	return v
}

func (c *compiler) emit(l *lop) *lop {
	if l.form != formOpaque {
		for i, a := range l.ins {
			if (l.form != formDot || i == 0) && a.size() > 0 && a.rows(l.naturalRows()) == nil {
				l.ins[i] = c.copied(a, a.v.t) // no list of the places of so wide a row
			}
		}
	}
	l.pos = len(c.lops)
	for _, o := range l.outs {
		o.def = l
	}
	c.lops = append(c.lops, l)
	return l
}

// densely returns an access to all elements of n, contiguous from the start of a value; it copies if it must.
func (c *compiler) densely(n *node) *access {
	a := c.views[n]
	if a.isDense() && a.off == 0 && a.size() == a.v.size {
		return a
	}
	return c.copied(a, n.shape.DType)
}

// copied emits a copy of the elements of a, unless there is one.
func (c *compiler) copied(a *access, t dtypes.DType) *access {
	key := fmt.Sprint(t, a.v.id, a.off, a.dims, a.strides)
	d, ok := c.copies[key]
	if !ok {
		d = c.copyOf(a, t)
		c.copies[key] = d
	}
	return d
}

// copyOf emits a new copy of the elements of a.
func (c *compiler) copyOf(a *access, t dtypes.DType) *access {
	v := c.newValue(t, a.size())
	if a.transposes() {
		c.emit(&lop{form: formOpaque, ins: []*access{a}, outs: []*value{v}, opaque: transposed{}})
		return dense(v, a.dims)
	}
	c.emit(&lop{form: formMap, ins: []*access{a}, outs: []*value{v}, kernel: copyN(sizeOf(t)), rows: v.size})
	return dense(v, a.dims)
}

// lower emits the operations for live nodes.
func (c *compiler) lower(n *node) {
	in := func(i int) *access { return c.views[n.inputs[i]] }
	dims := n.shape.Dimensions
	result := func() *value {
		v := c.newValue(n.shape.DType, n.shape.Size())
		c.views[n] = dense(v, dims)
		return v
	}
	switch n.op {
	case compute.OpTypeParameter, compute.OpTypeCapturedValue:
		result().input = true
	case compute.OpTypeConstant:
		result().constant = n.constant
	case opResult:
		c.views[n] = dense(c.results[n.inputs[0]][n.attr.(int)], dims)
	case compute.OpTypeReshape:
		a := in(0).reshape(dims)
		if a == nil {
			a = c.densely(n.inputs[0]).reshape(dims)
		}
		c.views[n] = a
	case compute.OpTypeBroadcastInDim:
		c.views[n] = in(0).broadcast(dims, n.attr.([]int))
	case compute.OpTypeTranspose:
		c.views[n] = in(0).permute(n.attr.([]int))
	case compute.OpTypeSlice:
		c.views[n] = in(0).slice(n.attr.(sliceAttr), dims)
	case compute.OpTypeReverse:
		c.views[n] = in(0).reverse(n.attr.([]int))
	case compute.OpTypeBitcast:
		if sizeOf(n.shape.DType) == sizeOf(n.inputs[0].shape.DType) {
			c.views[n] = in(0)
			return
		}
		// The bytes stay; a copy of them as bytes changes nothing but the type.
		from := c.densely(n.inputs[0]).v
		v := result()
		c.emit(&lop{form: formOpaque, node: n, ins: []*access{dense(from, []int{from.size})}, outs: []*value{v},
			opaque: copyBytes{}})
	case compute.OpTypeArgMinMax:
		at := n.attr.(argAttr)
		a := lastAxes(in(0), []int{at.axis})
		k := n.inputs[0].shape.Dimensions[at.axis]
		v := result()
		c.emit(&lop{form: formArg, node: n, ins: []*access{a}, outs: []*value{v}, n: k, rows: v.size})
	case compute.OpTypeConcatenate:
		c.concat(n, result())
	case compute.OpTypePad:
		c.pad(n, result())
	case compute.OpTypeDotGeneral:
		c.dot(n, result())
	default:
		switch {
		case c.taken(n):
		case c.maxima[n] != nil:
			c.maximum(n, c.maxima[n])
		case reducerOf(n.op, n.shape.DType) != nil:
			c.reduce(n, result())
		case isMap(n):
			c.mapped(n, result())
		default:
			c.opaqueStep(n)
		}
	}
}

func isMap(n *node) bool { return len(n.multi) == 0 && len(n.inputs) > 0 && kernelFor(n) != nil }

// kernelFor returns the kernel of an elementwise node.
func kernelFor(n *node) kernel {
	t := n.inputs[0].shape.DType
	if n.op == compute.OpTypeWhere {
		t = n.shape.DType
	}
	return kernelOf(n.op, t, n.shape.DType)
}

func (c *compiler) mapped(n *node, v *value) {
	l := &lop{form: formMap, node: n, outs: []*value{v}, kernel: kernelFor(n), rows: v.size}
	for _, x := range n.inputs {
		l.ins = append(l.ins, c.inOrder(x).spread(n.shape.Dimensions))
	}
	c.emit(l)
}

// inOrder returns an access to n that does not transpose.
func (c *compiler) inOrder(n *node) *access {
	if a := c.views[n]; !a.transposes() {
		return a
	}
	return c.densely(n)
}

// lastAxes moves axes to the end.
func lastAxes(a *access, axes []int) *access {
	var perm []int
	for i := range a.dims {
		if !slices.Contains(axes, i) {
			perm = append(perm, i)
		}
	}
	return a.permute(append(perm, axes...))
}

func (c *compiler) reduce(n *node, v *value) {
	a, axes := c.views[n.inputs[0]], n.attr.([]int)
	t := n.shape.DType
	if a.size() == 0 {
		c.emit(&lop{form: formOpaque, node: n, outs: []*value{v}, opaque: fillNeutral{reducerOf(n.op, t)}})
		return
	}
	l := &lop{node: n, outs: []*value{v}, reducer: reducerOf(n.op, t), inner: 1}
	// Axes, but for those of size 1, are kept before, reduced, and kept after, if they come in that order.
	before, n1, after, mixed := 1, 1, 1, false
	for i, d := range a.dims {
		switch gone := slices.Contains(axes, i); {
		case d == 1:
		case gone:
			n1 *= d
			mixed = mixed || after > 1
		case n1 == 1:
			before *= d
		default:
			after *= d
		}
	}
	switch {
	case n1 == 1:
		c.views[n] = a.reshape(n.shape.Dimensions)
		return
	case mixed:
		l.form, l.ins, l.n, l.rows = formReduce, []*access{lastAxes(a, axes)}, n1, v.size
	case before == 1:
		l.form, l.ins, l.n, l.rows = formCollect, []*access{c.inOrder(n.inputs[0])}, v.size, n1
	default:
		l.form, l.ins, l.n, l.rows, l.inner = formReduce, []*access{c.inOrder(n.inputs[0])}, n1, before, after
	}
	c.emit(l)
}

// concat puts rows side by side if there are rows, and copies boxes otherwise.
func (c *compiler) concat(n *node, v *value) {
	axis := n.attr.(int)
	dims := n.shape.Dimensions
	rows := product(dims[:axis])
	if rows <= 1 || v.size == 0 {
		l := &lop{form: formOpaque, node: n, outs: []*value{v}, opaque: joinBytes{}}
		for _, x := range n.inputs {
			l.ins = append(l.ins, c.densely(x))
		}
		c.emit(l)
		return
	}
	l := &lop{form: formConcat, node: n, outs: []*value{v}, rows: rows}
	for _, x := range n.inputs {
		if size := x.shape.Size(); size > 0 {
			l.ins = append(l.ins, c.views[x])
			l.chunks = append(l.chunks, size/rows)
		}
	}
	c.emit(l)
}

// pad places elements in rows of a fill value.
func (c *compiler) pad(n *node, v *value) {
	attr := n.attr.([]compute.PadAxis)
	from, dims := n.inputs[0].shape.Dimensions, n.shape.Dimensions
	k := 0
	for k < len(attr) && attr[k] == (compute.PadAxis{}) {
		k++
	}
	if k == len(attr) {
		c.views[n] = c.views[n.inputs[0]]
		return
	}
	if rows := product(dims[:k]); rows > 1 && n.inputs[0].shape.Size() > 0 && v.size > 0 && product(dims[k:]) < 1<<16 {
		l := &lop{form: formPad, node: n, outs: []*value{v}, rows: rows, width: product(dims[k:])}
		l.ins = []*access{c.views[n.inputs[0]], c.views[n.inputs[1]].broadcast(dims, nil)}
		to := denseStrides(dims[k:])
		off := 0
		for i, a := range attr[k:] {
			off += a.Start * to[i]
			to[i] *= a.Interior + 1
		}
		l.place = make([]int32, product(from[k:]))
		fillIndex(l.place, from[k:], to)
		for i := range l.place {
			l.place[i] += int32(off)
		}
		c.emit(l)
		return
	}
	c.emit(&lop{form: formOpaque, node: n, ins: []*access{c.densely(n.inputs[0]), c.densely(n.inputs[1])},
		outs: []*value{v}, opaque: padStep{attr}})
}

// opaqueStep emits an operation that is a step of its own, on dense operands.
func (c *compiler) opaqueStep(n *node) {
	l := &lop{form: formOpaque, node: n, opaque: opaqueOf(c, n)}
	for _, x := range n.inputs {
		l.ins = append(l.ins, c.densely(x))
	}
	outs := n.multi
	if outs == nil {
		outs = []shapes.Shape{n.shape}
	}
	for _, s := range outs {
		l.outs = append(l.outs, c.newValue(s.DType, s.Size()))
	}
	if n.multi == nil {
		c.views[n] = dense(l.outs[0], n.shape.Dimensions)
	}
	c.results[n] = l.outs
	c.emit(l)
}
