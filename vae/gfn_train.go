package vae

import (
	"fmt"
	"maps"
	"math"
	"strings"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/optim"
)

// Spec is GFlowNet-EM as configured, for images [B,H,W,1] that data supplies, an epoch having so many minibatches.
func (c *Config) Spec(size Size, data em.Data, perEpoch uint64) em.Spec {
	m := Model{Size: size, Learned: c.learnsPrior()}
	drop := c.dropAt(perEpoch)
	dropM := drop // M-updates are counted apart
	var gate em.Gate = em.Blocks{}
	if c.Gate.Turn > 0 {
		turns := em.Turns{Length: c.Gate.Turn}
		if gate = turns; c.Optim.DropOn > 0 {
			dropM.from, dropM.to = turns.MBefore(drop.from), turns.MBefore(drop.to)
		}
	}
	var sleep em.Sleep // as published: a step of its own that follows some of the E-steps
	if s := c.Sleep; s.Probability > 0 && s.Weight > 0 {
		weight := s.Weight / float64(size.Positions())
		sleep = em.Sleep{Weight: weight, Probability: s.Probability, Batch: c.Batch, Apart: true}
	}
	var objective gfn.Objective = gfn.TB{}
	if c.Policy.LogZ == logZNone {
		objective = gfn.VarGrad{Samples: c.Wake.Samples}
	}
	moves := gfn.BackForth{MaxSteps: min(c.Moves.Steps, size.Positions())}
	return em.Spec{
		Model:  m,
		Env:    size.Env(),
		Policy: c.policy(size),
		Data:   data,
		Seed:   c.Seed,
		Wake: em.Wake{
			Objective: perPosition{objective, size.Positions()},
			Samples:   c.Wake.Samples,
			Explore:   em.Explore{Beta: em.Constant(c.Wake.Beta), Epsilon: em.Constant(c.Wake.Epsilon)},
			Reward:    m.Reward,
			Rescore:   true,
			Optimizer: c.phi(drop),
		},
		Sleep: sleep,
		Gate:  gate,
		MStep: em.MStep{Latents: c.latents(), Moves: c.Moves.Count, Kernel: moves, Objective: m.decoderLoss, Optimizer: c.theta(dropM)},
	}
}

func (c *Config) policy(size Size) encoder {
	if c.Policy.Network == networkAttention {
		return Attentive{
			Size: size, Conditional: c.Policy.LogZ == logZImage, Width: c.Policy.Width, Layers: c.Policy.Layers,
		}
	}
	return Policy{Size: size, Conditional: c.Policy.LogZ == logZImage, Floor: c.Policy.Floor}
}

func (c *Config) latents() em.Latents {
	p := c.MStep.GreedyProbability
	switch {
	case c.MStep.Latents == latentsBest:
		return em.BestOfWake{}
	case c.MStep.Latents == latentsWeighted:
		if c.Gate.Turn > 0 {
			return em.Weighted{Samples: c.Wake.Samples}
		}
		return em.Weighted{}
	case c.MStep.Latents == latentsGreedy && p > 0:
		return em.Greedy{Probability: p}
	}
	return em.Drawn{}
}

// fall says over which updates rates fall: from one on, at once or until the last.
type fall struct {
	from, to uint64
	smooth   bool
}

// dropAt is the fall of rates by minibatch.
func (c *Config) dropAt(perEpoch uint64) fall {
	if c.Optim.DropOn == 0 {
		return fall{from: math.MaxUint64, to: math.MaxUint64}
	}
	return fall{uint64(c.Optim.DropOn-1) * perEpoch, uint64(c.Epochs) * perEpoch, c.Optim.Smooth}
}

// rate falls by a factor.
func (f fall) rate(base, factor float64) optim.Rate {
	switch {
	case f.from == math.MaxUint64:
		return optim.Rate{Base: base}
	case f.smooth && factor > 0:
		return optim.Rate{Base: base, Fall: optim.Fall{From: f.from, To: f.to, End: factor}}
	}
	return optim.Rate{Base: base, Drops: []optim.Drop{{Step: f.from, Factor: factor}}}
}

