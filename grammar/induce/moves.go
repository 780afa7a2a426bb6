package induce

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// moveKeys are the moves of an iteration, sent at once, row by row: random numbers to accept a move with and to make it
// with, and its steps back. The first row is the next move, or the one under way.
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

// What programs of moves take and return, in graphs and on the host: T is one tensor, W walks, R rollouts.
type (
	proposeIn[T, S, Z, W any] struct {
		Moves    moveKeys[T]
		Knobs    em.Knobs[T]
		Target   forest.Target[T]
		Recalled *recalled[T, S, Z] // nil without replay
		Walk     W
		Down     *W // those down to bare words; nil if they are behind the others, or there are none
	}
	proposeOut[T, I, W, R any] struct {
		Wake     W
		Rewards  forest.Rewards[T]
		LogW     T                 // log R + log P_B - log P_F of the walks of wake, as they were drawn
		LogAgain T                 // of those to recalled trees
		Replay   *takenApart[T, I] // nil without replay
		Sleep    *W                // nil without a sleep phase
		Next     R
	}
	acceptIn[T, W any] struct {
		Moves          moveKeys[T]
		Knobs          em.Knobs[T]
		Accepted, LogR T // the sum of fractions accepted so far; log R before the move
		Before, After  W
		Target         forest.Target[T]
	}
	acceptOut[T, W, R any] struct {
		Moves                    moveKeys[T]
		Accepted, Proposed, LogR T // log R of what was proposed, and after the move
		Walk                     W
		Next                     R
	}

	proposeArgs   = proposeIn[*tensors.Tensor, forest.SentenceTensors, grammar.TreeTensors, forest.WalkTensors]
	proposeResult = proposeOut[*tensors.Tensor, forest.InsideTensors, forest.WalkTensors, forest.RolloutTensors]
	proposeNodes  = proposeIn[*Node, forest.Sentences, grammar.Trees, forest.Walk]
	proposeGraph  = proposeOut[*Node, forest.Inside, forest.Walk, forest.Rollout]
	acceptArgs    = acceptIn[*tensors.Tensor, forest.WalkTensors]
	acceptResult  = acceptOut[*tensors.Tensor, forest.WalkTensors, forest.RolloutTensors]
)

// proposed tells the walks of wake from those to recalled trees and those of dreams, if there are any, rewards all but
// dreams, and starts the first move.
func (e *gflownet) proposed(in proposeNodes) (out proposeGraph) {
	wake, again, room := e.Batch*e.Wake.Samples, e.Batch*e.Wake.Replay, in.Target.Weights.Terms.Shape().Dim(1)
	out.Wake = in.Walk
	down, first := in.Down, 0
	if down == nil && (e.Sleep.Weight > 0 || in.Recalled != nil) {
		out.Wake, down, first = in.Walk.Some(0, wake, room), &in.Walk, wake
	}
	if r := in.Recalled; r != nil {
		out.Replay, out.LogAgain = e.replayed(in.Target, *r, down.Some(first, first+again, room))
	}
	if e.Sleep.Weight > 0 {
		dreams := down.Some(first+again, first+again+e.Batch, e.Sleep.Leaves)
		out.Sleep = &dreams
	}
	out.Rewards = e.RewardOf(in.Target, out.Wake.Forest, out.Wake.Inside)
	out.LogW = Add(out.Rewards.LogR, Sub(out.Wake.MadeBack, out.Wake.MadeForward))
	out.Next = e.nextMove(moveAt(in.Moves, 0), in.Target, out.Wake, in.Knobs)
	return out
}

func (e *gflownet) nextMove(m move, t forest.Target[*Node], from forest.Walk, knobs em.Knobs[*Node]) forest.Rollout {
	return e.RolloutOf(t, from, m.move, m.back, Const(m.back.Graph(), true), e.explore().Behaviour(knobs))
}

// accepted ends a move, with the probability of Metropolis and Hastings, and starts the next one. It turns the rows of
// the moves, so that the next one is the first.
func (e *gflownet) accepted(in acceptIn[*Node, forest.Walk]) (out acceptOut[*Node, forest.Walk, forest.Rollout]) {
	out.Proposed = e.RewardOf(in.Target, in.After.Forest, in.After.Inside).LogR
	yes := gfn.Accept(moveAt(in.Moves, 0).accept, Add(Sub(out.Proposed, in.LogR), in.After.LogRatio()))
	out.Accepted = Add(in.Accepted, ReduceAllMean(ConvertDType(yes, dtypes.Float32)))
	out.LogR = Where(yes, out.Proposed, in.LogR)
	out.Walk = chosen(yes, in.After, in.Before)
	out.Next = e.nextMove(moveAt(in.Moves, 1), in.Target, out.Walk, in.Knobs)
	out.Moves = program.Map(in.Moves, func(x *Node) *Node {
		return Concatenate([]*Node{SliceAxis(x, 0, AxisRangeToEnd(1)), SliceAxis(x, 0, AxisElem(0))}, 0)
	})
	return out
}
