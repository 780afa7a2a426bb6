package em

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// State is everything a learner remembers besides the variables of its store.
type State struct {
	Iteration uint64 // E-updates attempted
	Sleep     uint64 // sleep phases
	M         uint64 // M-updates
	Gate      GateState
	Skipped   uint64 // updates skipped because something was not finite
	InARow    int    // of these, the latest without a good one in between
}

// maxInARow is the number of successive skipped updates after which a learner gives up.
const maxInARow = 5

// ErrDiverged is returned when too many successive updates were not finite; the variables are those of the last good one.
var ErrDiverged = errors.New("training diverged")

// Report is what one iteration did.
type Report struct {
	State State
	Wake  Update
	Sleep *Update // nil if there was no sleep update of its own
	M     *Update // the last M-update of the iteration; nil if there was none
	// SleepLoss is the sleep part of a joint update; NaN if there was none.
	SleepLoss float64
	// Accepted is the fraction of Metropolis-Hastings moves accepted before the M-update; NaN without moves.
	Accepted float64
}

// Update is one optimiser step. The M-step's loss is the mean of -log p(x,z).
type Update struct {
	Loss, GradNorm float64
	OK             bool
}

// Learner runs GFlowNet-EM.
type Learner struct {
	spec  Spec
	store *model.Store
	state State
	b     compute.Backend

	programs map[kind]*model.Exec
}

// New prepares a learner whose variables live in store. It compiles nothing yet.
func New(b compute.Backend, store *model.Store, spec Spec) (*Learner, error) {
	if spec.Sleep.Weight != 0 && spec.Sleep.Batch < 1 {
		return nil, errors.New("em: a sleep phase needs Sleep.Batch, the number of pairs to dream")
	}
	if _, ok := spec.Model.(lvm.Maximizer); spec.MStep.ClosedForm && !ok {
		return nil, fmt.Errorf("em: a closed-form M-step needs a model with Maximize, which %T has not", spec.Model)
	}
	store.RootScope().SetParam(nn.SeedParam, spec.Seed)
	return &Learner{spec: spec.withDefaults(), store: store, b: b, programs: map[kind]*model.Exec{}}, nil
}

// Store returns the store of all variables.
func (l *Learner) Store() *model.Store { return l.store }

// State returns the counters, to be saved with the store.
func (l *Learner) State() State { return l.state }

// SetState continues from saved counters.
func (l *Learner) SetState(s State) { l.state = s }

// Close releases the compiled programs.
func (l *Learner) Close() {
	for _, p := range l.programs {
		p.Finalize()
	}
	clear(l.programs)
}

// Train iterates until the context ends or until says so, calling each, if not nil, after every iteration.
func (l *Learner) Train(ctx context.Context, until func(State) bool, each func(Report) error) error {
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

// Step makes one iteration: an E-update, with its sleep phase, and the M-updates that the gate calls for.
func (l *Learner) Step() (Report, error) {
	s := &l.state
	r := Report{SleepLoss: math.NaN(), Accepted: math.NaN()}
	it := s.Iteration
	x := l.spec.Data(it)

	dream := l.spec.Sleep.Weight != 0 &&
		rng.New(l.spec.Seed, "sleep coin", it).Float64() < l.spec.Sleep.Probability
	program := wake
	if dream && !l.spec.Sleep.Apart {
		program = wakeAndSleep
	}
	out, err := l.call(program, it, l.spec.Wake.Optimizer.Rates(it), x)
	if err != nil {
		return r, err
	}
	r.Wake = update(out)
	if program == wakeAndSleep {
		r.SleepLoss = out[3]
	}
	s.Iteration++
	if err := l.count(r.Wake, "E"); err != nil {
		return r, err
	}
	if dream {
		if l.spec.Sleep.Apart {
			if out, err = l.call(sleep, it, l.spec.Wake.Optimizer.Rates(it), x); err != nil {
				return r, err
			}
			u := update(out)
			r.Sleep = &u
			if err := l.count(u, "sleep"); err != nil {
				return r, err
			}
		}
		s.Sleep++
	}

	loss := r.Wake.Loss
	if !r.Wake.OK {
		loss = s.Gate.Average // a skipped update says nothing about the fit
	}
	for due := l.spec.Gate.observe(&s.Gate, loss, s.M); due; due = l.spec.Gate.updated(&s.Gate) {
		if l.spec.MStep.Data != nil {
			x = l.spec.MStep.Data(s.M)
		}
		if out, err = l.call(maximize, s.M, l.spec.MStep.Optimizer.Rates(s.M), x); err != nil {
			return r, err
		}
		u := update(out)
		r.M = &u
		if l.spec.MStep.Moves > 0 {
			r.Accepted = out[3]
		}
		s.M++
		if err := l.count(u, "M"); err != nil {
			return r, err
		}
	}
	r.State = *s
	return r, nil
}

// count keeps the tally of skipped updates.
func (l *Learner) count(u Update, name string) error {
	if u.OK {
		l.state.InARow = 0
		return nil
	}
	l.state.Skipped++
	if l.state.InARow++; l.state.InARow < maxInARow {
		return nil
	}
	return fmt.Errorf("%w: %d updates in a row were not finite (the last one an %s-update with loss %g and gradient norm %g); "+
		"try a smaller learning rate or gradient clipping", ErrDiverged, l.state.InARow, name, u.Loss, u.GradNorm)
}

// call runs a program for one step of its stream.
func (l *Learner) call(k kind, step uint64, rates []float32, x []*tensors.Tensor) ([]float64, error) {
	p, err := l.program(k)
	if err != nil {
		return nil, err
	}
	it := l.state.Iteration
	knobs := []float32{float32(l.spec.Wake.Beta.At(it)), float32(l.spec.Wake.Epsilon.At(it))}
	args := []any{rng.Key(l.spec.Seed, string(k), step), rates, knobs}
	for _, t := range x {
		args = append(args, t)
	}
	out, err := p.Call(args...)
	if err != nil {
		return nil, fmt.Errorf("%s update %d: %w", k, step, err)
	}
	return tensors.CopyFlatData[float64](out[0])
}

func update(out []float64) Update { return Update{Loss: out[0], GradNorm: out[1], OK: out[2] != 0} }
