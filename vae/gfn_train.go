package vae

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/run"
)

// spec is GFlowNet-EM as configured, for images that data picks from a table (see shuffled), an epoch having so many minibatches.
func (c *Config) spec(size Size, data em.Data, perEpoch uint64) em.Spec {
	m := Model{Size: size, Learned: c.learnsPrior()}
	rate := reducible(c.LR, c.ReducedLR, c.ReduceOn, perEpoch)
	return em.Spec{
		Model:   m,
		Env:     size.Env(),
		Policy:  c.policy(size),
		Data:    data,
		Prepare: pick,
		Seed:    c.Seed,
		Wake: em.Wake{
			Objective: c.objective(size),
			Samples:   c.WakeSamples,
			Beta:      em.Constant(c.Beta),
			Epsilon:   em.Constant(c.RandProb),
			Reward:    m.Reward,
			Rescore:   true,
			Optimizer: optim.Optimizer{Groups: []optim.Group{
				{Scope: em.Phi, Rate: rate}, {Scope: em.Phi + "/" + zetaScope, Rate: optim.Rate{Base: c.LogZLR}},
			}},
		},
		Sleep: c.sleep(size),
		Gate:  c.gate(),
		MStep: em.MStep{
			Greedy: c.greedy() > 0 && !c.Best, GreedyProbability: c.greedy(), Best: c.Best, Moves: c.Moves, Loss: m.decoderLoss,
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
func (c *Config) gate() em.Gate { return em.Gate{Alternate: c.Alternate} }

// decoderRate is the rate of M-updates, which are counted apart from E-updates.
func (c *Config) decoderRate(perEpoch uint64) optim.Rate {
	if c.DecoderReducedLR == 0 || c.ReduceOn == 0 {
		return optim.Rate{Base: c.DecoderLR}
	}
	made := uint64(c.ReduceOn-1) * perEpoch
	if c.Alternate > 0 {
		made = c.gate().MaximizedBefore(made)
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

// trainer is one of the methods.
type trainer interface {
	// made is the number of updates attempted.
	made() uint64
	// step makes the next one. The first result is how it went, the second what to note of it.
	step() (string, map[string]float64, error)
	// counters is all that a trainer remembers besides the variables.
	counters() (json.RawMessage, error)
	// restore continues from counters.
	restore(json.RawMessage) error
	close()
}

// gfnTrainer trains by GFlowNet-EM.
type gfnTrainer struct{ *em.Learner }

var _ trainer = gfnTrainer{}

func (t gfnTrainer) made() uint64 { return t.State().Iteration }

func (t gfnTrainer) step() (string, map[string]float64, error) {
	r, err := t.Learner.Step()
	if errors.Is(err, em.ErrDiverged) {
		return "", nil, fmt.Errorf("%w: %w", run.ErrGaveUp, err)
	} else if err != nil {
		return "", nil, err
	}
	log := map[string]float64{"skipped": float64(r.State.Skipped)}
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
	return strings.Join(text, ", "), log, nil
}

func (t gfnTrainer) counters() (json.RawMessage, error) { return json.Marshal(t.State()) }

func (t gfnTrainer) restore(saved json.RawMessage) error {
	var s em.State
	if err := json.Unmarshal(saved, &s); err != nil {
		return err
	}
	t.SetState(s)
	return nil
}

func (t gfnTrainer) close() { t.Learner.Close() }
