package em

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// State is everything a learner remembers besides the variables of its store.
type State struct {
	Iteration uint64 // E-updates attempted; with Gate.Alternate M-updates count too
	Sleep     uint64 // sleep phases
	M         uint64 // M-updates
	Gate      GateState
	Skipped   uint64 // updates skipped because something was not finite
	InARow    InARow // of these, the latest
}

// InARow counts, for each kind of update, those skipped since the last good one of that kind.
type InARow struct{ E, Sleep, M int }

// Report is what one iteration did.
type Report struct {
	State State
	Wake  Update  // zero if there was none: the iteration was an M-update alone, or Sleep.Alone
	Sleep *Update // nil if there was no sleep update of its own
	M     *Update // the last M-update of the iteration; nil if there was none
	// SleepLoss is the sleep part of a joint update; NaN if there was none.
	SleepLoss float64
	// Accepted is the fraction of Metropolis-Hastings moves accepted before the M-update; NaN without moves.
	Accepted float64
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
	if spec.Model == nil || spec.Env == nil || spec.Policy == nil || spec.Data == nil {
		return nil, errors.New("em: a learner needs a Model, an Env, a Policy and Data")
	}
	if spec.Sleep.Alone && spec.Sleep.Weight == 0 {
		return nil, errors.New("em: Sleep.Alone needs a Sleep.Weight")
	}
	if spec.Sleep.Weight != 0 && spec.Sleep.Batch < 1 {
		return nil, errors.New("em: a sleep phase needs Sleep.Batch, the number of pairs to dream")
	}
	if _, ok := spec.Model.(lvm.Maximizer); spec.MStep.ClosedForm && !ok {
		return nil, fmt.Errorf("em: a closed-form M-step needs a model with Maximize, which %T has not", spec.Model)
	}
	if err := spec.checkBest(); err != nil {
		return nil, err
	}
	if err := below(Phi, "Wake", spec.Wake.Optimizer); err != nil {
		return nil, err
	}
	if err := below(Theta, "MStep", spec.MStep.Optimizer); err != nil {
		return nil, err
	}
	explores := spec.Wake.Epsilon != Linear{} || spec.Wake.Beta != Linear{} && spec.Wake.Beta != Constant(1)
	if _, ok := spec.Wake.Objective.(gfn.HVI); ok && explores {
		return nil, errors.New("em: the gradient of HVI is right for on-policy trajectories only: leave Wake.Beta and Wake.Epsilon at zero")
	}
	store.RootScope().SetParam(nn.SeedParam, spec.Seed)
	return &Learner{spec: spec.withDefaults(), store: store, b: b, programs: map[kind]*model.Exec{}}, nil
}

// below checks that an optimiser keeps to its side.
func below(scope, step string, o optim.Optimizer) error {
	for _, g := range o.Groups {
		if g.Scope != scope && !strings.HasPrefix(g.Scope, scope+"/") {
			return fmt.Errorf("em: %s.Optimizer has a group %q, which is not below %s", step, g.Scope, scope)
		}
	}
	return nil
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

// Step makes one iteration: an E-update, with its sleep phase, and the M-updates that the gate calls for, or the one that MStep.Best makes.
func (l *Learner) Step() (Report, error) {
	s := &l.state
	r := Report{SleepLoss: math.NaN(), Accepted: math.NaN()}
	it := s.Iteration
	x := l.spec.Data(it)
	if l.spec.Gate.Maximizes(it) {
		made := s.M
		err := l.stepM(&r, it, x)
		s.Iteration += s.M - made // not if it could not be run at all
		r.State = *s
		return r, err
	}
	if err := l.stepE(&r, it, x); err != nil {
		return r, err
	}
	u := r.Wake
	if l.spec.Sleep.Alone {
		u = *r.Sleep
	}
	loss := u.Loss
	if !u.OK {
		loss = math.NaN() // a skipped update says nothing about the fit
	}
	for due := l.spec.Gate.observe(&s.Gate, loss, s.M); due; due = l.spec.Gate.updated(&s.Gate) {
		if err := l.stepM(&r, it, x); err != nil {
			return r, err
		}
	}
	r.State = *s
	return r, nil
}

// stepE makes the E-update of an iteration, and its sleep phase.
func (l *Learner) stepE(r *Report, it uint64, x []*tensors.Tensor) error {
	s := &l.state
	if l.spec.Sleep.Alone {
		dreamt := s.Sleep
		err := l.stepSleep(r, it, x)
		s.Iteration += s.Sleep - dreamt
		return err
	}
	dream := l.spec.Sleep.Weight != 0 &&
		rng.New(l.spec.Seed, "sleep coin", it).Float64() < l.spec.Sleep.Probability
	program, rates := wake, l.spec.Wake.Optimizer.Rates(it)
	switch {
	case l.spec.MStep.Best:
		program, rates = wakeAndMaximize, append(rates, l.spec.MStep.Optimizer.Rates(s.M)...)
	case dream && !l.spec.Sleep.Apart:
		program = wakeAndSleep
	}
	out, err := l.call(program, it, it, rates, x)
	if err != nil {
		return err
	}
	s.Iteration++
	r.Wake = update(out)
	err = l.count(r.Wake, &s.InARow.E, "E")
	switch program {
	case wakeAndSleep:
		r.SleepLoss = out[3]
	case wakeAndMaximize:
		u := update(out[4:])
		r.M = &u
		s.M++
		err = cmp.Or(err, l.count(u, &s.InARow.M, "M"))
	}
	if err != nil || !dream {
		return err
	}
	if l.spec.Sleep.Apart {
		return l.stepSleep(r, it, x)
	}
	s.Sleep++
	return nil
}

// stepSleep makes a sleep update.
func (l *Learner) stepSleep(r *Report, it uint64, x []*tensors.Tensor) error {
	out, err := l.call(sleep, it, it, l.spec.Wake.Optimizer.Rates(it), x)
	if err != nil {
		return err
	}
	u := update(out)
	r.Sleep = &u
	l.state.Sleep++
	return l.count(u, &l.state.InARow.Sleep, "sleep")
}

// stepM makes one M-update, on the batch x unless M-updates have data of their own.
func (l *Learner) stepM(r *Report, it uint64, x []*tensors.Tensor) error {
	s, spec := &l.state, &l.spec.MStep
	if spec.Data != nil {
		x = spec.Data(s.M)
	}
	program := maximize
	if spec.Greedy && spec.GreedyProbability < 1 &&
		rng.New(l.spec.Seed, "greedy coin", s.M).Float64() >= spec.GreedyProbability {
		program = maximizeSampled
	}
	out, err := l.call(program, s.M, it, spec.Optimizer.Rates(s.M), x)
	if err != nil {
		return err
	}
	u := update(out)
	r.M = &u
	if spec.Moves > 0 {
		r.Accepted = out[3]
	}
	s.M++
	return l.count(u, &s.InARow.M, "M")
}

// count keeps the tally of skipped updates.
func (l *Learner) count(u Update, inARow *int, name string) error {
	return u.Count(&l.state.Skipped, inARow, name)
}

// call runs a program for one step of its stream, in iteration it.
func (l *Learner) call(k kind, step, it uint64, rates []float32, x []*tensors.Tensor) ([]float64, error) {
	p, err := l.program(k)
	if err != nil {
		return nil, err
	}
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
