package induce

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
)

// learner returns the program that trains the GFlowNet, for a line that has room for so many trees. Sizes grow by a factor, so that few
// programs are compiled; where that takes half a minute each, even fewer.
func (e *gflownet) learner(tokens int) (*program, error) {
	size, growth := 256.0, 1.25
	if !e.onCPU {
		size, growth = 2048, 2
	}
	for size < float64(tokens) {
		size = math.Ceil(size * growth)
	}
	return e.learnerOf(int(size))
}

func (e *gflownet) learnerOf(size int) (*program, error) {
	return e.sized(e.learn, size, "learn", func(in []*Node) []*Node { return e.losses(size, in) })
}

// learning is what an iteration has to learn from.
type learning struct {
	words           *tensors.Tensor
	wake            []*tensors.Tensor // walks
	wakeR, nodes    *tensors.Tensor   // log R and scores of nodes where they end
	before, after   []*tensors.Tensor // walks of the trained move; nil without one
	beforeR, afterR *tensors.Tensor
	dream           []*tensors.Tensor // leaves, lengths and trees; nil without sleep
	down            []*tensors.Tensor // walks that take dreams apart
}

// args are what losses takes: of walks no more than their paths depend on.
func (l learning) args(rates []float32) []any {
	out := appendAll([]any{rates, l.words, l.wakeR, l.nodes}, l.wake[forest.WalkUndone:])
	if l.before != nil {
		out = appendAll(append(out, l.beforeR, l.afterR), l.before[forest.WalkForest:])
		out = appendAll(out, l.after[forest.WalkUndone:])
	}
	if l.dream != nil {
		out = append(appendAll(out, l.dream), l.down[forest.WalkUndone])
	}
	return out
}

// losses builds the update of the GFlowNet: wake, the balance of a move, and sleep, in one gradient.
func (e *gflownet) losses(size int, in []*Node) []*Node {
	take := func(n int) []*Node {
		out := in[:n]
		in = in[n:]
		return out
	}
	head := take(4)
	rates, words, wakeR, nodes := head[0], head[1], head[2], head[3]
	steps := words.Shape().Dim(1) - 1
	route := func() forest.Walk { return forest.RouteOf(take(forest.RouteSize)) }
	batches := []forest.Batch{{Path: route().Path(words), Steps: steps}}
	var rewards []*Node
	if e.trainsMoves() {
		rewards = take(2)
		before := forest.FromState(take(forest.WalkSize - forest.WalkForest))
		after := route()
		batches = append(batches, forest.Batch{Path: after.UndonePath(before, words), Steps: steps},
			forest.Batch{Path: after.Path(words), Steps: steps})
	}
	if e.Sleep > 0 {
		d := take(6)
		from := forest.FromTrees(grammar.Trees{Left: d[2], Right: d[3], Label: d[4]}, d[1])
		path := forest.Walk{Undone: d[5]}.UndonePath(from, d[0])
		batches = append(batches, forest.Batch{Path: path, Steps: min(e.DreamSteps, e.DreamLeaves-1)})
	}
	scored := e.net.Score(e.store.Scope(phi), size, batches...)

	zero := ScalarZero(words.Graph(), dtypes.Float32)
	wake, balance, sleep := zero, zero, zero
	total := zero
	if o := e.objective(); o != nil {
		wake = ReduceAllMean(o.Loss(scored[0].Rewarded(grammar.Kind(e.Grammar), nodes, wakeR)))
		total = wake
	}
	if e.trainsMoves() {
		path := func(i int) gfn.Path {
			return gfn.Path{LogPF: scored[i].LogPF, LogPB: scored[i].LogPB, LogR: rewards[i-1]}
		}
		balance = ReduceAllMean(gfn.PairBalance(path(1), path(2)))
		total = Add(total, MulScalar(balance, e.Balance))
	}
	if e.Sleep > 0 {
		sleep = ReduceAllMean(gfn.Likelihood{}.Loss(gfn.Path{LogPF: scored[len(scored)-1].LogPF}))
		total = Add(total, MulScalar(sleep, e.Sleep))
	}
	r := e.optimizer.Minimize(e.store, total, rates)
	return []*Node{numbers(wake, balance, sleep, r.GradNorm, r.OK)}
}

// trainsMoves says whether the balance of a move is trained. Then an iteration makes at least that one move, even with moves = 0.
func (e *gflownet) trainsMoves() bool { return e.Balance > 0 }

// objective is the wake loss; nil for none.
func (e *gflownet) objective() gfn.Objective {
	switch e.Objective {
	case "subtb":
		return gfn.SubTB{Lambda: e.Lambda}
	case "tb":
		return gfn.TB{}
	case "hvi":
		return gfn.HVI{}
	}
	return nil
}
