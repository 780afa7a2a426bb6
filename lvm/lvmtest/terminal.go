package lvmtest

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
)

// What terminal finds of a latent.
const (
	reached = iota
	unfinished
	unreachable
)

var reasons = map[int32]string{
	unfinished:  "can be built further",
	unreachable: "cannot be built from the initial state",
}

// terminal says of each latent, [B] int32, whether it is a terminal state: no action is legal in it, and some way back,
// taken forward again, is a legal way from the initial state to it.
func (c *checker) terminal(x gfn.Batch, z gfn.State) *Node {
	end := gfn.Terminal(c.env, z)
	good := end // [B]
	s := z
	for range c.env.Steps() {
		legalBack := c.env.LegalBack(s)
		moved := LogicalAny(legalBack, 1)
		back := ArgMax(ConvertDType(legalBack, dtypes.Int32), 1, dtypes.Int32) // the first legal one
		before, action := c.env.Undo(s, back), c.env.Redo(s, back)
		legal := GreaterThan(gfn.Pick(ConvertDType(c.env.Legal(before), dtypes.Int32), action), ZerosLike(action))
		ok := LogicalAnd(legal, same(c.env.Step(before, action), s))
		good = LogicalAnd(good, LogicalOr(ok, LogicalNot(moved)))
		for i := range s {
			before[i] = Where(moved, before[i], s[i])
		}
		s = before
	}
	good = LogicalAnd(good, same(s, c.env.Initial(x)))
	zero := ZerosLike(ConvertDType(good, dtypes.Int32))
	return Where(end, Where(good, zero, AddScalar(zero, unreachable)), AddScalar(zero, unfinished))
}

// same marks the rows in which all tensors of two states are equal, [B].
func same(a, b gfn.State) *Node {
	equal := make([]*Node, len(a))
	for i := range a {
		equal[i] = Reshape(Equal(a[i], b[i]), a[i].Shape().Dim(0), -1)
	}
	return LogicalAll(Concatenate(equal, 1), 1)
}

func ints(t *tensors.Tensor) []int32 { return tensors.MustCopyFlatData[int32](t) }
