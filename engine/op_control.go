package engine

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// subAttr holds the functions that an operation runs. The operands of such an operation are its own, then what each
// function captured, in order.
type subAttr struct {
	subs []*Function
	own  int // operands before the captured values

	axis   int  // of Sort
	stable bool // of Sort
}

// sub checks a closure of f.
func (f *Function) sub(what string, c compute.Function) (*Function, error) {
	g, ok := c.(*Function)
	switch {
	case !ok || g == nil:
		return nil, fmt.Errorf("%s: %T is not a function of backend %s", what, c, Name)
	case g.parent != f:
		return nil, fmt.Errorf("%s: the function is not a closure of %q", what, f.name)
	case !g.returned:
		return nil, fmt.Errorf("%s: Return was not called on the closure", what)
	}
	return g, nil
}

// takes checks the parameters of g.
func (g *Function) takes(what string, want []shapes.Shape) error {
	if len(g.params) != len(want) {
		return fmt.Errorf("%s: the function takes %d parameters, not %d", what, len(g.params), len(want))
	}
	for i, p := range g.params {
		if !p.shape.Equal(want[i]) {
			return fmt.Errorf("%s: parameter %d has shape %s, not %s", what, i, p.shape, want[i])
		}
	}
	return nil
}

// gives checks the outputs of g.
func (g *Function) gives(what string, want []shapes.Shape) error {
	if len(g.outputs) != len(want) {
		return fmt.Errorf("%s: the function returns %d values, not %d", what, len(g.outputs), len(want))
	}
	for i, o := range g.outputs {
		if !o.shape.Equal(want[i]) {
			return fmt.Errorf("%s: output %d has shape %s, not %s", what, i, o.shape, want[i])
		}
	}
	return nil
}

func shapesOf(nodes []*node) []shapes.Shape {
	out := make([]shapes.Shape, len(nodes))
	for i, n := range nodes {
		out[i] = n.shape
	}
	return out
}

var truth = []shapes.Shape{shapes.Make(boolType)}

// withSubs adds an operation that runs closures.
func (f *Function) withSubs(op compute.OpType, out []shapes.Shape, a subAttr, in []*node) []compute.Value {
	a.own = len(in)
	for _, g := range a.subs {
		in = append(in, g.captured...)
	}
	return values(f.newMulti(op, out, a, in...))
}

// While runs body while cond holds.
func (f *Function) While(cond, body compute.Function, state ...compute.Value) ([]compute.Value, error) {
	in, err := f.operands(compute.OpTypeWhile, state...)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return nil, fmt.Errorf("While: there is no state")
	}
	c, err := f.sub("While: condition", cond)
	if err != nil {
		return nil, err
	}
	b, err := f.sub("While: body", body)
	if err != nil {
		return nil, err
	}
	s := shapesOf(in)
	for _, err := range []error{c.takes("While: condition", s), c.gives("While: condition", truth),
		b.takes("While: body", s), b.gives("While: body", s)} {
		if err != nil {
			return nil, err
		}
	}
	return f.loop(c, b, in), nil
}

// loop adds a While of what changes. An element of the state that keeps its value is its own result, and a loop in which
// nothing changes never runs, or never ends.
func (f *Function) loop(cond, body *Function, state []*node) []compute.Value {
	keep := unchanged(body, state)
	cond, body = f.hoisted(cond, state, keep, false), f.hoisted(body, state, keep, true)
	out := values(state)
	var changing []*node
	var where []int // in the state
	for i, n := range state {
		if !keep[i] {
			changing, where = append(changing, n), append(where, i)
		}
	}
	if len(changing) == 0 {
		return out
	}
	for k, v := range f.withSubs(compute.OpTypeWhile, shapesOf(changing), subAttr{subs: []*Function{cond, body}}, changing) {
		out[where[k]] = v
	}
	return out
}

// If runs one of two branches.
func (f *Function) If(pred compute.Value, yes, no compute.Function) ([]compute.Value, error) {
	in, err := f.operands(compute.OpTypeIf, pred)
	if err != nil {
		return nil, err
	}
	if !in[0].shape.Equal(truth[0]) {
		return nil, fmt.Errorf("If: the predicate has shape %s, not %s", in[0].shape, truth[0])
	}
	y, err := f.sub("If: true branch", yes)
	if err != nil {
		return nil, err
	}
	n, err := f.sub("If: false branch", no)
	if err != nil {
		return nil, err
	}
	out := shapesOf(y.outputs)
	for _, err := range []error{y.takes("If: true branch", nil), n.takes("If: false branch", nil), n.gives("If: false branch", out)} {
		if err != nil {
			return nil, err
		}
	}
	return f.withSubs(compute.OpTypeIf, out, subAttr{subs: []*Function{y, n}}, in), nil
}

// Sort orders lines along an axis by a comparator of the scalars (left 0, right 0, left 1, right 1, ...).
func (f *Function) Sort(comparator compute.Function, axis int, stable bool, inputs ...compute.Value) ([]compute.Value, error) {
	in, err := f.operands(compute.OpTypeSort, inputs...)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return nil, fmt.Errorf("Sort: there is nothing to sort")
	}
	rank := in[0].shape.Rank()
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		return nil, fmt.Errorf("Sort: %s has no axis %d", in[0].shape, axis)
	}
	var params []shapes.Shape
	for i, n := range in {
		if !n.shape.EqualDimensions(in[0].shape) {
			return nil, fmt.Errorf("Sort: operand %d has shape %s, the first one %s", i, n.shape, in[0].shape)
		}
		s := shapes.Make(n.shape.DType)
		params = append(params, s, s)
	}
	c, err := f.sub("Sort: comparator", comparator)
	if err != nil {
		return nil, err
	}
	for _, err := range []error{c.takes("Sort: comparator", params), c.gives("Sort: comparator", truth)} {
		if err != nil {
			return nil, err
		}
	}
	a := subAttr{subs: []*Function{c}, axis: axis, stable: stable}
	return f.withSubs(compute.OpTypeSort, shapesOf(in), a, in), nil
}

// Call runs a named function.
func (f *Function) Call(target compute.Function, inputs ...compute.Value) ([]compute.Value, error) {
	in, err := f.operands(compute.OpTypeCall, inputs...)
	if err != nil {
		return nil, err
	}
	g, ok := target.(*Function)
	switch {
	case !ok || g == nil || g.builder != f.builder:
		return nil, fmt.Errorf("Call: the target is not a function of this computation")
	case !g.returned:
		return nil, fmt.Errorf("Call: Return was not called on %q", g.name)
	case g.parent != nil && g.parent != f:
		return nil, fmt.Errorf("Call: the target is a closure of another function")
	}
	if err := g.takes("Call", shapesOf(in)); err != nil {
		return nil, err
	}
	return f.withSubs(compute.OpTypeCall, shapesOf(g.outputs), subAttr{subs: []*Function{g}}, in), nil
}
