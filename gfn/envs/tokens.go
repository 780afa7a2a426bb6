package envs

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
)

// Tokens assembles a sequence of any length up to Most from left to right, until it stops, so that every object has exactly
// one trajectory. Where the length is known, Sequence is the simpler one.
//
// A state is two tensors: the tokens [B,Most] int32, with Unset from the end on, and whether the sequence is complete, [B]
// int32, 0 or 1. Action v < Values appends token v, action Values stops.
type Tokens struct {
	Values int // of a token: 0..Values-1
	Most   int // tokens
}

var _ gfn.Env = Tokens{}

// tokens is a state.
type tokens struct{ Token, Stopped *Node }

func tokensOf(s gfn.State) tokens { return program.Of[tokens](s) }

func (s tokens) state() gfn.State { return program.Nodes(s) }

// length returns the number of tokens, [B].
func (s tokens) length() *Node { return chosen(s.Token) }

// Steps implements gfn.Env.
func (e Tokens) Steps() int { return e.Most + 1 }

// Actions implements gfn.Env.
func (e Tokens) Actions() int { return e.Values + 1 }

// BackActions implements gfn.Env: the only way back is to take back the stop, or else to drop the last token.
func (e Tokens) BackActions() int { return 1 }

// Initial implements gfn.Env: the empty sequence.
func (e Tokens) Initial(x gfn.Batch) gfn.State {
	if e.Values < 1 || e.Most < 1 {
		blame.Panicf("envs: Tokens of %d values, at most %d", e.Values, e.Most)
	}
	g, b := x[0].Graph(), x.Size()
	return tokens{unset(g, b, e.Most), Zeros(g, shapes.Make(index, b))}.state()
}

// Legal implements gfn.Env.
func (e Tokens) Legal(state gfn.State) *Node {
	s := tokensOf(state)
	open, n := IsZero(s.Stopped), s.length()
	room := InsertAxes(LogicalAnd(open, LessThan(n, AddScalar(ZerosLike(n), e.Most))), 1)
	return Concatenate([]*Node{BroadcastToDims(room, n.Shape().Size(), e.Values), InsertAxes(open, 1)}, 1)
}

// Step implements gfn.Env.
func (e Tokens) Step(state gfn.State, a *Node) gfn.State {
	s := tokensOf(state)
	stop := Equal(a, AddScalar(ZerosLike(a), e.Values))
	token := Where(stop, AddScalar(ZerosLike(a), Unset), a)
	return tokens{write(s.Token, s.length(), token), Where(stop, OnesLike(a), s.Stopped)}.state()
}

// LegalBack implements gfn.Env.
func (e Tokens) LegalBack(state gfn.State) *Node {
	s := tokensOf(state)
	n := Add(s.length(), s.Stopped)
	return InsertAxes(GreaterThan(n, ZerosLike(n)), 1)
}

// Undo implements gfn.Env.
func (e Tokens) Undo(state gfn.State, b *Node) gfn.State {
	s := tokensOf(state)
	n := s.length()
	shorter := write(s.Token, MinusOne(n), AddScalar(ZerosLike(n), Unset))
	return tokens{Where(IsZero(s.Stopped), shorter, s.Token), ZerosLike(s.Stopped)}.state()
}

// Back implements gfn.Env.
func (e Tokens) Back(s gfn.State, a *Node) *Node { return ZerosLike(a) }

// Redo implements gfn.Env.
func (e Tokens) Redo(state gfn.State, b *Node) *Node {
	s := tokensOf(state)
	return Where(IsZero(s.Stopped), gfn.Pick(s.Token, MinusOne(s.length())), AddScalar(ZerosLike(b), e.Values))
}

// Of returns objects: the first tokens of rows [B,Most] int32, as many as length [B] int32 says. It is for Sample of a
// model: no gradient flows back from objects.
func (e Tokens) Of(token, length *Node) gfn.State {
	token, length = constant(token), constant(length)
	inside := LessThan(Iota(token.Graph(), token.Shape(), 1), BroadcastToShape(InsertAxes(length, 1), token.Shape()))
	return tokens{Where(inside, token, AddScalar(ZerosLike(token), Unset)), OnesLike(length)}.state()
}
