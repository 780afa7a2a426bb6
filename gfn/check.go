package gfn

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/blame"
)

// checked is an environment whose answers have the shapes that Env states: what has others is often broadcast to what
// is wanted, without a word.
type checked struct{ Env }

func check(env Env) checked {
	if c, ok := env.(checked); ok {
		return c
	}
	return checked{env}
}

func (e checked) method(name string) blame.Func { return blame.Method(e.Env, name) }

// positive returns n, which a method returned.
func (e checked) positive(name string, n int) int {
	if n < 1 {
		e.method(name).Panicf("is %d, not 1 or more", n)
	}
	return n
}

// mask returns what a method says about the moves of states.
func (e checked) mask(name string, mask *Node, s State, moves int) *Node {
	return e.method(name).Typed(mask, dtypes.Bool, Batch(s).Size(), moves)
}

// choice returns the moves that a method chose in states.
func (e checked) choice(name string, a *Node, s State) *Node {
	return e.method(name).Typed(a, actionType, Batch(s).Size())
}

func (e checked) Steps() int       { return e.positive("Steps", e.Env.Steps()) }
func (e checked) Actions() int     { return e.positive("Actions", e.Env.Actions()) }
func (e checked) BackActions() int { return e.positive("BackActions", e.Env.BackActions()) }

func (e checked) Initial(x Batch) State {
	return blame.Rows(e.method("Initial"), e.Env.Initial(x), x.Size())
}

func (e checked) Legal(s State) *Node { return e.mask("Legal", e.Env.Legal(s), s, e.Actions()) }

func (e checked) LegalBack(s State) *Node {
	return e.mask("LegalBack", e.Env.LegalBack(s), s, e.BackActions())
}

func (e checked) Step(s State, a *Node) State {
	return blame.Like(e.method("Step"), e.Env.Step(s, a), s)
}

func (e checked) Undo(s State, b *Node) State {
	return blame.Like(e.method("Undo"), e.Env.Undo(s, b), s)
}

func (e checked) Back(s State, a *Node) *Node { return e.choice("Back", e.Env.Back(s, a), s) }
func (e checked) Redo(s State, b *Node) *Node { return e.choice("Redo", e.Env.Redo(s, b), s) }

// env is the environment, checked.
func (n Net) env() checked { return check(n.Env) }

// heads asks the policy about k states of each observation, and checks the answer.
func (n Net) heads(x Batch, s State, k int) Heads {
	states := Batch(s).Size()
	if states != x.Size()*k {
		fail("%d states do not belong to %d observations, %d to each", states, x.Size(), k)
	}
	return n.checked(blame.Method(n.Policy, "Heads"), n.Policy.Heads(n.Scope, x, s, k), states)
}

// headsAlong asks the policy about the states of trajectories of observations, row b*T+t being state t of observation b.
func (n Net) headsAlong(x Batch, states []State) Heads {
	if p, ok := n.Policy.(Causal); ok {
		return n.checked(blame.Method(p, "HeadsAlong"), p.HeadsAlong(n.Scope, x, states), x.Size()*len(states))
	}
	return n.heads(x, stackStates(states), len(states))
}

// checked returns what the policy has said about so many states.
func (n Net) checked(f blame.Func, h Heads, states int) Heads {
	f.Part("Forward").Floats(h.Forward, states, n.env().Actions())
	if h.Backward != nil {
		f.Part("Backward").Typed(h.Backward, h.Forward.DType(), states, n.env().BackActions())
	}
	if h.Flow != nil {
		f.Part("Flow").Typed(h.Flow, h.Forward.DType(), states)
	}
	return h
}

// floats stops the building of a graph unless an argument has the right shape.
func floats(name string, x *Node, dims ...int) { blame.Argument("gfn: "+name).Floats(x, dims...) }

// factor checks a number of an objective.
func factor(name string, v float64) {
	if !(v >= 0) || math.IsInf(v, 1) {
		fail("%s is %g, not a finite number from 0 on", name, v)
	}
}

// count checks a number of things, of which 0 stands for a default.
func count(name string, n int) {
	if n < 0 {
		fail("%s is %d, which is below 0", name, n)
	}
}
