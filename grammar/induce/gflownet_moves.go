package induce

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/rng"
)

// arrived ends the journeys that setOut began, or those of wake alone without a sleep phase. It takes an itinerary, knobs, what judges trees,
// and the walks; and returns the walks of wake, their log R and the scores of nodes, the walks of sleep, and the first move, set out.
func (e *gflownet) arrived(in []*Node) []*Node {
	judges, up := in[2:2+judgesSize], forest.WalkOf(in[2+judgesSize:])
	var sleep []*Node
	if e.Sleep > 0 {
		words := judges[potentialsSize-1].Shape().Dim(1)
		wake, down := forest.Apart(up, e.Batch, words, e.DreamLeaves)
		up, sleep = wake, down.List()
	}
	_, r, back := stop(in[0], 0)
	j := e.net.SetOut(up, r, back, Const(back.Graph(), true), how(in[1]))
	return slices.Concat(up.List(), e.rewards(slices.Concat(judges, up.Forest.State())), sleep, j.List())
}

// stop reads a row of an itinerary: random numbers to accept a move with and to make it with, and its steps back. The first row is the next
// move, or the one under way.
func stop(itinerary *Node, row int) (accept, move *rng.Stream, back *Node) {
	k := (itinerary.Shape().Dim(1) - 1) / 2 // the size of a key
	at := func(from, to int) *Node {
		return Squeeze(Slice(itinerary, AxisElem(row), AxisRange(from, to)), 0)
	}
	return rng.In(at(0, k)), rng.In(at(k, 2*k)), ConvertDType(Squeeze(at(2*k, 2*k+1), 0), dtypes.Int32)
}

// settledHead is the number of tensors before walks in what settled takes, and in what it returns.
const settledHead = 4

// settled ends a move and sets out on the next. It takes an itinerary, knobs, the sum of fractions accepted so far, log R and walks before the
// move, walks after it, and what judges them; and returns the itinerary, turned so that the next move is its first row, the sum, log R of the
// trees moved to, then log R and the walks to go on from, and the next journey.
func (e *gflownet) settled(in []*Node) []*Node {
	const k = forest.WalkSize
	itinerary, logR, walks := in[0], in[3], in[settledHead:]
	before, after, judges := walks[:k], walks[k:2*k], walks[2*k:]
	w := forest.WalkOf(after)
	newR := e.rewards(slices.Concat(judges, w.Forest.State()))[0]
	coins, _, _ := stop(itinerary, 0)
	yes, fraction := accept(coins, logR, newR, w)
	next := make([]*Node, len(before))
	for i := range before {
		cond := yes
		for cond.Rank() < before[i].Rank() {
			cond = InsertAxes(cond, -1)
		}
		next[i] = Where(BroadcastToDims(cond, before[i].Shape().Dimensions...), after[i], before[i])
	}
	_, r, back := stop(itinerary, 1)
	j := e.net.SetOut(forest.WalkOf(next), r, back, Const(newR.Graph(), true), how(in[1]))
	turned := Concatenate([]*Node{SliceAxis(itinerary, 0, AxisRangeToEnd(1)), SliceAxis(itinerary, 0, AxisElem(0))}, 0)
	return slices.Concat([]*Node{turned, Add(in[2], fraction), newR, Where(yes, newR, logR)}, next, j.List())
}

// accept decides on moves [B], and returns the fraction that is accepted.
//
//	log a = log R(z') - log R(z) + MadeBack + UndoneForward - UndoneBack - MadeForward
func accept(r *rng.Stream, oldR, newR *Node, w forest.Walk) (yes, fraction *Node) {
	logA := Add(Sub(newR, oldR), Sub(Add(w.MadeBack, w.UndoneForward), Add(w.UndoneBack, w.MadeForward)))
	// Kept above 0, so that its logarithm is finite.
	coin := MaxScalar(r.Uniform(logA.DType(), logA.Shape().Dimensions...), 1e-30)
	yes = LessOrEqual(Log(coin), logA)
	return yes, ReduceAllMean(ConvertDType(yes, dtypes.Float32))
}
