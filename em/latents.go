package em

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/rng"
)

// learnt are the latents that an M-update learns from: rows of latents with their observations, of which the policy
// sees u. LogRatio is log P_B - log P_F of their trajectories if they are weighed, and nil if not.
type learnt struct {
	x, u     gfn.Batch
	z        gfn.State
	logRatio *Node // [N]
}

// each is the number of latents of an observation.
func (g *graphs) each() int {
	switch l := g.MStep.Latents.(type) {
	case Drawn:
		return max(l.Samples, 1)
	case Weighted:
		if l.Samples == 0 {
			return g.Wake.Samples
		}
		return l.Samples
	}
	return 1
}

// learnsFromWake says whether M-steps learn from latents that wake has drawn.
func (g *graphs) learnsFromWake() bool {
	switch l := g.MStep.Latents.(type) {
	case BestOfWake:
		return g.MStep.Data == nil
	case Weighted:
		return g.MStep.Data == nil && l.Samples == 0 && !g.Wake.Explore.explores()
	}
	return false
}

// handOn returns the latents of wake that M-steps learn from, and their log P_B - log P_F if they are weighed: by the
// policy that has drawn them, whatever becomes of it.
func (g *graphs) handOn(w wakes) (z gfn.State, logRatio *Node) {
	if _, ok := g.MStep.Latents.(Weighted); ok {
		return w.z, StopGradient(w.logRatio)
	}
	return best(w.z, w.logR, g.Wake.Samples), nil
}

// given puts latents that are handed on beside their observations.
func (g *graphs) given(x, u gfn.Batch, z gfn.State, logRatio *Node) learnt {
	k := g.each()
	return learnt{x.Repeat(k), u.Repeat(k), z, logRatio}
}

// draw draws latents from the policy.
func (g *graphs) draw(r *rng.Stream, x, u gfn.Batch, in mNodes) learnt {
	if _, ok := g.MStep.Latents.(BestOfWake); ok {
		k := g.Wake.Samples
		many := x.Repeat(k)
		z := g.rollout(r, many, u.Repeat(k), gfn.Behaviour{}).Last()
		return learnt{x, u, best(z, g.reward(many, z), k), nil}
	}
	k := g.each()
	x, u = x.Repeat(k), u.Repeat(k)
	tr := g.rollout(r, x, u, gfn.Behaviour{Greedy: in.Greedy})
	out := learnt{x: x, u: u, z: tr.Last()}
	if _, ok := g.MStep.Latents.(Weighted); ok {
		out.logRatio = StopGradient(logRatio(g.net().ScoreSampled(tr, gfn.Behaviour{})))
	}
	return out
}

// logRatio is log P_B - log P_F of whole trajectories, [B].
func logRatio(s gfn.Scores) *Node { return ReduceSum(Sub(s.LogPB, s.LogPF), 1) }

// weightedLoss is the mean over observations of -log p(x,z), weighed, and the mean effective sample size.
//
// An impossible latent has weight 0. So that its log p(x,z) = -Inf and the gradient there, which may be NaN, stay out
// of the sums, the most probable pair of the batch takes its place. Where no pair is possible, the loss is 0/0.
func (g *graphs) weightedLoss(l learnt, draw func() gfn.State) (out lost) {
	logP := StopGradient(g.logJoint(l.x, l.z)) // [N]
	w, sizes := gfn.SelfNormalised(Add(logP, ConvertDType(l.logRatio, logP.DType())), g.each())

	row := Iota(logP.Graph(), shapes.Make(dtypes.Int32, logP.Shape().Dim(0)), 0)
	top := BroadcastToShape(ArgMax(logP, 0, dtypes.Int32), row.Shape())
	from := Where(impossible(logP), top, row)
	x, z := make(gfn.Batch, len(l.x)), make(gfn.State, len(l.z))
	for i, t := range l.x {
		x[i] = picked(t, from)
	}
	for i, t := range l.z {
		z[i] = picked(t, from)
	}
	counted := ReduceAllSum(ConvertDType(GreaterThan(sizes, ZerosLike(sizes)), logP.DType()))
	if g.MStep.Objective != nil {
		out = g.objectiveOf(learnt{x: x, z: z}, Div(w, BroadcastToShape(counted, w.Shape())), draw)
	} else {
		out.loss = Neg(Div(ReduceAllSum(Mul(w, g.logJoint(x, z))), counted))
	}
	out.scores, out.ess = scoresOf(logP), ReduceAllMean(sizes)
	return out
}

// best takes, of k states in a row, the one with the greatest reward.
func best(z gfn.State, logR *Node, k int) gfn.State {
	rows := logR.Shape().Dim(0) / k
	first := MulScalar(Iota(logR.Graph(), shapes.Make(dtypes.Int32, rows), 0), k)
	at := Add(first, ArgMax(Reshape(StopGradient(logR), rows, k), 1, dtypes.Int32))
	out := make(gfn.State, len(z))
	for i, t := range z {
		out[i] = Gather(t, InsertAxes(at, -1))
	}
	return out
}
