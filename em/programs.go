package em

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/panics"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// kind names a compiled program and its stream of random numbers. Each takes a key, learning rates, knobs (beta, epsilon)
// and a batch, samples, scores, differentiates and updates, and returns a few numbers: loss, gradient norm, whether
// the update was made, and one more.
type kind string

const (
	wake         kind = "wake"
	wakeAndSleep kind = "wake and sleep"
	sleep        kind = "sleep"
	maximize     kind = "M-step"
	// maximizeSampled is the M-step of a greedy learner when its coin says that it samples.
	maximizeSampled kind = "sampled M-step"
	wakeAndMaximize kind = "wake and M-step" // with MStep.Best; returns the numbers of both
)

// program returns a program, building it at its first use.
func (l *Learner) program(k kind) (*model.Exec, error) {
	if p, ok := l.programs[k]; ok {
		return p, nil
	}
	p, err := model.NewExec(l.b, l.store, func(_ *model.Scope, in []*Node) *Node {
		defer panics.WithError()
		r, rates, x := rng.In(in[0]), in[1], l.prepare(in[3:])
		how := l.behaviour(in[2])
		switch k {
		case wake:
			loss, _, _ := l.wakeLoss(r, x, l.seen(x), how)
			return numbers(loss, l.spec.Wake.Optimizer.Minimize(l.store, loss, rates), nil)
		case wakeAndSleep:
			dreamt := l.sleepLoss(r)
			loss, _, _ := l.wakeLoss(r, x, l.seen(x), how)
			total := Add(loss, MulScalar(dreamt, l.spec.Sleep.Weight))
			return numbers(loss, l.spec.Wake.Optimizer.Minimize(l.store, total, rates), dreamt)
		case sleep:
			loss := l.sleepLoss(r)
			weighted := MulScalar(loss, l.spec.Sleep.Weight)
			return numbers(loss, l.spec.Wake.Optimizer.Minimize(l.store, weighted, rates), nil)
		case wakeAndMaximize:
			return l.wakeAndMaximize(r, x, how, rates)
		default:
			return l.maximize(r, x, how, rates, l.spec.MStep.Greedy && k == maximize)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("build program %q: %w", k, err)
	}
	l.programs[k] = p.WithName(string(k))
	return p, nil
}

func (l *Learner) net() gfn.Net {
	return gfn.Net{Env: l.spec.Env, Policy: l.spec.Policy, Scope: l.store.Scope(Phi)}
}

// prepare returns the observations.
func (l *Learner) prepare(data []*Node) gfn.Batch {
	if l.spec.Prepare == nil {
		return data
	}
	return l.spec.Prepare(data)
}

// seen is what the policy reads of observations.
func (l *Learner) seen(x gfn.Batch) gfn.Batch {
	if e, ok := l.spec.Policy.(Encoder); ok {
		return e.Encode(l.store.Scope(Phi), x)
	}
	return x
}

func (l *Learner) theta() *model.Scope { return l.store.Scope(Theta) }

// behaviour leaves out what the schedules never turn on.
func (l *Learner) behaviour(knobs *Node) gfn.Behaviour {
	var how gfn.Behaviour
	if b := l.spec.Wake.Beta; b.From != 1 || b.To != 1 {
		how.Beta = Squeeze(SliceAxis(knobs, 0, AxisElem(0)), 0)
	}
	if e := l.spec.Wake.Epsilon; e.From != 0 || e.To != 0 {
		how.Epsilon = Squeeze(SliceAxis(knobs, 0, AxisElem(1)), 0)
	}
	return how
}

// wakeLoss is the E-step's objective on samples of the behaviour, for observations x of which the policy sees u; these, and their rewards.
func (l *Learner) wakeLoss(r *rng.Stream, x, u gfn.Batch, how gfn.Behaviour) (loss *Node, z gfn.State, logR *Node) {
	net, spec := l.net(), l.spec.Wake
	tr := net.Rollout(r, u.Repeat(spec.Samples), nil, how)
	x = x.Repeat(spec.Samples)
	score := net.ScoreSampled
	if spec.Rescore {
		score = net.Score
	}
	var partial *Node
	if spec.Partial != nil {
		partial = net.Partials(tr, func(_ gfn.Batch, s gfn.State, k int) *Node { return spec.Partial(l.theta(), x, s, k) })
	}
	logR = spec.Reward(l.theta(), x, tr.Last())
	loss = ReduceAllMean(spec.Objective.Loss(net.Path(tr, score(tr, gfn.Behaviour{}), logR, partial)))
	return loss, tr.Last(), logR
}

// sleepLoss is the likelihood of dreamt latents.
func (l *Learner) sleepLoss(r *rng.Stream) *Node {
	net := l.net()
	x, z := l.spec.Model.Sample(l.theta(), r, l.spec.Sleep.Batch)
	for i := range x {
		x[i] = StopGradient(x[i])
	}
	tr := net.Backtrack(r, l.seen(x), z, nil, gfn.Behaviour{})
	return ReduceAllMean(gfn.Likelihood{}.Loss(gfn.Path{LogPF: net.Score(tr, gfn.Behaviour{}).LogPF}))
}

// latents draws the M-step's latents, refined by moves, of observations x of which the policy sees u; the second result is
// the fraction of moves accepted, or nil.
func (l *Learner) latents(r *rng.Stream, x, u gfn.Batch, how gfn.Behaviour, greedy bool) (gfn.State, *Node) {
	net, spec := l.net(), l.spec.MStep
	z := net.Rollout(r, u, nil, gfn.Behaviour{Greedy: greedy}).Last()
	if spec.Moves == 0 {
		return z, nil
	}
	reward := func(_ gfn.Batch, z gfn.State) *Node { return l.spec.Wake.Reward(l.theta(), x, z) }
	kernel := spec.Kernel
	kernel.How = how
	logR := StopGradient(reward(x, z))
	accepted := ScalarZero(logR.Graph(), logR.DType())
	for range spec.Moves {
		m := kernel.Apply(net, r, u, z, logR, reward)
		z, logR = m.State, m.LogR
		accepted = Add(accepted, ReduceAllMean(ConvertDType(m.Accepted, logR.DType())))
	}
	return z, DivScalar(accepted, spec.Moves)
}

// maximize is the M-step.
func (l *Learner) maximize(r *rng.Stream, x gfn.Batch, how gfn.Behaviour, rates *Node, greedy bool) *Node {
	spec := l.spec.MStep
	u := l.seen(x).Repeat(spec.Samples)
	x = x.Repeat(spec.Samples)
	z, accepted := l.latents(r, x, u, how, greedy)
	loss := spec.Loss(l.theta(), x, z, func() gfn.State { return l.net().Rollout(r, u, nil, gfn.Behaviour{}).Last() })
	if !spec.ClosedForm {
		return numbers(loss, spec.Optimizer.Minimize(l.store, loss, rates), accepted)
	}
	vars, values := l.spec.Model.(lvm.Maximizer).Maximize(l.theta(), x, z)
	ok := optim.Assign(vars, values)
	return numbers(loss, optim.Result{GradNorm: ZerosLike(loss), OK: ok}, accepted)
}

// numbers packs what a program returns into one float64 vector.
func numbers(loss *Node, u optim.Result, extra *Node) *Node {
	f := func(n *Node) *Node { return Reshape(ConvertDType(n, dtypes.Float64), 1) }
	if extra == nil {
		extra = ZerosLike(loss)
	}
	return Concatenate([]*Node{f(loss), f(u.GradNorm), f(u.OK), f(extra)}, 0)
}
