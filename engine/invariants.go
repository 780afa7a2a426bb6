package engine

import "github.com/gomlx/compute"

// unchanged reports which elements of a loop's state keep their value: those that the body returns as they came, or as a
// copy of an element that began as the same value and keeps it too.
func unchanged(body *Function, state []*node) []bool {
	keep := make([]bool, len(state))
	for i := range keep {
		keep[i] = true
	}
	same := func(i int) bool {
		switch o := body.outputs[i]; o.op {
		case compute.OpTypeParameter:
			j := o.attr.(int)
			return keep[j] && state[j] == state[i]
		case compute.OpTypeCapturedValue:
			return body.captured[o.attr.(int)] == state[i]
		}
		return false
	}
	for again := true; again; { // until nothing depends on what was found to change
		again = false
		for i := range keep {
			if keep[i] && !same(i) {
				keep[i], again = false, true
			}
		}
	}
	return keep
}

// variation says what a value inside a loop depends on.
type variation int

const (
	onNothing variation = iota // but constants
	onOutside                  // values from outside the loop
	onState                    // the state that changes
)

// hoist rebuilds a closure of a loop without what does not change in it. Elements of the state that keep their value become
// captured values; what depends on captured values alone is computed by the function around the loop, once.
type hoist struct {
	outer    *Function
	from, to *Function
	state    []*node // in outer, where the loop begins
	keep     []bool  // elements of the state that do not change
	depends  map[*node]variation
	made     map[*node]int   // elements in memory that a value is made of
	inner    map[*node]*node // what nodes of from are called in to
	lifted   map[*node]*node // and in outer
}

// hoisted returns a closure of f for a loop with the given initial state. Parameters and, in the body, outputs that keep
// their value are gone.
func (f *Function) hoisted(from *Function, state []*node, keep []bool, body bool) *Function {
	h := &hoist{outer: f, from: from, to: f.builder.newFunction("", f), state: state, keep: keep,
		depends: map[*node]variation{}, made: map[*node]int{}, inner: map[*node]*node{}, lifted: map[*node]*node{}}
	for i, p := range from.params {
		if !keep[i] {
			q := h.to.newNode(p.op, p.shape, len(h.to.params))
			h.to.params, h.to.names = append(h.to.params, q), append(h.to.names, from.names[i])
			h.inner[p] = q
		}
	}
	needed := from.needed()
	for i, n := range from.nodes {
		if needed[i] {
			h.classify(n)
			if h.depends[n] == onState {
				h.inside(n)
			}
		}
	}
	for i, o := range from.outputs {
		if !body || !keep[i] {
			h.to.outputs = append(h.to.outputs, h.inside(o))
		}
	}
	h.to.returned = true
	return h.to
}

// classify finds out what a node depends on and what it is made of, once that is known of its operands.
func (h *hoist) classify(n *node) {
	kind, read := onNothing, 0
	for _, x := range n.inputs {
		kind, read = max(kind, h.depends[x]), max(read, h.made[x])
	}
	size := 0
	if n.multi == nil {
		size = n.shape.Size()
	}
	switch {
	case n.op == compute.OpTypeParameter && h.keep[n.attr.(int)], n.op == compute.OpTypeCapturedValue:
		kind = onOutside
	case n.op == compute.OpTypeParameter, n.multi != nil, !pure(n.op) && n.op != compute.OpTypeConstant:
		kind = onState
	}
	h.depends[n] = kind
	h.made[n] = size
	if isView(n) || isMap(n) {
		h.made[n] = min(size, read)
	}
}

// isView reports whether an operation only says how its operand is read.
func isView(n *node) bool {
	switch n.op {
	case compute.OpTypeReshape, compute.OpTypeBroadcastInDim, compute.OpTypeTranspose, compute.OpTypeSlice, compute.OpTypeReverse:
		return true
	case compute.OpTypeBitcast:
		return sizeOf(n.shape.DType) == sizeOf(n.inputs[0].shape.DType)
	}
	return false
}

// pays reports whether n should be computed outside the loop. A view costs nothing where it is used, and what is larger
// than all that it is made of is computed faster than read.
func (h *hoist) pays(n *node) bool {
	switch {
	case h.depends[n] != onOutside || isView(n):
		return false
	case isMap(n):
		return h.made[n] >= n.shape.Size()
	}
	return true
}

// inside returns what n is called in the new closure.
func (h *hoist) inside(n *node) *node {
	m, ok := h.inner[n]
	if !ok {
		if h.pays(n) {
			m = h.to.capture(h.outside(n))
		} else {
			m = copied(h.to, n, func(x *node) *node { return h.operand(n, x) })
		}
		h.inner[n] = m
	}
	return m
}

// operand returns what x, which n reads, is called in the new closure. Only views and products read a view without ever
// copying it; others get one that was copied outside, unless it repeats elements.
func (h *hoist) operand(n, x *node) *node {
	if h.depends[x] == onOutside && isView(x) && !isView(n) && n.op != compute.OpTypeDotGeneral && h.made[x] >= x.shape.Size() {
		return h.to.capture(h.outside(x))
	}
	return h.inside(x)
}

// outside returns what n, which does not change, is called in the function around the loop.
func (h *hoist) outside(n *node) *node {
	m, ok := h.lifted[n]
	if !ok {
		switch n.op {
		case compute.OpTypeParameter:
			m = h.state[n.attr.(int)]
		case compute.OpTypeCapturedValue:
			m = h.from.captured[n.attr.(int)]
		default:
			m = copied(h.outer, n, h.outside)
		}
		h.lifted[n] = m
	}
	return m
}

// copied returns a node of f that does what n does.
func copied(f *Function, n *node, operand func(*node) *node) *node {
	if n.op == compute.OpTypeConstant {
		return f.constant(n.shape, n.constant)
	}
	in := make([]*node, len(n.inputs))
	for i, x := range n.inputs {
		in[i] = operand(x)
	}
	m := f.newNode(n.op, n.shape, n.attr, in...)
	m.multi = n.multi
	return m
}
