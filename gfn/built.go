package gfn

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Built marks the trajectories, [B] bool, of which each action is legal where it is taken and leads to the state that
// follows. Those of Rollout are. One of Backtrack is none where z cannot be assembled: a set with too many elements, say,
// or a token that its position cannot take.
func (n Net) Built(tr Trajectory) *Node {
	b, t := tr.Valid[0].Shape().Dim(0), tr.Steps()
	from, to := stackStates(tr.States[:t]), stackStates(tr.States[1:])
	a := Reshape(Stack(tr.Action, 1), b*t)
	legal := n.env().Legal(from) // [B*T,A]
	legal = GreaterThan(Pick(ConvertDType(legal, dtypes.Int32), a), ZerosLike(a))
	right := LogicalAnd(legal, Same(n.env().Step(from, a), to))
	wrong := LogicalAnd(Reshape(Stack(tr.Valid, 1), b*t), LogicalNot(right))
	return LogicalNot(anyTrue(Reshape(wrong, b, t)))
}
