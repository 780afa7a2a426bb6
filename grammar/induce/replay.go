package induce

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/rng"
)

// Replay (em.Replay, em.Memory) of grammars keeps trees of each training sentence that were accepted, and learns from
// them when the sentence comes again: new ways to them are drawn by P_B, and the grammar and the policy are those of
// that time. After moves, the trees to which these have led are kept. Without moves, a tree is chosen by importance
// weight among the one that is kept and those of the walks. That leaves the posterior as it is: it is iterated sampling
// importance resampling (Andrieu, Doucet, Holenstein, "Particle Markov chain Monte Carlo methods", 2010), whose
// proposals are the walks.
type (
	// recalled are trees that are replayed, of sentences S in the order of a batch.
	recalled[T, S, Z any] struct {
		Sentences S
		Trees     Z // where there is none, any
		There     T // [rows] bool
	}
	// takenApart are the walks by which they were taken apart, and their rewards.
	takenApart[T, I any] struct {
		Undone  T
		Inside  I
		Rewards forest.Rewards[T]
		Used    T // [rows] bool: there is a tree, and it is possible
	}
	replay[T, S, I, Z any] struct {
		Trees recalled[T, S, Z]
		Walks takenApart[T, I]
	}

	recalledTrees = recalled[*tensors.Tensor, forest.SentenceTensors, grammar.TreeTensors]
	replayTensors = replay[*tensors.Tensor, forest.SentenceTensors, forest.InsideTensors, grammar.TreeTensors]
)

// replayed rewards trees that walks have taken apart, and weighs the walks as if they had been drawn forward.
func (e *gflownet) replayed(
	t forest.Target[*Node], r recalled[*Node, forest.Sentences, grammar.Trees], w forest.Walk,
) (out *takenApart[*Node, forest.Inside], logW *Node) {
	terms := t.Weights.Terms // [B*walks,...]: the same of all walks of a sentence
	dims := terms.Shape().Dimensions
	terms = Reshape(terms, append([]int{e.Batch, e.Wake.Samples}, dims[1:]...)...)
	terms = SliceAxis(terms, 1, AxisRangeFromStart(e.Wake.Replay))
	t.Weights.Terms = Reshape(terms, append([]int{e.Batch * e.Wake.Replay}, dims[1:]...)...)
	t.Lengths = r.Sentences.Lengths

	rewards := e.RewardOf(t, forest.FromTrees(r.Trees, t.Lengths), w.Inside)
	used := LogicalAnd(r.There, IsFinite(rewards.LogR))
	wide := BroadcastToShape(InsertAxes(used, -1), rewards.Nodes.Shape())
	rewards = forest.Rewards[*Node]{
		LogR: Where(used, rewards.LogR, ZerosLike(rewards.LogR)), Nodes: Where(wide, rewards.Nodes, ZerosLike(rewards.Nodes)),
	}
	out = &takenApart[*Node, forest.Inside]{Undone: w.Undone, Inside: w.Inside, Rewards: rewards, Used: used}
	logW = Add(rewards.LogR, Sub(w.UndoneBack, w.UndoneForward))
	return out, Where(used, logW, AddScalar(ZerosLike(logW), math.Inf(-1)))
}

// rebuilt are the ways to replayed trees.
func rebuilt(r replay[*Node, forest.Sentences, forest.Inside, grammar.Trees]) forest.History {
	x := r.Trees.Sentences
	return forest.UndoneHistory(r.Walks.Undone, forest.FromTrees(r.Trees.Trees, x.Lengths), r.Walks.Inside, x.Words)
}

// recall takes the trees of the batch.
func (w *walker) recall() {
	if w.replay == nil {
		return
	}
	z, there, some := w.replay.trees(w.again)
	w.recalled = &recalledTrees{w.again.SentenceTensors, z, there}
	w.replayed = float64(some) / float64(len(w.again.LengthOf))
}

// remember keeps the trees that are accepted.
func (w *walker) remember() {
	if w.replay == nil {
		return
	}
	walks, each := w.Wake.Samples, w.Wake.Replay
	from := func(row int) int { return row/each*walks + row%each }
	if len(w.back) == 0 {
		fresh, kept := logWeights(w.logW), logWeights(w.logAgain)
		r := rng.New(w.seed, "gfn/replay", w.it)
		from = func(row int) int {
			first := row / each * walks
			if i := byWeight(r.Float64(), append(fresh[first:][:walks:walks], kept[row])); i < walks {
				return first + i
			}
			return -1
		}
	}
	w.replay.keep(w.again, w.walks.Forest, from)
}

// logWeights are those of walks; what is not finite has no weight.
func logWeights(t *tensors.Tensor) []float64 {
	var out []float64
	for _, x := range tensors.MustCopyFlatData[float32](t) {
		if x-x != 0 {
			x = float32(math.Inf(-1))
		}
		out = append(out, float64(x))
	}
	return out
}

// byWeight chooses one of some log-weights by a number from 0 to 1: the last one if none has any.
func byWeight(u float64, logW []float64) int {
	chosen := len(logW) - 1
	for i, p := range gfn.Normalise(logW) {
		if p > 0 {
			chosen = i
			if u -= p; u < 0 {
				break
			}
		}
	}
	return chosen
}
