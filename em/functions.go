package em

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// The functions of a Spec as programs call them: what they return has the stated shapes.

// observations returns those of a batch, and what the policy sees of them.
func (g *graphs) observations(data []*Node) (x, u gfn.Batch) {
	if x = data; g.Prepare != nil {
		x = g.Prepare(data)
		blame.Rows(blame.Field(g.Prepare, "Prepare"), x, sizeOf(x))
	} else {
		blame.Rows(blame.Field(g.Data, "Data"), x, sizeOf(x))
	}
	return x, g.encode(x)
}

// sizeOf is the number of rows of the first tensor, if there is one.
func sizeOf(x []*Node) int {
	if len(x) == 0 || x[0] == nil || x[0].Rank() == 0 {
		return 0
	}
	return x[0].Shape().Dim(0)
}

// encode returns what the policy sees of observations.
func (g *graphs) encode(x gfn.Batch) gfn.Batch {
	e, ok := g.Policy.(Encoder)
	if !ok {
		return x
	}
	return blame.Rows(blame.Method(e, "Encode"), e.Encode(g.store.Scope(Phi), x), x.Size())
}

// logJoint is log p(x,z), [B].
func (g *graphs) logJoint(x gfn.Batch, z gfn.State) *Node {
	return blame.Method(g.Model, "LogJoint").Floats(g.Model.LogJoint(g.theta(), x, z), x.Size())
}

// reward is log R(z|x), [B].
func (g *graphs) reward(x gfn.Batch, z gfn.State) *Node {
	if g.Wake.Reward == nil {
		return g.logJoint(x, z)
	}
	return blame.Field(g.Wake.Reward, "Wake.Reward").Floats(g.Wake.Reward(g.theta(), x, z), x.Size())
}

// partial is the partial log-reward of k states of each observation, [N].
func (g *graphs) partial(x gfn.Batch, s gfn.State, k int) *Node {
	return blame.Field(g.Wake.Partial, "Wake.Partial").Floats(g.Wake.Partial(g.theta(), x, s, k), x.Size()*k)
}

// objective is the loss of each trajectory, [B].
func (g *graphs) objective(p gfn.Path) *Node {
	o := g.Wake.Objective
	return blame.Method(o, "Loss").Floats(o.Loss(p), p.LogPF.Shape().Dim(0))
}

// lost is what an M-step minimises, what it says of the rows of the batch, nothing if the loss is the user's own, and
// what else its update changes. Latents that are weighed have an effective sample size.
type lost struct {
	loss   *Node
	scores Scores[*Node]
	ess    *Node
	with   []optim.Assignment
}

func (g *graphs) modelLoss(l learnt, draw func() gfn.State) lost {
	switch {
	case l.logRatio != nil:
		return g.weightedLoss(l, draw)
	case g.MStep.Objective != nil:
		return g.objectiveOf(l, nil, draw)
	case g.MStep.Loss != nil:
		loss := g.MStep.Loss(g.theta(), l.x, l.z, draw)
		return lost{loss: blame.Field(g.MStep.Loss, "MStep.Loss").Floats(loss)}
	}
	logP := g.logJoint(l.x, l.z)
	return lost{loss: Neg(ReduceAllMean(logP)), scores: scoresOf(logP)}
}

// objectiveOf is the user's loss of latents that count by weight.
func (g *graphs) objectiveOf(l learnt, weight *Node, draw func() gfn.State) lost {
	loss, with := g.MStep.Objective(g.theta(), l.x, l.z, weight, draw)
	return lost{loss: blame.Field(g.MStep.Objective, "MStep.Objective").Floats(loss), with: with}
}

// dream draws pairs from the model.
func (g *graphs) dream(r *rng.Stream) (gfn.Batch, gfn.State) {
	f := blame.Method(g.Model, "Sample")
	x, z := g.Model.Sample(g.theta(), r, g.Sleep.Batch)
	blame.Rows(f.Part("x"), x, g.Sleep.Batch)
	for i := range x {
		x[i] = StopGradient(x[i])
	}
	return x, blame.Like(f.Part("z"), z, gfn.Initial(g.Env, x))
}

