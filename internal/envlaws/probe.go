package envlaws

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/laws"
	"github.com/gfnem/gfnem/internal/rows"
)

// answer is all that the environment says about one state, by action and by backward action.
type answer struct {
	state      string
	next, prev []move
}

// move is what an action, or a backward action, does.
type move struct {
	legal   bool
	reverse int    // Back, or Redo
	allowed bool   // whether the return is legal where the move led
	to      string // the child, or the parent
	end     string // where the return leads
}

// answers are the moves from a batch of states.
type answers[T any] struct{ Next, Prev moves[T] }

type moves[T any] struct {
	Legal, Reverse, Allowed T
	To, End                 []T
}

// side is what an environment says about actions, or about backward actions. The names are those of its methods.
type side struct {
	legalName, moveName, reverseName string

	count   int
	legal   func(gfn.State) *Node
	move    func(gfn.State, *Node) gfn.State
	reverse func(gfn.State, *Node) *Node
}

// build makes the graph that answers for a batch of states.
func (c *Checker) build(s gfn.State) answers[*Node] {
	return answers[*Node]{c.actions.moves(s, c.backward), c.backward.moves(s, c.actions)}
}

// moves takes all moves from each state, and returns.
func (d side) moves(s gfn.State, other side) (m moves[*Node]) {
	m.Legal = d.mask(s)
	from, k := s.Repeat(d.count), m.Legal.Shape().Size()
	a := Reshape(Iota(m.Legal.Graph(), m.Legal.Shape(), 1), k)
	to := d.take(from, a)
	m.Reverse = d.reverse(from, a)
	shape(d.reverseName, m.Reverse, dtypes.Int32, k)
	m.Allowed = gfn.Pick(other.mask(to), m.Reverse) // outside of the mask it is 0
	m.To, m.End = to, other.take(to, m.Reverse)
	return m
}

// mask marks the legal moves with 1.
func (d side) mask(s gfn.State) *Node {
	legal := d.legal(s)
	shape(d.legalName, legal, dtypes.Bool, gfn.Batch(s).Size(), d.count)
	return ConvertDType(legal, dtypes.Int32)
}

// take moves each state.
func (d side) take(s gfn.State, a *Node) gfn.State {
	to := d.move(s, a)
	if len(to) != len(s) {
		panic(laws.Break(Shape, "%s returns %d tensors, not %d", d.moveName, len(to), len(s)))
	}
	for i := range to {
		shape(fmt.Sprintf("%s (tensor %d)", d.moveName, i), to[i], s[i].DType(), s[i].Shape().Dimensions...)
	}
	return to
}

// shape stops building a graph whose shapes are wrong.
func shape(method string, x *Node, dtype dtypes.DType, dims ...int) {
	if want := shapes.Make(dtype, dims...); !x.Shape().Equal(want) {
		panic(laws.Break(Shape, "%s returns %s, not %s", method, x.Shape(), want))
	}
}

// ask returns the answers for up to n states, in one call on a batch of n.
func (c *Checker) ask(states []string, n int) (all []answer, ok bool) {
	out, err := c.probe.Call(rows.Join(c.like, states, n))
	if err != nil {
		c.Failed(err, Run)
		return nil, false
	}
	next, prev := read(out.Next, n), read(out.Prev, n)
	for i, s := range states {
		all = append(all, answer{s, next[i], prev[i]})
	}
	return all, true
}

// read returns the moves from each of n states.
func read(m moves[*tensors.Tensor], n int) [][]move {
	ints := tensors.MustCopyFlatData[int32]
	legal, reverse, allowed, to, end := ints(m.Legal), ints(m.Reverse), ints(m.Allowed), rows.Of(m.To), rows.Of(m.End)
	out := make([][]move, n)
	for k := range to {
		i := k * n / len(to)
		out[i] = append(out[i], move{legal[k] != 0, int(reverse[k]), allowed[k] != 0, to[k], end[k]})
	}
	return out
}
