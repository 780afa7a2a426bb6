package task

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/run"
)

// Session is a Learning in training.
type Session struct {
	Learned
	learning Learning
	best     *run.Best // nil if the last state is the one that counts
	seed     uint64
	data     map[string]string
	name     string
	about    string
}

var _ run.Session = (*Session)(nil)

// Start prepares a session, which run.Train can train.
func Start(b compute.Backend, seed uint64, l Learning) (*Session, error) {
	if err := l.check(); err != nil {
		return nil, blame.Caller(err)
	}
	l.Spec.Seed = cmp.Or(l.Spec.Seed, seed)
	if l.Store == nil {
		l.Store = nn.NewStore(l.Spec.Seed)
	}
	learner, err := em.New(b, l.Store, l.Spec)
	if err != nil {
		return nil, err
	}
	if err := l.checkHeldOut(); err != nil {
		learner.Close()
		return nil, blame.Caller(err)
	}
	s := &Session{
		Learned:  Learned{Backend: b, Spec: l.Spec, learner: learner, buckets: l.Buckets},
		learning: l, seed: seed, data: l.Data, name: "job",
	}
	if l.Best != "" {
		if s.best, err = run.KeepBest(l.Store, em.Theta, em.Phi); err != nil {
			learner.Close()
			return nil, err
		}
	}
	if s.data == nil {
		first, err := Hash(l.Spec.Data(0)...)
		if err != nil {
			learner.Close()
			return nil, err
		}
		s.data = map[string]string{"first batch": first}
	}
	return s, nil
}

// Done implements run.Job.
func (s *Session) Done() bool {
	at, l := s.learner.State(), s.learning
	return l.Iterations > 0 && at.Iteration >= l.Iterations || l.MSteps > 0 && at.M >= l.MSteps || s.impatient()
}

// Progress implements run.Session.
func (s *Session) Progress() (step, total uint64) { return s.learner.State().Iteration, s.expected() }

// expected is the number of iterations as far as it can be told: how many an M-step takes is known from those so far; at
// first, as if a twentieth of all had been made before, by one iteration each.
func (s *Session) expected() uint64 {
	at, l := s.learner.State(), s.learning
	if s.impatient() {
		return at.Iteration
	}
	if l.MSteps == 0 {
		return l.Iterations
	}
	known := float64(1 + l.MSteps/20)
	each := (float64(at.Iteration) + known) / (float64(at.M) + known)
	n := at.Iteration
	if at.M < l.MSteps {
		n += uint64(math.Ceil(each * float64(l.MSteps-at.M)))
	}
	if l.Iterations > 0 {
		n = min(n, l.Iterations)
	}
	return n
}

// Step implements run.Job: an iteration.
func (s *Session) Step() (run.Tick, error) {
	r, err := s.learner.Step()
	if errors.Is(err, em.ErrDiverged) {
		return run.Tick{}, fmt.Errorf("%w: %w", run.ErrGaveUp, err)
	} else if err != nil {
		return run.Tick{}, err
	}
	tick := run.Tick{Step: r.State.Iteration, Total: s.expected(), Text: text(r)}
	if s.learning.Note != nil {
		tick.Log = s.learning.Note(&s.Learned, r)
	} else if s.notes(r) {
		tick.Log = note(r, s.Spec.Gate)
	}
	if every := s.learning.Watch; every > 0 && (r.State.Iteration%every == 0 || s.Done()) {
		measured, err := s.learning.Metrics(&s.Learned)
		if err != nil {
			return tick, fmt.Errorf("metrics after %d iterations: %w", r.State.Iteration, err)
		}
		if tick.Log == nil {
			tick.Log = map[string]float64{}
		}
		for name, v := range measured {
			tick.Log[watched+name] = v
		}
		if err := s.choose(measured); err != nil {
			return tick, err
		}
		tick.Total = s.expected()
	}
	return tick, nil
}

// watched comes before the names of metrics that are measured while training.
const watched = "eval/"

// notes reports whether an iteration is noted: every so many, and those with M-steps if these are rarer.
func (s *Session) notes(r em.Report) bool {
	every := cmp.Or(s.learning.Every, 10)
	rare := r.M != nil && r.State.M*every <= r.State.Iteration
	return rare || r.State.Iteration%every == 0 || s.Done()
}

// note is what there is to know of an iteration.
func note(r em.Report, gate em.Gate) map[string]float64 {
	log := map[string]float64{"m/updates": float64(r.State.M), "skipped": float64(r.State.Skipped)}
	if r.Wake != (em.Update{}) {
		log["e/loss"], log["e/grad_norm"] = r.Wake.Loss, r.Wake.GradNorm
	}
	if r.Sleep != nil {
		log["sleep/loss"], log["sleep/grad_norm"] = r.Sleep.Loss, r.Sleep.GradNorm
	} else if !math.IsNaN(r.SleepLoss) {
		log["sleep/loss"] = r.SleepLoss
	}
	if r.M != nil {
		log["m/loss"], log["m/grad_norm"] = r.M.Loss, r.M.GradNorm
		if !math.IsNaN(r.Accepted) {
			log["m/accepted"] = r.Accepted
		}
	}
	switch g := gate.(type) {
	case em.Adaptive:
		before := r.State.M
		if r.M != nil {
			before--
		}
		log["gate/average"], log["gate/threshold"] = r.State.Gate.Average, g.At(before)
	case em.Blocks:
		if log["gate/average"] = r.State.Gate.Average; g.Below != 0 {
			log["gate/threshold"] = g.Below
		}
	case nil:
		log["gate/average"] = r.State.Gate.Average
	}
	maps.Copy(log, r.Metrics)
	return log
}

// text is how an iteration went, in a few words.
func text(r em.Report) string {
	out := fmt.Sprintf("M-steps %d", r.State.M)
	if r.Wake != (em.Update{}) {
		out += fmt.Sprintf(", loss %.3g", r.Wake.Loss)
	} else if r.Sleep != nil {
		out += fmt.Sprintf(", sleep loss %.3g", r.Sleep.Loss)
	}
	return out
}

// State implements run.Job.
func (s *Session) State() (run.State, error) {
	c := counters{State: s.learner.State()}
	if s.best != nil {
		c.Selection = &s.best.Selection
	}
	return run.StoreState(s.Store(), c)
}

// Restore implements run.Job.
func (s *Session) Restore(state run.State) error {
	state, saved, err := s.restored(state)
	if err != nil {
		return err
	}
	if err := run.SetStore(s.Store(), state.Arrays); err != nil {
		return err
	}
	s.learner.SetState(saved.State)
	if s.best != nil {
		s.best.Selection = *saved.Selection
	}
	return nil
}

// Seed implements run.Session.
func (s *Session) Seed() uint64 { return s.seed }

// Data implements run.Session.
func (s *Session) Data() map[string]string { return s.data }

// Parameters implements run.Session.
func (s *Session) Parameters() (out map[string]run.Array, err error) {
	err = s.best.During(func() error {
		out, err = run.Parameters(s.Store())
		return err
	})
	return out, err
}

// Close implements run.Session.
func (s *Session) Close() { s.learner.Close() }
