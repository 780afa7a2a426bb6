package envtest

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/internal/rowbytes"
	"github.com/gfnem/gfnem/internal/panics"
)

// answer is all that the environment says about one state, by action and by backward action.
type answer struct {
	state string
	next  []move // by action
	prev  []move // by backward action
}

// move is what an action, or a backward action, does.
type move struct {
	legal   bool
	to      string // the child, or the parent
	reverse int    // Back, or Redo
	allowed bool   // whether the return is legal where the move led
	end     string // where the return leads
}

// build makes the graph that answers for a batch of states.
func (c *checker) build(in []*Node) []*Node {
	defer panics.WithError()
	s := gfn.State(in)
	a, b := c.env.Actions(), c.env.BackActions()
	legal, legalBack := c.env.Legal(s), c.env.LegalBack(s)
	n := s[0].Shape().Dim(0)
	c.shape("Legal", legal, dtypes.Bool, n, a)
	c.shape("LegalBack", legalBack, dtypes.Bool, n, b)

	wide, actions := s.Repeat(a), counter(s, a)
	child := c.env.Step(wide, actions)
	back := c.env.Back(wide, actions)
	c.shapes("Step", child, wide)
	c.shape("Back", back, dtypes.Int32, n*a)
	undone := c.env.Undo(child, back)
	c.shapes("Undo", undone, wide)

	wideBack, backs := s.Repeat(b), counter(s, b)
	parent := c.env.Undo(wideBack, backs)
	redo := c.env.Redo(wideBack, backs)
	c.shapes("Undo", parent, wideBack)
	c.shape("Redo", redo, dtypes.Int32, n*b)
	redone := c.env.Step(parent, redo)
	c.shapes("Step", redone, wideBack)

	out := []*Node{number(legal), back, at(c.env.LegalBack(child), back), number(legalBack), redo, at(c.env.Legal(parent), redo)}
	for _, state := range []gfn.State{child, undone, parent, redone} {
		out = append(out, state...)
	}
	return out
}

func number(mask *Node) *Node { return ConvertDType(mask, dtypes.Int32) }

// at reads mask [N,A] at i [N]; outside of the mask it is 0.
func at(mask, i *Node) *Node { return gfn.Pick(number(mask), i) }

// counter numbers k copies of every state from 0 to k-1.
func counter(s gfn.State, k int) *Node {
	n := s[0].Shape().Dim(0)
	return Reshape(Iota(s[0].Graph(), shapes.Make(dtypes.Int32, n, k), 1), n*k)
}

// shape stops building a graph whose shapes are wrong.
func (c *checker) shape(method string, x *Node, dtype dtypes.DType, dims ...int) {
	if want := shapes.Make(dtype, dims...); !x.Shape().Equal(want) {
		c.badShape = fmt.Errorf("%s returns %s, not %s", method, x.Shape(), want)
		panic(c.badShape)
	}
}

func (c *checker) shapes(method string, got, want gfn.State) {
	if len(got) != len(want) {
		c.badShape = fmt.Errorf("%s returns %d tensors, not %d", method, len(got), len(want))
		panic(c.badShape)
	}
	for i := range got {
		c.shape(fmt.Sprintf("%s (tensor %d)", method, i), got[i], want[i].DType(), want[i].Shape().Dimensions...)
	}
}

// ask returns the answers for up to n states, in one call on a batch of n.
func (c *checker) ask(states []string, n int) (answers []answer, ok bool) {
	out, err := c.probe.Call(c.state.Join(states, n))
	if err != nil {
		if c.badShape != nil {
			c.broke(lawShape, "%v", c.badShape)
		} else {
			c.broke(lawRun, "%v", err)
		}
		return nil, false
	}
	ints := make([][]int32, 6)
	for i := range ints {
		ints[i] = tensors.MustCopyFlatData[int32](out[i])
	}
	rows := make([][]string, 4)
	for i := range rows {
		rows[i] = rowbytes.Of(out[6+i*len(c.state) : 6+(i+1)*len(c.state)])
	}
	moves := func(i, count, firstInt, firstRow int) []move {
		m := make([]move, count)
		for j := range m {
			k := i*count + j
			m[j] = move{
				legal: ints[firstInt][k] != 0, reverse: int(ints[firstInt+1][k]), allowed: ints[firstInt+2][k] != 0,
				to: rows[firstRow][k], end: rows[firstRow+1][k],
			}
		}
		return m
	}
	for i, s := range states {
		answers = append(answers, answer{
			state: s, next: moves(i, c.env.Actions(), 0, 0), prev: moves(i, c.env.BackActions(), 3, 2),
		})
	}
	return answers, true
}
