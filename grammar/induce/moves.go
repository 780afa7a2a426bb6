package induce

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// moveKeys are the moves of an iteration, sent at once, row by row: random numbers to accept a move with and to make it with, and its
// steps back. The first row is the next move, or the one under way.
type moveKeys[T any] struct {
	Accept, Move T // [moves, size of a key]
	Back         T // [moves] int32
}

// move is one row of them.
type move struct {
	accept, move *rng.Stream
	back         *Node
}

func moveAt(m moveKeys[*Node], row int) move {
	m = program.Map(m, func(x *Node) *Node { return Squeeze(SliceAxis(x, 0, AxisElem(row)), 0) })
	return move{rng.In(m.Accept), rng.In(m.Move), m.Back}
}

type (
	proposeIn struct {
		Moves  moveKeys[*tensors.Tensor]
		Knobs  em.Knobs[*tensors.Tensor]
		Target forest.Target[*tensors.Tensor]
		Walk   forest.WalkTensors
	}
	proposeNodes struct {
		Moves  moveKeys[*Node]
		Knobs  em.Knobs[*Node]
		Target forest.Target[*Node]
		Walk   forest.Walk
	}
	proposeOut struct {
		Wake    forest.WalkTensors
		Rewards forest.Rewards[*tensors.Tensor]
		Sleep   *forest.WalkTensors
		Next    forest.RolloutTensors
	}
	proposeResult struct {
		Wake    forest.Walk
		Rewards forest.Rewards[*Node]
		Sleep   *forest.Walk
		Next    forest.Rollout
	}
	acceptIn struct {
		Moves          moveKeys[*tensors.Tensor]
		Knobs          em.Knobs[*tensors.Tensor]
		Accepted, LogR *tensors.Tensor
		Before, After  forest.WalkTensors
		Target         forest.Target[*tensors.Tensor]
	}
	acceptNodes struct {
		Moves          moveKeys[*Node]
		Knobs          em.Knobs[*Node]
		Accepted, LogR *Node // the sum of fractions accepted so far; log R before the move
		Before, After  forest.Walk
		Target         forest.Target[*Node]
	}
	acceptOut struct {
		Moves                    moveKeys[*tensors.Tensor]
		Accepted, Proposed, LogR *tensors.Tensor
		Walk                     forest.WalkTensors
		Next                     forest.RolloutTensors
	}
	acceptResult struct {
		Moves                    moveKeys[*Node]
		Accepted, Proposed, LogR *Node // log R of what was proposed, and after the move
		Walk                     forest.Walk
		Next                     forest.Rollout
	}
)

// proposed parts the walks of wake from those of dreams, if there are any, rewards the former, and starts the first move.
func (e *gflownet) proposed(in proposeNodes) (out proposeResult) {
	out.Wake = in.Walk
	if e.Sleep > 0 {
		wake, down := forest.Apart(in.Walk, e.Batch, in.Target.Weights.Terms.Shape().Dim(1), e.DreamLeaves)
		out.Wake, out.Sleep = wake, &down
	}
	out.Rewards = e.RewardOf(in.Target, out.Wake.Forest)
	out.Next = e.nextMove(moveAt(in.Moves, 0), out.Wake, in.Knobs)
	return out
}

func (e *gflownet) nextMove(m move, from forest.Walk, knobs em.Knobs[*Node]) forest.Rollout {
	return e.Rollout(from, m.move, m.back, Const(m.back.Graph(), true), e.explore().Behaviour(knobs))
}

// accepted ends a move, with the probability of Metropolis and Hastings, and starts the next one. It turns the rows of the moves, so that
// the next one is the first.
func (e *gflownet) accepted(in acceptNodes) (out acceptResult) {
	out.Proposed = e.RewardOf(in.Target, in.After.Forest).LogR
	yes := gfn.Accept(moveAt(in.Moves, 0).accept, Add(Sub(out.Proposed, in.LogR), in.After.LogRatio()))
	out.Accepted = Add(in.Accepted, ReduceAllMean(ConvertDType(yes, dtypes.Float32)))
	out.LogR = Where(yes, out.Proposed, in.LogR)
	out.Walk = program.Zip(in.Before, in.After, func(before, after *Node) *Node {
		wide := yes
		for wide.Rank() < before.Rank() {
			wide = InsertAxes(wide, -1)
		}
		return Where(BroadcastToDims(wide, before.Shape().Dimensions...), after, before)
	})
	out.Next = e.nextMove(moveAt(in.Moves, 1), out.Walk, in.Knobs)
	out.Moves = program.Map(in.Moves, func(x *Node) *Node {
		return Concatenate([]*Node{SliceAxis(x, 0, AxisRangeToEnd(1)), SliceAxis(x, 0, AxisElem(0))}, 0)
	})
	return out
}