// maximum is where the expected log-likelihood is greatest. Stepwise, it also has the averages that are kept.
func (g *graphs) maximum(x gfn.Batch, z gfn.State, weight *Node) ([]*model.Variable, []*Node) {
	if g.MStep.Stepwise != nil {
		kept, means := g.averages(x, z, weight)
		vars, values := g.Model.(lvm.Exponential).MaximizeMeans(g.theta(), means[:len(means)-1])
		g.checkMaximum("MaximizeMeans", vars, values)
		return append(slices.Clone(vars), kept...), append(slices.Clone(values), means...)
	}
	if m, ok := g.Model.(lvm.Maximizer); ok {
		vars, values := m.Maximize(g.theta(), x, z)
		g.checkMaximum("Maximize", vars, values)
		return vars, values
	}
	vars, values := g.Model.(lvm.Exponential).MaximizeMeans(g.theta(), g.statistics(x, z))
	g.checkMaximum("MaximizeMeans", vars, values)
	return vars, values
}

// checkMaximum complains about what a method of the model has returned.
func (g *graphs) checkMaximum(method string, vars []*model.Variable, values []*Node) {
	f := blame.Method(g.Model, method)
	if len(vars) == 0 || len(vars) != len(values) {
		f.Panicf("has %d variables and %d values", len(vars), len(values))
	}
	for i, v := range vars {
		f.Part(v.Path()).Typed(values[i], v.DType(), v.Shape().Dimensions...)
	}
}

// strays counts latents that are none. T is an int, or a node.
type strays[T any] struct {
	Unfinished T // drawn, and not terminal
	Dreamt     T // dreamt, and not terminal
	Unreached  T // dreamt, and further from the initial state than Steps
	Foreign    T // dreamt, and built from the initial state of other observations
	Illegal    T // dreamt, and built by an action that is not legal
	Misplaced  T // remembered, and built from such
	Displaced  T // of a chain that persists, and built from such
}

// straysOf counts the latents of dreams, with observations x, that are none. Trajectories lead to them.
func (g *graphs) straysOf(x gfn.Batch, dreams gfn.Trajectory) strays[*Node] {
	start := dreams.States[0]
	atStart := gfn.AtStart(g.Env, start)
	return strays[*Node]{
		Dreamt: g.unfinished(dreams.Last()), Unreached: unlike(atStart),
		Foreign: unlike(LogicalOr(LogicalNot(atStart), gfn.Same(start, gfn.Initial(g.Env, x)))),
		Illegal: unlike(g.net().Built(dreams)),
	}
}

// err says what is wrong if there are any.
func (g *graphs) err(n strays[int]) error {
	steps := blame.Method(g.Env, "Steps")
	switch {
	case n.Unfinished > 0:
		return steps.Errorf("is %d, and %d drawn latents are not terminal after as many actions: "+
			"it is the length of the longest path (envtest.Run tests that)", g.Env.Steps(), n.Unfinished)
	case n.Dreamt > 0:
		return blame.Method(g.Model, "Sample").Errorf("has %d latents of %d that are no terminal states of %T "+
			"(lvmtest.Run tests that)", n.Dreamt, g.Sleep.Batch, g.Env)
	case n.Illegal > 0: // before Unreached: what is too large for Env is also too far
		return blame.Method(g.Model, "Sample").Errorf("has %d latents of %d that legal actions of %T do not build",
			n.Illegal, g.Sleep.Batch, g.Env)
	case n.Unreached > 0:
		return steps.Errorf("is %d, and %d of %d dreamt latents are not that near to the initial state: "+
			"it is the length of the longest path (envtest.Run tests that)", g.Env.Steps(), n.Unreached, g.Sleep.Batch)
	case n.Foreign > 0:
		return blame.Method(g.Model, "Sample").Errorf("has %d latents of %d that are not built from the initial state that %T "+
			"has for their observations", n.Foreign, g.Sleep.Batch, g.Env)
	case n.Misplaced > 0:
		return fmt.Errorf("Wake.Memory.Rows numbers observations otherwise than before: %d remembered latents are not built "+
			"from the initial state that %T has for their observation", n.Misplaced, g.Env)
	case n.Displaced > 0:
		return fmt.Errorf("MStep.Persist.Rows numbers observations otherwise than before: %d latents of chains are not built "+
			"from the initial state that %T has for their observation", n.Displaced, g.Env)
	}
	return nil
}

// unfinished counts the latents that are not terminal.
func (g *graphs) unfinished(z gfn.State) *Node { return unlike(gfn.Terminal(g.Env, z)) }

// unlike counts the rows of a mask that are false.
func unlike(mask *Node) *Node { return ReduceAllSum(ConvertDType(LogicalNot(mask), dtypes.Int32)) }
