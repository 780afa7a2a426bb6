package em

import (
	"cmp"
	"context"
	"maps"
	"math"

	"github.com/gfnem/gfnem/badinput"
)

// EStepper makes E-steps: it updates q(z|x). What it does depends on nothing but its arguments and the variables, so
// that a resumed loop goes on as it was.
type EStepper[B, Z any] interface {
	// Infer makes the E-update of an iteration on its batch.
	Infer(at Moment, x B) (Inference[Z], error)
}

// MStepper makes M-steps: it updates p(x,z), under the same law.
type MStepper[B, Z any] interface {
	// Maximize makes an M-update on the batch of its iteration and the latents that the E-step handed on: the zero Z in an
	// iteration without one.
	Maximize(at Moment, x B, z Z) (Maximization, error)
}

// Moment is when a step of a loop happens.
type Moment struct {
	Iteration uint64 // iterations before
	M         uint64 // M-steps before
	// Maximizes tells an E-step that an M-step is certain to follow in this iteration.
	Maximizes bool
}

// Inference is what an E-step did.
type Inference[Z any] struct {
	Z Z // latents for the M-steps of this iteration
	// Unfit says that there are no latents to learn from: the iteration has no M-step. Blocks make it up in the next one.
	Unfit bool

	Wake      Update  // zero if there was none
	Sleep     *Update // nil if there was no sleep update of its own
	SleepLoss float64 // the sleep part of a joint update; NaN if there was none
	M         *Update // the first M-update, if one program makes both; only if the moment Maximizes
	Metrics   map[string]float64
}

// watched is what the gate looks at: the loss of the update, NaN if it was skipped, since it says nothing about the fit
// then.
func (e Inference[Z]) watched() float64 {
	u := e.Wake
	if u == (Update{}) && e.Sleep != nil {
		u = *e.Sleep
	}
	if !u.OK {
		return math.NaN()
	}
	return u.Loss
}

// Maximization is what an M-step did.
type Maximization struct {
	Update
	// Accepted is the fraction of Metropolis-Hastings moves accepted before the update; NaN without moves.
	Accepted float64
	Metrics  map[string]float64
}

// Loop alternates E- and M-steps. It owns what all learning here has in common: when M-steps happen, what has been
// counted, and when to give up.
type Loop[B, Z any] struct {
	// Data supplies the observations of each iteration as a pure function of its number, so that resuming needs no cursor.
	Data func(iteration uint64) B
	E    EStepper[B, Z] // nil: every iteration is one M-step
	M    MStepper[B, Z]
	Gate Gate // nil means Blocks{}

	state State
}

// State is everything a loop remembers besides variables.
type State struct {
	Iteration uint64 // E-steps attempted, and M-steps that were iterations of their own
	Sleep     uint64 // sleep phases
	M         uint64 // M-steps
	Gate      GateState
	Skipped   uint64 // updates skipped because something was not finite
	InARow    InARow // of these, the latest
}

// Check complains about counters that no loop of so many iterations can have.
func (s State) Check(iterations uint64) error {
	switch {
	case s.Iteration > iterations:
		return badinput.Errorf("the checkpoint is already at iteration %d of %d", s.Iteration, iterations)
	case s.Sleep > s.Iteration, s.Skipped > s.Iteration+s.Sleep+s.M, min(s.InARow.E, s.InARow.Sleep, s.InARow.M) < 0,
		min(s.Gate.E, s.Gate.M) < 0:
		return badinput.Errorf("the counters of the checkpoint contradict each other: %+v", s)
	}
	return nil
}

// InARow counts, for each kind of update, those skipped since the last good one of that kind.
type InARow struct{ E, Sleep, M int }

