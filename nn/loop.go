package nn

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/program"
)

// Loop repeats body on a state, a struct of nodes, while a bool scalar made from it holds, and returns the last state.
// Gradients do not flow through it.
//
// The body must make all it uses from the state it is given: weights are part of the state, too, and cost nothing if
// they are passed on unchanged. On XLA, moreover, two things can be used in one function of a program alone, in the
// body of a loop or outside of it: a kind of reduction (sum, max, argmax and so on, of a type), and a scalar of the
// store that a program has (AddScalar, ZerosLike and the like take them from there; Const makes a new one).
func Loop[S any](state S, more func(S) *Node, body func(S) S) S {
	nodes := program.Nodes(state)
	g := nodes[0].Graph()
	closure := func(f func(S) []*Node) *Function {
		return NewClosure(g, func(g *Graph) []*Node {
			i := 0
			return f(program.Map(state, func(x *Node) *Node {
				i++
				return Parameter(g, fmt.Sprintf("state %d", i-1), x.Shape())
			}))
		})
	}
	goesOn := closure(func(s S) []*Node { return []*Node{more(s)} })
	next := closure(func(s S) []*Node { return program.Nodes(body(s)) })
	return program.Map(program.Replace(state, While(goesOn, next, nodes...)), StopGradient)
}

// Repeat is Loop with a given number of rounds, which are counted from 0: no backend has to look at the state to know
// whether to go on.
func Repeat[S any](rounds int, state S, body func(round *Node, state S) S) S {
	type counted struct {
		Round *Node
		State S
	}
	g := program.Nodes(state)[0].Graph()
	count := func(n int) *Node { return Const(g, int32(n)) }
	more := func(s counted) *Node { return LessThan(s.Round, count(rounds)) }
	return Loop(counted{count(0), state}, more, func(s counted) counted {
		return counted{Add(s.Round, count(1)), body(s.Round, s.State)}
	}).State
}
