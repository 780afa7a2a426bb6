package engine

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
)

// maxFolded is the most elements of a result that is computed when a function is compiled.
const maxFolded = 1 << 16

// live returns the nodes that the outputs of the function need, operands first, and the outputs, with constants folded
// and operations that change nothing taken out.
func (c *compiler) live() (order, outputs []*node) {
	needed := c.fn.needed()
	listed := map[*node]bool{}
	for i, n := range c.fn.nodes {
		if needed[i] {
			s := c.simplify(n)
			order = append(order, c.extra...)
			c.extra = c.extra[:0]
			if !listed[s] {
				listed[s] = true
				order = append(order, s)
			}
		}
	}
	// Folding leaves operands that nothing needs any more.
	keep := map[*node]bool{}
	for _, n := range c.fn.outputs {
		outputs = append(outputs, c.fold[n])
		keep[c.fold[n]] = true
	}
	var list []*node
	for i := len(order) - 1; i >= 0; i-- {
		if n := order[i]; keep[n] {
			keep[n] = false
			list = append(list, n)
			for _, x := range n.inputs {
				if _, seen := keep[x]; !seen {
					keep[x] = true
				}
			}
		}
	}
	slices.Reverse(list)
	return list, outputs
}

// needed reports which nodes the outputs of f depend on.
func (f *Function) needed() []bool {
	needed := make([]bool, len(f.nodes))
	for _, n := range f.outputs {
		needed[n.id] = true
	}
	for i := len(f.nodes) - 1; i >= 0; i-- {
		if needed[i] {
			for _, x := range f.nodes[i].inputs {
				needed[x.id] = true
			}
		}
	}
	return needed
}

// simplify returns what a node becomes once its operands are simplified.
func (c *compiler) simplify(n *node) *node {
	out := n
	changed, constant := false, len(n.inputs) > 0 || n.op == compute.OpTypeIota
	in := make([]*node, len(n.inputs))
	for i, x := range n.inputs {
		in[i] = c.fold[x]
		changed = changed || in[i] != x
		constant = constant && in[i].op == compute.OpTypeConstant
	}
	if changed {
		out = &node{fn: n.fn, id: n.id, op: n.op, inputs: in, shape: n.shape, attr: n.attr, multi: n.multi}
	}
	switch {
	case constant && foldable(out):
		out = c.evaluate(out)
	case uniform(out):
		out = c.unspread(out)
	default:
		out = c.shortcut(out)
	}
	c.fold[n] = out
	return out
}

// uniform reports whether n is an elementwise operation on constants that are one number each, broadcast.
func uniform(n *node) bool {
	if !isMap(n) || n.shape.Size() == 0 || n.shape.Rank() == 0 {
		return false
	}
	for _, x := range n.inputs {
		for x.op == compute.OpTypeBroadcastInDim || x.op == compute.OpTypeReshape {
			x = x.inputs[0]
		}
		if x.op != compute.OpTypeConstant || x.shape.Size() != 1 {
			return false
		}
	}
	return true
}

// unspread computes a uniform operation once, and broadcasts the result.
func (c *compiler) unspread(n *node) *node {
	one := &node{fn: n.fn, id: n.id, op: n.op, shape: shapes.Make(n.shape.DType), attr: n.attr}
	for _, x := range n.inputs {
		for x.op != compute.OpTypeConstant {
			x = x.inputs[0]
		}
		one.inputs = append(one.inputs, &node{fn: n.fn, op: x.op, shape: shapes.Make(x.shape.DType), constant: x.constant})
	}
	k := c.evaluate(one)
	c.extra = append(c.extra, k)
	return &node{fn: n.fn, id: n.id, op: compute.OpTypeBroadcastInDim, shape: n.shape, attr: []int{}, inputs: []*node{k}}
}

