package nn

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
)

// Loop repeats body on a state while its first element, a bool scalar, holds, and returns the last state. Gradients do not flow
// through it.
//
// The body must make all it uses from the state it is given: weights are part of the state, too, and cost nothing if they are passed
// on unchanged. On XLA, moreover, two things can be used in one function of a program alone, in the body of a loop or outside of it: a kind of
// reduction (sum, max, argmax and so on, of a type), and a scalar of the store that a program has (AddScalar, ZerosLike and the
// like take them from there; Const makes a new one).
func Loop(state []*Node, body func(state []*Node) []*Node) []*Node {
	return LoopWhile(state, func(s []*Node) *Node { return s[0] }, body)
}

// Repeat is Loop with a given number of rounds, which are counted from 0: no backend has to look at the state to know whether to go on.
func Repeat(rounds int, state []*Node, body func(round *Node, state []*Node) []*Node) []*Node {
	g := state[0].Graph()
	count := func(n int) *Node { return Const(g, int32(n)) }
	all := append([]*Node{count(0)}, state...)
	out := LoopWhile(all, func(s []*Node) *Node { return LessThan(s[0], count(rounds)) }, func(s []*Node) []*Node {
		return append([]*Node{Add(s[0], count(1))}, body(s[0], s[1:])...)
	})
	return out[1:]
}

// LoopWhile is Loop with a condition that is made from the state.
func LoopWhile(state []*Node, more func(state []*Node) *Node, body func(state []*Node) []*Node) []*Node {
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
	goOn := closure(func(s []*Node) []*Node { return []*Node{more(s)} })
	out := While(goOn, closure(body), state...)
	for i := range out {
		out[i] = StopGradient(out[i])
	}
	return out
}
