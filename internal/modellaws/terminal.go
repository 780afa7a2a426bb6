package modellaws

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
)

// terminal says whether no action is legal in each latent, and whether some way back, taken forward again, is a legal
// way from the initial state to it; both are [B] bool.
func (c *Checker) terminal(x gfn.Batch, z gfn.State) (ended, reached *Node) {
	ended = gfn.Terminal(c.Env, z)
	reached = OnesLike(ended)
	s := z
	for range c.Env.Steps() {
		legalBack := c.Env.LegalBack(s)
		moved := LogicalAny(legalBack, 1)
		back := ArgMax(ConvertDType(legalBack, dtypes.Int32), 1, dtypes.Int32) // the first legal one
		before, action := c.Env.Undo(s, back), c.Env.Redo(s, back)
		legal := GreaterThan(gfn.Pick(ConvertDType(c.Env.Legal(before), dtypes.Int32), action), ZerosLike(action))
		ok := LogicalAnd(legal, same(c.Env.Step(before, action), s))
		reached = LogicalAnd(reached, LogicalOr(ok, LogicalNot(moved)))
		for i := range s {
			before[i] = Where(moved, before[i], s[i])
		}
		s = before
	}
	return ended, LogicalAnd(reached, same(s, c.Env.Initial(x)))
}

// same marks the rows in which all tensors of two states are equal, [B].
func same(a, b gfn.State) *Node {
	equal := make([]*Node, len(a))
	for i := range a {
		equal[i] = Reshape(Equal(a[i], b[i]), a[i].Shape().Dim(0), -1)
	}
	return LogicalAll(Concatenate(equal, 1), 1)
}
