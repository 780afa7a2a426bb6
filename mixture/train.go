package mixture

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
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
	config  Config
	data    Data
	backend compute.Backend
	model   gfnModel
	learner *em.Learner
}

var _ run.Session = (*trainer)(nil)

// newTrainer draws the data and, unless it is given, the start.
func newTrainer(b compute.Backend, c Config, start Means) (*trainer, error) {
	if err := c.fits(); err != nil {
		return nil, err
	}
	t := &trainer{config: c, backend: b, model: gfnModel{Problem: c.Model}}
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
	t.learner, err = em.New(b, model.NewStore(), em.Spec{
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
	})
	return t, err
}

// total is the number of E-updates.
func (t *trainer) total() uint64 {
	g := t.config.Gate
	return uint64(cmp.Or(g.FirstESteps, g.ESteps) + (t.config.Iterations-1)*g.ESteps)
}

// Done implements run.Job.
func (t *trainer) Done() bool { return t.learner.State().Iteration >= t.total() }

// Progress implements run.Session.
func (t *trainer) Progress() (step, total uint64) { return t.learner.State().Iteration, t.total() }

// Step implements run.Job: one E-update, and the M-updates that follow it.
func (t *trainer) Step() (run.Tick, error) {
	r, err := t.learner.Step()
	if errors.Is(err, em.ErrDiverged) {
		return run.Tick{}, fmt.Errorf("%w: %w", run.ErrGaveUp, err)
	} else if err != nil {
		return run.Tick{}, err
	}
	at := r.State.Iteration
	tick := run.Tick{
		Step: at, Total: t.total(),
		Text: fmt.Sprintf("M-steps %d, loss %.3g", r.State.M, r.Wake.Loss),
	}
	if every := max(t.config.Gate.ESteps/10, 1); at%uint64(every) == 0 || r.M != nil {
		tick.Log = map[string]float64{"e/loss": r.Wake.Loss, "e/grad_norm": r.Wake.GradNorm, "skipped": float64(r.State.Skipped)}
	}
	if r.M != nil {
		mu := t.means()
		tick.Log["m/loss"] = r.M.Loss
		tick.Log["m/updates"] = float64(r.State.M)
		if t.config.Moves.Count > 0 {
			tick.Log["m/accepted"] = r.Accepted
		}
		tick.Log["loglik"] = t.model.Problem.LogLikelihood(t.data.X, mu)
		for i, p := range mu {
			tick.Log[meanKey(i, 0)], tick.Log[meanKey(i, 1)] = p[0], p[1]
		}
	}
	return tick, nil
}

// meanKey names a coordinate of a mean in the metrics.
func meanKey(i, axis int) string { return fmt.Sprintf("means/%d/%c", i, "xy"[axis]) }

// means returns the learned means.
func (t *trainer) means() Means {
	flat := tensors.MustCopyFlatData[float32](t.learner.Store().GetVariable(em.Theta + "/means").MustValue())
	mu := make(Means, len(flat)/2)
	for i := range mu {
		mu[i] = Point{float64(flat[2*i]), float64(flat[2*i+1])}
	}
	return mu
}

// State implements run.Job.
func (t *trainer) State() (run.State, error) {
	return run.StoreState(t.learner.Store(), t.learner.State())
}

// Restore implements run.Job.
func (t *trainer) Restore(s run.State) error {
	var counters em.State
	if err := s.Rest(&counters); err != nil {
		return err
	}
	if err := counters.Check(t.total()); err != nil {
		return err
	}
	if err := run.SetStore(t.learner.Store(), s.Arrays); err != nil {
		return err
	}
	t.learner.SetState(counters)
	return nil
}

// Seed implements run.Session.
func (t *trainer) Seed() uint64 { return t.config.Seed }

// Data implements run.Session.
func (t *trainer) Data() map[string]string {
	h := sha256.New()
	for _, p := range t.data.X {
		fmt.Fprintf(h, "%x %x\n", p[0], p[1])
	}
	return map[string]string{"points": hex.EncodeToString(h.Sum(nil))}
}

// Parameters implements run.Session.
func (t *trainer) Parameters() (map[string]run.Array, error) {
	return run.Parameters(t.learner.Store())
}

// Close implements run.Session.
func (t *trainer) Close() { t.learner.Close() }
