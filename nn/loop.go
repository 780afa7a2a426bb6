package nn

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
)

// Loop repeats body on a state while its first element, a bool scalar, holds, and returns the last state. Gradients do not flow
// through it.
//
// The body must make all it uses from the state it is given: weights are part of the state, too, and cost nothing if they are passed
// on unchanged. On XLA, moreover, a kind of reduction (sum, max, argmax and so on, of a type) can be used in one function of a
// program alone: in the body of a loop, or outside of it.
func Loop(state []*Node, body func(state []*Node) []*Node) []*Node {
	g := state[0].Graph()
	closure := func(f func(s []*Node) []*Node) *Function {
		return NewClosure(g, func(g *Graph) []*Node {
			s := make([]*Node, len(state))
			for i, x := range state {
				s[i] = Parameter(g, fmt.Sprintf("state %d", i), x.Shape())
			}
			return f(s)
		})
	}
	more := closure(func(s []*Node) []*Node { return s[:1] })
	next := closure(func(s []*Node) []*Node {
		out := body(s)
		for i := range out {
			out[i] = StopGradient(out[i])
		}
		return out
	})
	return While(more, next, state...)
}