// phi trains the policy, at a rate that falls; theta trains the rest.
func (c *Config) phi(f fall) optim.Optimizer {
	o := c.Optim.Phi
	return optim.Optimizer{ClipNorm: c.Optim.Clip, Groups: []optim.Group{
		{Scope: em.Phi, Rate: f.rate(o.Rate, o.Drop)},
		{Scope: em.Phi + "/" + zetaScope, Rate: optim.Rate{Base: o.LogZRate, MayBeZero: true}},
	}}
}

func (c *Config) theta(f fall) optim.Optimizer {
	o := c.Optim.Theta
	return optim.Optimizer{ClipNorm: c.Optim.Clip, Groups: []optim.Group{{Scope: em.Theta, Rate: f.rate(o.Rate, o.Drop)}}}
}

// decoderLoss is the M-step's: the mean over images and pixels of -log p(x|z) and, with a learned prior, that over
// images and positions of -log p(z') for latents z' of their own, which are never greedy: the prior is to fit q, not
// its modes. Latents that are weighed stand for the posterior themselves, so that they are the prior's, too.
func (m Model) decoderLoss(theta *model.Scope, x gfn.Batch, z gfn.State, weight *Node, draw func() gfn.State) (*Node, changes) {
	var with changes
	pixels := crossEntropy(m.decode(theta, z[0], &with), x[0])
	if weight != nil {
		loss := DivScalar(ReduceAllSum(Mul(weight, ReduceSum(pixels, 1, 2, 3))), m.Pixels())
		if m.Learned {
			prior := ReduceAllSum(Mul(weight, m.LogPrior(theta, z)))
			loss = Sub(loss, DivScalar(prior, m.Positions()))
		}
		return loss, with
	}
	loss := ReduceAllMean(pixels)
	if m.Learned {
		prior := DivScalar(ReduceAllMean(m.LogPrior(theta, draw())), m.Positions())
		loss = Sub(loss, prior)
	}
	return loss, with
}

// spec is GFlowNet-EM on the training images, with what is kept of each.
func (s *session) spec() em.Spec {
	spec := s.Spec(s.size, s.data, s.perEpoch())
	if k := s.Wake.Memory; k > 0 {
		spec.Wake.Memory = em.Memory{Latents: k, Data: s.train.Len(), Rows: s.batches}
		if s.Policy.LogZ == logZNone {
			spec.Wake.Objective = perPosition{gfn.VarGrad{Samples: s.Wake.Samples + k}, s.size.Positions()}
		}
	}
	if s.Moves.Persist {
		spec.MStep.Persist = em.Persistent{Data: s.train.Len(), Rows: s.batches}
	}
	return spec
}

// loop is what all methods train by.
type loop = em.Loop[[]*tensors.Tensor, em.Inferred]

// newLoop returns the loop of the method, and what releases its programs.
func (s *session) newLoop() (*loop, func(), error) {
	if s.Method == MethodVQ {
		p := program.NewSet(s.backend, s.store)
		m := newVQStep(p, s.size, s.theta(s.dropAt(s.perEpoch())))
		if err := m.update.Declare(hostIn{Rates: m.optimizer.Rates(0), X: s.data(0)}); err != nil {
			return nil, nil, err
		}
		return &loop{Data: s.data, M: m}, p.Close, nil
	}
	spec := s.spec()
	spec.Prepare = pick
	l, err := em.New(s.backend, s.store, spec)
	if err != nil {
		return nil, nil, err
	}
	return &l.Loop, l.Close, nil
}

// told is how an iteration went, in a few words, and what to note of it.
func (c *Config) told(r em.Report) (string, map[string]float64) {
	log := map[string]float64{"skipped": float64(r.State.Skipped)}
	if c.Method == MethodVQ {
		maps.Copy(log, r.Metrics)
		return fmt.Sprintf("reconstruction %.1f nats, %.1f codes in use", log["reconstruction"], log["perplexity"]), log
	}
	var text []string
	if r.Wake != (em.Update{}) {
		log["e/loss"], log["e/grad_norm"] = r.Wake.Loss, r.Wake.GradNorm
		text = append(text, fmt.Sprintf("E-step, loss %.4g", r.Wake.Loss))
	}
	if r.Sleep != nil {
		log["sleep/loss"] = r.Sleep.Loss
	}
	if r.M != nil {
		log["m/loss"], log["m/grad_norm"] = r.M.Loss, r.M.GradNorm
		text = append(text, fmt.Sprintf("M-step, loss %.4g", r.M.Loss))
	}
	return strings.Join(text, ", "), log
}