// Report is what one iteration did.
type Report struct {
	State State
	Wake  Update  // zero if there was none: the iteration was an M-step alone, or Sleep.Alone
	Sleep *Update // nil if there was no sleep update of its own
	M     *Update // the last M-update of the iteration; nil if there was none
	// SleepLoss is the sleep part of a joint update; NaN if there was none.
	SleepLoss float64
	// Accepted is the fraction of Metropolis-Hastings moves accepted before the M-update; NaN without moves.
	Accepted float64
	Metrics  map[string]float64 // what else the steps say
}

// State returns the counters, to be saved with the variables.
func (l *Loop[B, Z]) State() State { return l.state }

// SetState continues from saved counters.
func (l *Loop[B, Z]) SetState(s State) { l.state = s }

// Train iterates until the context ends or until says so, calling each, if not nil, after every iteration.
func (l *Loop[B, Z]) Train(ctx context.Context, until func(State) bool, each func(Report) error) error {
	for !until(l.state) {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := l.Step()
		if err != nil {
			return err
		}
		if each != nil {
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Step makes one iteration: an E-step and the M-steps that the gate calls for, or an M-step alone.
func (l *Loop[B, Z]) Step() (r Report, err error) {
	s := &l.state
	defer func() { r.State = *s }()
	r.SleepLoss, r.Accepted = math.NaN(), math.NaN()
	gate := l.Gate
	if gate == nil {
		gate = Blocks{}
	}
	at := Moment{Iteration: s.Iteration, M: s.M, Maximizes: gate.foresees(s.Gate, s.Iteration)}
	x := l.Data(at.Iteration)
	if l.E == nil || gate.alone(at.Iteration) {
		var none Z
		made := s.M
		err := l.maximize(&r, at, x, none)
		s.Iteration += s.M - made // not if it could not be run at all
		return r, err
	}
	e, err := l.E.Infer(at, x)
	if err != nil {
		return r, err
	}
	s.Iteration++
	r.Wake, r.Sleep, r.SleepLoss, r.Metrics = e.Wake, e.Sleep, e.SleepLoss, e.Metrics
	err = l.countE(e)
	due := err == nil && gate.observe(&s.Gate, at.Iteration, e.watched(), s.M)
	if e.M != nil {
		err = cmp.Or(err, l.countM(&r, Maximization{Update: *e.M, Accepted: math.NaN()}))
		due = due && gate.updated(&s.Gate)
	}
	for ; err == nil && due && !e.Unfit; due = gate.updated(&s.Gate) {
		err = l.maximize(&r, at, x, e.Z)
	}
	return r, err
}

// maximize makes an M-step.
func (l *Loop[B, Z]) maximize(r *Report, at Moment, x B, z Z) error {
	at.M = l.state.M
	m, err := l.M.Maximize(at, x, z)
	if err != nil {
		return err
	}
	return l.countM(r, m)
}

func (l *Loop[B, Z]) countM(r *Report, m Maximization) error {
	r.M, r.Accepted = &m.Update, m.Accepted
	if r.Metrics == nil {
		r.Metrics = m.Metrics
	} else {
		maps.Copy(r.Metrics, m.Metrics)
	}
	l.state.M++
	return m.count(&l.state.Skipped, &l.state.InARow.M, "M")
}

func (l *Loop[B, Z]) countE(e Inference[Z]) (err error) {
	s := &l.state
	if e.Wake != (Update{}) {
		err = e.Wake.count(&s.Skipped, &s.InARow.E, "E")
	}
	if e.Sleep != nil {
		err = cmp.Or(err, e.Sleep.count(&s.Skipped, &s.InARow.Sleep, "sleep"))
	}
	if e.Sleep != nil || !math.IsNaN(e.SleepLoss) {
		s.Sleep++
	}
	return err
}

// NewInference hands on latents, of an E-step that has made no update yet.
func NewInference[Z any](z Z) Inference[Z] { return Inference[Z]{Z: z, SleepLoss: math.NaN()} }

// NewMaximization is an update without moves before it.
func NewMaximization(u Update) Maximization { return Maximization{Update: u, Accepted: math.NaN()} }
