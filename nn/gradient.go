package nn

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// WithGradients returns value with gradients of its own: grads turns the gradient of the result into those of the
// operands. What value was computed from gets no other gradient.
//
// GoMLX lets one replace the gradient of an identity alone. So the result is an identity that keeps its gradient, and the
// operands are identities that make theirs of it. A choice that is never taken ties them together.
func WithGradients(value *Node, operands []*Node, grads ...func(dy *Node) *Node) *Node {
	value = StopGradient(value)
	var dy *Node
	var tied *Node
	for i, x := range operands {
		one := corner(IdentityWithCustomGradient(x, func(_, _ *Node) *Node { return grads[i](dy) }))
		if tied == nil {
			tied = one
		} else {
			tied = Add(tied, one)
		}
	}
	never := BroadcastToShape(Const(value.Graph(), false), value.Shape())
	y := Where(never, BroadcastToShape(tied, value.Shape()), value)
	return IdentityWithCustomGradient(y, func(_, v *Node) *Node {
		dy = v
		return v
	})
}

// corner is the first element of x.
func corner(x *Node) *Node {
	if x.Rank() == 0 {
		return x
	}
	spec := make([]SliceAxisSpec, x.Rank())
	for i := range spec {
		spec[i] = AxisElem(0)
	}
	return Reshape(Slice(x, spec...))
}