func foldable(n *node) bool {
	switch n.op {
	case opResult, compute.OpTypeWhile, compute.OpTypeIf, compute.OpTypeSort, compute.OpTypeCall,
		compute.OpTypeRNGBitGenerator, compute.OpTypeBroadcastInDim:
		return false
	}
	return n.multi == nil && n.shape.Size() <= maxFolded
}

// evaluate computes a node whose operands are constants.
func (c *compiler) evaluate(n *node) *node {
	f := &Function{Function: notimplemented.Function{ErrFn: missing}, builder: c.fn.builder, known: map[string]*node{}}
	m := &node{fn: f, op: n.op, shape: n.shape, attr: n.attr}
	for i, x := range n.inputs {
		p := &node{fn: f, id: i, op: compute.OpTypeParameter, shape: x.shape, attr: i}
		f.params, f.nodes = append(f.params, p), append(f.nodes, p)
		m.inputs = append(m.inputs, p)
	}
	m.id = len(f.nodes)
	f.nodes = append(f.nodes, m)
	f.outputs = []*node{m}
	if n.op == compute.OpTypeIota {
		return &node{fn: n.fn, id: n.id, op: compute.OpTypeConstant, shape: n.shape, constant: count(n.shape.DType, n.shape.Size())}
	}
	p := compile(f, c.backend)
	fr := p.newFrame()
	for i, x := range n.inputs {
		fr.set(p.params, i, x.constant)
	}
	out := alloc(n.shape.Size() * sizeOf(n.shape.DType))
	fr.set(p.outputs, 0, out)
	fr.borrowAndRun()
	return &node{fn: n.fn, id: n.id, op: compute.OpTypeConstant, shape: n.shape, constant: out}
}

// count returns 0, 1, ..., n-1.
func count(t dtypes.DType, n int) ptr {
	p := alloc(n * sizeOf(t))
	from := alloc(n * 8)
	for i := range elems[int64](from, n) {
		elems[int64](from, n)[i] = int64(i)
	}
	if k := kernelOf(compute.OpTypeConvertDType, dtypes.Int64, t); k != nil {
		k(p, from, nil, nil, n)
		return p
	}
	return from
}

// shortcut takes out operations that return one of their operands.
func (c *compiler) shortcut(n *node) *node {
	same := func(x *node) *node {
		if x.shape.Equal(n.shape) {
			return x
		}
		return n
	}
	switch n.op {
	case compute.OpTypeMul:
		if isAll(n.inputs[0], 1) {
			return same(n.inputs[1])
		}
		if isAll(n.inputs[1], 1) {
			return same(n.inputs[0])
		}
	case compute.OpTypeDiv:
		if isAll(n.inputs[1], 1) {
			return same(n.inputs[0])
		}
	case compute.OpTypeSub:
		if isAll(n.inputs[1], 0) {
			return same(n.inputs[0])
		}
	case compute.OpTypeWhere:
		if isAll(n.inputs[0], 0) {
			return same(n.inputs[2])
		}
		if isAll(n.inputs[0], 1) {
			return same(n.inputs[1])
		}
	}
	return n
}

// isAll reports whether n is a constant of which every element is v, possibly broadcast. A zero is +0.
func isAll(n *node, v float64) bool {
	for n.op == compute.OpTypeBroadcastInDim || n.op == compute.OpTypeReshape {
		n = n.inputs[0]
	}
	if n.op != compute.OpTypeConstant || n.shape.Size() > 64 || n.shape.Size() == 0 {
		return false
	}
	k := kernelOf(compute.OpTypeConvertDType, dtypes.Float64, n.shape.DType)
	if n.shape.DType == dtypes.Float64 {
		k = copyN(8)
	}
	if k == nil {
		return false
	}
	x, want := v, uint64(0)
	k(ptr(&want), ptr(&x), nil, nil, 1)
	size := sizeOf(n.shape.DType)
	for i := range n.shape.Size() {
		if !slices.Equal(bytesAt(add(n.constant, i, size), size), bytesAt(ptr(&want), size)) {
			return false
		}
	}
	return true
}
