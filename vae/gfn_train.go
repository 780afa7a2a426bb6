package vae

import (
	"fmt"
	"maps"
	"strings"

	"github.com/gomlx/compute"
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
	rate := reducible(c.LR, c.ReducedLR, c.ReduceOn, perEpoch)
	return em.Spec{
		Model:  m,
		Env:    size.Env(),
		Policy: c.policy(size),
		Data:   data,
		Seed:   c.Seed,
		Wake: em.Wake{
			Objective: c.objective(size),
			Samples:   c.WakeSamples,
			Explore:   em.Explore{Beta: em.Constant(c.Beta), Epsilon: em.Constant(c.RandProb)},
			Reward:    m.Reward,
			Rescore:   true,
			Optimizer: optim.Optimizer{Groups: []optim.Group{
				{Scope: em.Phi, Rate: rate}, {Scope: em.Phi + "/" + zetaScope, Rate: optim.Rate{Base: c.LogZLR}},
			}},
		},
		Sleep: c.sleep(size),
		Gate:  c.gate(),
		MStep: em.MStep{
			Latents: c.latents(), Moves: c.Moves, Loss: m.decoderLoss,
			Optimizer: optim.Optimizer{Groups: []optim.Group{{Scope: em.Theta, Rate: c.decoderRate(perEpoch)}}},
		},
	}
}

func (c *Config) objective(size Size) gfn.Objective {
	if c.LogZ == logZNone {
		return perPosition{gfn.VarGrad{Samples: c.WakeSamples}, size.Positions()}
	}
	return perPosition{gfn.TB{}, size.Positions()}
}

// sleep is the published sleep phase: a step of its own that follows some of the E-steps.
func (c *Config) sleep(size Size) em.Sleep {
	if c.SleepProb == 0 || c.SleepWeight == 0 {
		return em.Sleep{}
	}
	return em.Sleep{Weight: c.SleepWeight / float64(size.Positions()), Probability: c.SleepProb, Batch: c.Batch, Apart: true}
}

func (c *Config) policy(size Size) Policy {
	return Policy{Size: size, Conditional: c.LogZ == logZImage, Floor: c.Floor}
}

// reducible is a rate that falls at the start of an epoch, counted from 1; 0 means never.
func reducible(base, reduced float64, epoch int, perEpoch uint64) optim.Rate {
	r := optim.Rate{Base: base}
	if epoch > 0 {
		r.Drops = []optim.Drop{{Step: uint64(epoch-1) * perEpoch, Factor: reduced / base}}
	}
	return r
}

// gate makes E- and M-updates in turns, or both of each minibatch.
func (c *Config) gate() em.Gate {
	if c.Alternate > 0 {
		return em.Turns{Length: c.Alternate}
	}
	return em.Blocks{}
}

func (c *Config) latents() em.Latents {
	switch {
	case c.Best:
		return em.BestOfWake{}
	case c.greedy() > 0:
		return em.Greedy{Probability: c.greedy()}
	}
	return em.Drawn{}
}

func (c *Config) vqOptimizer(perEpoch uint64) optim.Optimizer {
	return optim.Optimizer{Groups: []optim.Group{{Scope: em.Theta, Rate: reducible(c.VQLR, c.VQReducedLR, c.ReduceOn, perEpoch)}}}
}

// decoderRate is the rate of M-updates, which are counted apart from E-updates.
func (c *Config) decoderRate(perEpoch uint64) optim.Rate {
	if c.DecoderReducedLR == 0 || c.ReduceOn == 0 {
		return optim.Rate{Base: c.DecoderLR}
	}
	made := uint64(c.ReduceOn-1) * perEpoch
	if turns, ok := c.gate().(em.Turns); ok {
		made = turns.MBefore(made)
	}
	return optim.Rate{Base: c.DecoderLR, Drops: []optim.Drop{{Step: made, Factor: c.DecoderReducedLR / c.DecoderLR}}}
}

// decoderLoss is the M-step's: the mean over images and pixels of -log p(x|z) and, with a learned prior, that over images and
// positions of -log p(z') for latents z' of their own, which are never greedy: the prior is to fit q, not its modes.
func (m Model) decoderLoss(theta *model.Scope, x gfn.Batch, z gfn.State, draw func() gfn.State) *Node {
	loss := ReduceAllMean(CrossEntropy(m.Logits(theta, z[0]), x[0]))
	if m.Learned {
		prior := DivScalar(ReduceAllMean(m.LogPrior(theta, draw())), m.Positions())
		loss = Sub(loss, prior)
	}
	return loss
}

// trainer is the loop of a method.
type trainer struct {
	*em.Loop[[]*tensors.Tensor, []*tensors.Tensor]
	close func() // releases what is compiled
}

// trainer returns that of the method for images that data picks from a table, see shuffled.
func (c *Config) trainer(b compute.Backend, store *model.Store, size Size, data em.Data, perEpoch uint64) (trainer, error) {
	if c.Method == MethodVQ {
		s := program.NewSet(b, store)
		return trainer{&em.Loop[[]*tensors.Tensor, []*tensors.Tensor]{Data: data, M: newVQStep(s, size, c.vqOptimizer(perEpoch))}, s.Close}, nil
	}
	spec := c.Spec(size, data, perEpoch)
	spec.Prepare = pick
	l, err := em.New(b, store, spec)
	if err != nil {
		return trainer{}, err
	}
	return trainer{&l.Loop, l.Close}, nil
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
