package mixture

import (
	"cmp"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/task"
)

// Task trains the mixture by GFlowNet-EM, beside exact and mean-field EM.
type Task struct{}

// Name implements run.Task.
func (Task) Name() string { return "mixture" }

// Presets implements run.Task.
func (Task) Presets() []string { return []string{"quick", "paper", "recommended", "best"} }

// Config implements run.Task.
func (Task) Config(preset string) any { return run.PresetOf(presets, preset) }

// Start implements run.Task.
func (Task) Start(b compute.Backend, config any) (run.Session, error) {
	return newTrainer(b, *config.(*Config), nil)
}

// trainer is GFlowNet-EM on one data set.
type trainer struct {
	*task.Session
	config Config
	data   Data
	model  gfnModel
}

var _ run.Session = (*trainer)(nil)

// newTrainer draws the data and, unless it is given, the start.
func newTrainer(b compute.Backend, c Config, start Means) (*trainer, error) {
	if err := c.fits(); err != nil {
		return nil, err
	}
	t := &trainer{config: c, model: gfnModel{Problem: c.Model}}
	t.data, t.model.start = Experiment{Problem: c.Model, Points: c.Points, Seed: c.Seed}.Draw(c.Run)
	if start != nil {
		t.model.start = start
	}
	all := pointTensor(t.data.X)
	seed := rng.New(c.Seed, "mixture/learner", uint64(c.Run)).Uint64()

	var err error
	batches := em.Full(all)
	if c.Batch > 0 && c.Batch < c.Points {
		if batches, err = em.Shuffled(seed, c.Batch, all); err != nil {
			return nil, err
		}
	}
	half, end := t.total()/2, c.Wake.EpsilonEnd
	if end < 0 {
		end = c.Wake.Epsilon
	}
	phi := optim.Rate{Base: c.Optim.Phi.Rate, MayBeZero: true, Drops: []optim.Drop{{Step: half, Factor: c.Optim.Phi.Drop}}}
	theta := optim.Rate{Base: c.Optim.Theta.Rate, MayBeZero: true}
	spec := em.Spec{
		Model:  t.model,
		Env:    t.model.env(),
		Policy: policy{c.Model.Super, c.Model.Petals, c.Policy.Hidden},
		Data:   batches,
		Seed:   seed,
		Wake: em.Wake{
			Reward:    t.model.reward(c.Wake.RewardClip),
			Explore:   em.Explore{Epsilon: em.Linear{From: c.Wake.Epsilon, To: end, Over: half}},
			Optimizer: optim.Optimizer{Groups: []optim.Group{{Scope: em.Phi, Rate: phi}}},
		},
		Gate: em.Blocks{E: c.Gate.ESteps, First: c.Gate.FirstESteps, M: c.Gate.MSteps, Below: c.Gate.Below},
		MStep: em.MStep{
			Data:       em.Full(all),
			Latents:    em.Drawn{Samples: c.MStep.Samples},
			Moves:      c.Moves.Count,
			ClosedForm: c.MStep.ClosedForm,
			Optimizer:  optim.Optimizer{Groups: []optim.Group{{Scope: em.Theta, Rule: optim.SGD{}, Rate: theta}}},
		},
	}
	t.Session, err = task.Start(b, c.Seed, task.Learning{Spec: spec, Iterations: t.total(), Data: t.data.hash(), Note: t.note})
	return t, err
}

// total is the number of E-updates.
func (t *trainer) total() uint64 {
	g := t.config.Gate
	return uint64(cmp.Or(g.FirstESteps, g.ESteps) + (t.config.Iterations-1)*g.ESteps)
}

// note is what is noted of an iteration: an E-update, and the M-updates that follow it.
func (t *trainer) note(_ *task.Learned, r em.Report) (log map[string]float64) {
	every := max(t.config.Gate.ESteps/10, 1)
	if r.State.Iteration%uint64(every) != 0 && r.M == nil {
		return nil
	}
	log = map[string]float64{"e/loss": r.Wake.Loss, "e/grad_norm": r.Wake.GradNorm, "skipped": float64(r.State.Skipped)}
	if r.M == nil {
		return log
	}
	mu := t.means()
	log["m/loss"] = r.M.Loss
	log["m/updates"] = float64(r.State.M)
	if t.config.Moves.Count > 0 {
		log["m/accepted"] = r.Accepted
	}
	log["loglik"] = t.model.Problem.LogLikelihood(t.data.X, mu)
	for i, p := range mu {
		log[meanKey(i, 0)], log[meanKey(i, 1)] = p[0], p[1]
	}
	return log
}

// meanKey names a coordinate of a mean in the metrics.
func meanKey(i, axis int) string { return fmt.Sprintf("means/%d/%c", i, "xy"[axis]) }

// means returns the learned means.
func (t *trainer) means() Means {
	flat := tensors.MustCopyFlatData[float32](t.Store().GetVariable(em.Theta + "/means").MustValue())
	mu := make(Means, len(flat)/2)
	for i := range mu {
		mu[i] = Point{float64(flat[2*i]), float64(flat[2*i+1])}
	}
	return mu
}
