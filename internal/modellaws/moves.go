package modellaws

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// moveCount is how often each latent is moved.
const moveCount = 4

// uniform is the policy that takes all legal actions alike.
type uniform struct{ env gfn.Env }

func (p uniform) Heads(_ *model.Scope, x gfn.Batch, s gfn.State, _ int) gfn.Heads {
	n := gfn.Batch(s).Size()
	return gfn.Heads{Forward: Zeros(x[0].Graph(), shapes.Make(dtypes.Float32, n, p.env.Actions()))}
}

// moved are the sums over a batch of what statistics are before and after moves, of their differences and the squares of
// these, [S]; and how many moves were accepted and how many log-joints were none.
type moved[T, C any] struct {
	Before, After, Change, Square T
	Accepted, Undefined           C
}

// moves compares the joint distribution of (x,z) as Sample draws it with that after moves of z that keep p(z|x), given by
// LogJoint (Geweke, "Getting It Right: Joint Distribution Tests of Posterior Simulators", 2004).
//
// Several moves of a kernel in detailed balance are in detailed balance, too. So z and the z' that they lead to can be
// exchanged, and the change d of any statistic is as probable as -d. Given all |d|, the sum of independent d is sub-Gaussian
// with variance the sum of d^2 (Hoeffding), which is the test: P(|sum d| >= t) <= 2 exp(-t^2 / (2 sum d^2)), however rare or
// large a change is.
func (c *Checker) moves() {
	var names []string
	p := program.New[*tensors.Tensor, moved[*tensors.Tensor, int]](c.Set, "moves", func(key *Node) moved[*Node, *Node] {
		r := rng.In(key)
		x, z := c.Model.Sample(c.scope(), r, c.size())
		x, z = xslices.Map(x, StopGradient), xslices.Map(z, StopGradient)
		names = statisticNames(z)
		reward := func(x gfn.Batch, z gfn.State) *Node { return c.Model.LogJoint(c.scope(), x, z) }
		net := gfn.Net{Env: c.Env, Policy: uniform{c.Env}, Scope: c.scope()}
		logP := reward(x, z)
		before := statistics(z, logP)
		out := moved[*Node, *Node]{Accepted: Const(logP.Graph(), int32(0)), Undefined: Const(logP.Graph(), int32(0))}
		for range moveCount {
			m := gfn.BackForth{PerRow: true}.Apply(net, r, x, z, logP, reward)
			out.Accepted = Add(out.Accepted, count(m.Accepted))
			out.Undefined = Add(out.Undefined, count(undefined(m.LogRNew)))
			z, logP = m.State, m.LogR
		}
		after := statistics(z, logP)
		change := Sub(after, before)
		out.Before, out.After = ReduceSum(before, 0), ReduceSum(after, 0)
		out.Change, out.Square = ReduceSum(change, 0), ReduceSum(Square(change), 0)
		return out
	})
	var before, after, change, square []float64
	accepted, batches := 0, 0
	for ; c.more(batches, mostBatches, movesEnd); batches++ {
		out, ok := call(c, p, rng.Key(c.Seed, "lvmtest moves", uint64(batches)))
		if !ok {
			return
		}
		if out.Undefined > 0 {
			c.Broke(Number, "it is NaN or +Inf for %d latents that moves from sampled ones lead to", out.Undefined)
			return
		}
		before, after = plus(before, out.Before), plus(after, out.After)
		change, square = plus(change, out.Change), plus(square, out.Square)
		accepted += out.Accepted
	}
	n := batches * c.size()
	worst, at := math.Inf(1), 0
	for i := range names {
		if value := symmetric(change[i], square[i]); value < worst {
			worst, at = value, i
		}
	}
	c.tested(Moves, worst*float64(len(names)), "%.1f%% of %d were accepted; of %d statistics %s changes most, p <= %.2g",
		100*float64(accepted)/float64(n*moveCount), n*moveCount, len(names), names[at], worst)
	if worst*float64(len(names)) < c.level() {
		c.Broke(Moves, "the mean of %s goes from %.5g to %.5g on %d pairs (p = %.2g of %d statistics)",
			names[at], before[at]/float64(n), after[at]/float64(n), n, worst, len(names))
	}
}

// symmetric bounds the probability that numbers whose signs are fair coins have so large a sum, either way, given the sum of
// their squares.
func symmetric(sum, square float64) float64 {
	if square == 0 {
		return 1
	}
	return min(1, 2*math.Exp(-sum*sum/(2*square)))
}

// statistics are log p(x,z), the sum of all entries of z, and these entries, [B,S].
func statistics(z gfn.State, logP *Node) *Node {
	entries := make([]*Node, len(z))
	for i, t := range z {
		entries[i] = wide(Reshape(t, t.Shape().Dim(0), -1))
	}
	all := Concatenate(entries, 1)
	return Concatenate([]*Node{InsertAxes(wide(logP), 1), ReduceAndKeep(all, ReduceSum, 1), all}, 1)
}

func statisticNames(z gfn.State) []string {
	names := []string{"log p(x,z)", "the sum of z"}
	for i, t := range z {
		for k := range t.Shape().Size() / t.Shape().Dim(0) {
			if len(z) == 1 {
				names = append(names, fmt.Sprintf("z[%d]", k))
			} else {
				names = append(names, fmt.Sprintf("z[%d][%d]", i, k))
			}
		}
	}
	return names
}

// undefined marks what is NaN or +Inf.
func undefined(logP *Node) *Node {
	return LogicalNot(LogicalOr(IsFinite(logP), LessThan(logP, ZerosLike(logP))))
}

// count is the number of rows that are marked.
func count(mask *Node) *Node { return ReduceAllSum(ConvertDType(mask, dtypes.Int32)) }

// plus adds a tensor to a sum.
func plus(sum []float64, t *tensors.Tensor) []float64 {
	v := numbers(t)
	for i := range sum {
		v[i] += sum[i]
	}
	return v
}
