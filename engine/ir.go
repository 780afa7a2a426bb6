package engine

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// node is a value of a function being built: an operation, its operands and its result. An operation with several
// results is one node without a shape of its own, and a node per result that selects it (see result).
type node struct {
	fn     *Function
	id     int // position in fn.nodes; operands come first
	op     compute.OpType
	inputs []*node
	shape  shapes.Shape
	attr   any
	multi  []shapes.Shape // shapes of the results, if there are several

	constant ptr // the elements of a constant
}

// opResult marks nodes that select one result of an operation with several; attr is its number.
const opResult = compute.OpTypeInvalid

// pure reports whether two nodes with the same operands and attributes are the same value.
func pure(op compute.OpType) bool {
	switch op {
	case compute.OpTypeParameter, compute.OpTypeCapturedValue, compute.OpTypeConstant, compute.OpTypeWhile,
		compute.OpTypeIf, compute.OpTypeSort, compute.OpTypeCall:
		return false
	}
	return true
}

// newNode returns a node of f, an earlier one if it is the same value.
func (f *Function) newNode(op compute.OpType, shape shapes.Shape, attr any, inputs ...*node) *node {
	var key string
	if pure(op) {
		var b strings.Builder
		fmt.Fprintf(&b, "%d %s %+v", op, shape, attr)
		for _, x := range inputs {
			fmt.Fprintf(&b, " %d", x.id)
		}
		key = b.String()
		if n, ok := f.known[key]; ok {
			return n
		}
	}
	n := &node{fn: f, id: len(f.nodes), op: op, inputs: inputs, shape: shape, attr: attr}
	f.nodes = append(f.nodes, n)
	if key != "" {
		f.known[key] = n
	}
	return n
}

// newMulti returns the results of an operation that has several.
func (f *Function) newMulti(op compute.OpType, results []shapes.Shape, attr any, inputs ...*node) []*node {
	n := f.newNode(op, shapes.Invalid(), attr, inputs...)
	n.multi = results
	out := make([]*node, len(results))
	for i, s := range results {
		out[i] = f.newNode(opResult, s, i, n)
	}
	return out
}

// values turns nodes into what the interfaces of GoMLX carry.
func values(nodes []*node) []compute.Value {
	out := make([]compute.Value, len(nodes))
	for i, n := range nodes {
		out[i] = n
	}
	return out
}

// local returns what v is called in f: itself, or the captured value if v belongs to a function around f.
func (f *Function) local(what string, v compute.Value) (*node, error) {
	n, ok := v.(*node)
	if !ok || n == nil {
		return nil, fmt.Errorf("%s: operand of type %T is not a value of backend %s", what, v, Name)
	}
	if n.fn == f {
		return n, nil
	}
	for g := f.parent; g != nil; g = g.parent {
		if g == n.fn {
			return f.capture(n), nil
		}
	}
	return nil, fmt.Errorf("%s: operand belongs to function %q, which does not enclose %q", what, n.fn.name, f.name)
}

// capture brings a value of an enclosing function into f, one level at a time.
func (f *Function) capture(n *node) *node {
	if n.fn != f.parent {
		n = f.parent.capture(n)
	}
	for i, c := range f.captured {
		if c == n {
			return f.captures[i]
		}
	}
	c := f.newNode(compute.OpTypeCapturedValue, n.shape, len(f.captured))
	f.captured = append(f.captured, n)
	f.captures = append(f.captures, c)
	return c
}

// operands checks that f can be extended and brings the operands of an operation into it.
func (f *Function) operands(op compute.OpType, in ...compute.Value) ([]*node, error) {
	what := op.String()
	if err := f.open(what); err != nil {
		return nil, err
	}
	out := make([]*node, len(in))
	for i, v := range in {
		var err error
		if out[i], err = f.local(what, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}
