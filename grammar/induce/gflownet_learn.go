package induce

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
)

// lineSize is the room that a line for so many trees has. Sizes grow by a factor, so that few programs are compiled;
// where that takes half a minute each, even fewer.
func (e *gflownet) lineSize(trees int) int {
	size, growth := 256.0, 1.25
	if !e.Quick {
		size, growth = 2048, 2
	}
	for size < float64(trees) {
		size = math.Ceil(size * growth)
	}
	return int(size)
}

type (
	// learnIn is what an iteration has to learn from: L are learning rates, R routes, S sentences, I what nodes are as
	// symbols, Z trees.
	learnIn[T, L, R, S, I, Z any] struct {
		Size    int // of the line
		Rates   L
		Words   T
		Wake    R
		Rewards forest.Rewards[T]      // of wake's trees
		Replay  *replay[T, S, I, Z]    // nil without one
		Move    *trainedMove[T, R]     // nil without one
		Sleep   *undoneDreams[T, I, Z] // nil without a sleep phase
	}

	learnArgs   = learnIn[*tensors.Tensor, []float32, forest.RouteTensors, forest.SentenceTensors, forest.InsideTensors, grammar.TreeTensors]
	learnNodes  = learnIn[*Node, *Node, forest.Route, forest.Sentences, forest.Inside, grammar.Trees]
	learnResult = losses[float64, bool]
	moveTensors = trainedMove[*tensors.Tensor, forest.RouteTensors]
)

// trainedMove is the move whose balance is trained: where it started, how it went, and log R at both ends.
type trainedMove[T, R any] struct {
	Before, After      R
	BeforeR, ProposedR T
}

// undoneDreams are dreams and the steps by which walks took them apart.
type undoneDreams[T, I, Z any] struct {
	Dream  dreamt[T, Z]
	Inside I
	Undone T
}

// losses are those of an update and its parts.
type losses[T, B any] struct {
	Wake, Balance, Sleep, GradNorm T
	OK                             B
}

// losses builds the update of the GFlowNet: wake, the balance of a move, and sleep, in one gradient.
func (e *gflownet) losses(in learnNodes) losses[*Node, *Node] {
	words := in.Words
	steps := words.Shape().Dim(1) - 1
	var histories []forest.Histories
	var scored []forest.Scored
	add := func(h forest.History, most int) func() forest.Scored {
		i := len(histories)
		histories = append(histories, forest.Histories{History: h, Most: most})
		return func() forest.Scored { return scored[i] }
	}
	wake := add(in.Wake.Built(words), steps)
	var again, before, after, dreams func() forest.Scored
	if r := in.Replay; r != nil {
		again = add(rebuilt(*r), steps)
	}
	if m := in.Move; m != nil {
		before = add(forest.UndoneHistory(m.After.Undone, m.Before.Forest, m.Before.Inside, words), steps)
		after = add(m.After.Built(words), steps)
	}
	if s := in.Sleep; s != nil {
		from := forest.FromTrees(s.Dream.Trees, s.Dream.Lengths)
		dreams = add(forest.UndoneHistory(s.Undone, from, s.Inside, s.Dream.Leaves), min(e.Sleep.Steps, e.Sleep.Leaves-1))
	}
	scored = e.Score(e.phi(), in.Size, histories...)

	zero := ScalarZero(words.Graph(), dtypes.Float32)
	out := losses[*Node, *Node]{Wake: zero, Balance: zero, Sleep: zero}
	total := zero
	if o := e.objective(); o != nil {
		kind := e.Kind(grammar.Kind(e.Model.Grammar))
		p := wake().Rewarded(kind, in.Rewards.Nodes, in.Rewards.LogR)
		if r := in.Replay; r != nil {
			to := again().Rewarded(kind, r.Walks.Rewards.Nodes, r.Walks.Rewards.LogR)
			to.Used = r.Walks.Used
			p = gfn.Beside(e.Batch, p, to)
		}
		out.Wake = em.MeanOf(o.Loss(p), p.Used)
		total = out.Wake
	}
	if m := in.Move; m != nil {
		path := func(s forest.Scored, logR *Node) gfn.Path {
			return gfn.Path{LogPF: s.LogPF, LogPB: s.LogPB, LogR: logR}
		}
		out.Balance = ReduceAllMean(gfn.PairBalance(path(before(), m.BeforeR), path(after(), m.ProposedR)))
		total = Add(total, MulScalar(out.Balance, e.Moves.Balance))
	}
	if in.Sleep != nil {
		out.Sleep = ReduceAllMean(gfn.Likelihood{}.Loss(gfn.Path{LogPF: dreams().LogPF}))
		total = Add(total, MulScalar(out.Sleep, e.Sleep.Weight))
	}
	r := e.optimizer.Minimize(e.Set.Store, total, in.Rates)
	out.GradNorm, out.OK = r.GradNorm, r.OK
	return out
}

// trainsMoves says whether the balance of a move is trained. Then an iteration makes at least that one move, even with
// moves.count = 0.
func (e *gflownet) trainsMoves() bool { return e.Moves.Balance > 0 }

// objective is the wake loss; nil for none.
func (e *gflownet) objective() gfn.Objective {
	switch e.Wake.Objective {
	case "subtb":
		return gfn.SubTB{Lambda: e.Wake.Lambda}
	case "tb":
		return gfn.TB{}
	case "hvi":
		return gfn.HVI{}
	case "vargrad":
		return gfn.VarGrad{Samples: e.Wake.Samples + e.Wake.Replay}
	case "rws":
		return gfn.RWS{Samples: e.Wake.Samples}
	case "vimco":
		return gfn.VIMCO{Samples: e.Wake.Samples}
	}
	return nil
}
