package em

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

// spoil returns the observations of a toy with a second tensor that is NaN at the steps listed.
func spoil(m toy, bad ...uint64) Data {
	x := m.all()
	return func(step uint64) []*tensors.Tensor {
		extra := make([]float64, m.observations())
		if slices.Contains(bad, step) {
			extra[1] = math.NaN()
		}
		return []*tensors.Tensor{x, floats(m.dtype, extra, len(extra))}
	}
}

func TestSkipped(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	for _, c := range []struct {
		name    string
		e, m    []uint64 // the E- and M-updates that are spoilt
		n       int
		skipped uint64
		diverge string
	}{
		{"one E", []uint64{2}, nil, 5, 1, ""},
		{"one M", nil, []uint64{2}, 5, 1, ""},
		{"both", []uint64{0, 3}, []uint64{0, 1}, 5, 4, ""},
		{"four E, twice", []uint64{1, 2, 3, 4, 6, 7, 8, 9}, nil, 12, 8, ""},
		{"four M, twice", nil, []uint64{1, 2, 3, 4, 6, 7, 8, 9}, 12, 8, ""},
		{"five E", []uint64{2, 3, 4, 5, 6}, nil, 7, 5, "E-updates"},
		{"five M", nil, []uint64{2, 3, 4, 5, 6}, 7, 5, "M-updates"},
		{"from the start", []uint64{0, 1, 2, 3, 4}, nil, 5, 5, "E-updates"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := toySpec(m)
			spec.Data = spoil(m, c.e...)
			spec.MStep.Data = spoil(m, c.m...)
			spec.Wake.Optimizer = adam(Phi, optim.Rate{Base: 0.01})
			l := newLearner(t, b, spec)
			phi, theta := []string{Phi, optim.Root + Phi}, []string{Theta, optim.Root + Theta}
			for i := range uint64(c.n) {
				phiBefore, thetaBefore := snapshot(t, l.Store(), phi...), snapshot(t, l.Store(), theta...)
				gate := l.State().Gate
				r, err := l.Step()
				last := i == uint64(c.n)-1
				if last && c.diverge != "" {
					if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), c.diverge) {
						t.Fatalf("error %v, want that %s diverged", err, c.diverge)
					}
				} else if err != nil {
					t.Fatal(err)
				}
				badE, badM := slices.Contains(c.e, i), slices.Contains(c.m, i)
				if r.Wake.OK == badE || err == nil && r.M.OK == badM {
					t.Errorf("iteration %d reports %+v, %+v", i, r.Wake, r.M)
				}
				if i == 0 {
					continue // variables were made
				}
				if moved := changed(phiBefore, snapshot(t, l.Store(), phi...)); (len(moved) == 0) != badE {
					t.Errorf("iteration %d moved %v", i, moved)
				}
				moved := changed(thetaBefore, snapshot(t, l.Store(), theta...))
				if err == nil && (len(moved) == 0) != badM || err != nil && c.diverge == "E-updates" && len(moved) > 0 {
					t.Errorf("iteration %d moved %v", i, moved)
				}
				if badE && err == nil && l.State().Gate.Average != gate.Average {
					t.Errorf("iteration %d: the average moved", i)
				}
				inARow := l.State().InARow
				if (inARow.E > 0) != badE || err == nil && (inARow.M > 0) != badM || inARow.Sleep != 0 {
					t.Errorf("iteration %d: in a row %+v", i, inARow)
				}
			}
			if got := l.State().Skipped; got != c.skipped {
				t.Errorf("%d updates skipped, want %d", got, c.skipped)
			}
			for v := range l.Store().IterVariables() {
				for _, x := range numbersOf(t, l.Store(), v.Path()) {
					if math.IsNaN(x) || math.IsInf(x, 0) {
						t.Fatalf("%s is not finite", v.Path())
					}
				}
			}
		})
	}

	// The tally goes on where it was saved.
	spec := toySpec(m)
	spec.Data, spec.MStep.Data = spoil(m, 1, 2, 3, 4, 5), Full(m.all())
	l := newLearner(t, b, spec)
	steps(t, l, 4)
	l = resume(t, b, spec, l)
	steps(t, l, 1)
	if _, err := l.Step(); !errors.Is(err, ErrDiverged) {
		t.Errorf("resumed: error %v, want ErrDiverged", err)
	}

	// A sleep update of its own has its own tally.
	spec = toySpec(m)
	spec.Sleep = Sleep{Weight: math.Inf(1), Batch: 4, Apart: true}
	l = newLearner(t, b, spec)
	steps(t, l, 4)
	if want := (InARow{Sleep: 4}); l.State().InARow != want {
		t.Errorf("in a row %+v, want %+v", l.State().InARow, want)
	}
	if _, err := l.Step(); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "sleep-updates") {
		t.Errorf("error %v, want that sleep updates diverged", err)
	}
}

func TestNewErrors(t *testing.T) {
	b := newBackend(t)
	m := tiny()
	for name, c := range map[string]struct {
		set  func(*Spec)
		want string
	}{
		"no model":     {func(s *Spec) { s.Model = nil }, "needs a Model"},
		"no env":       {func(s *Spec) { s.Env = nil }, "an Env"},
		"no policy":    {func(s *Spec) { s.Policy = nil }, "a Policy"},
		"no data":      {func(s *Spec) { s.Data = nil }, "Data"},
		"no batch":     {func(s *Spec) { s.Sleep.Weight = 1 }, "Sleep.Batch"},
		"no maximiser": {func(s *Spec) { s.Model, s.MStep.ClosedForm = plainToy{m}, true }, "em.plainToy"},
		"E trains all": {func(s *Spec) { s.Wake.Optimizer = adam("/", optim.Rate{}) }, `Wake.Optimizer has a group "/"`},
		"E trains M's": {func(s *Spec) { s.Wake.Optimizer = adam(Theta, optim.Rate{}) }, `"/theta"`},
		"M trains E's": {func(s *Spec) { s.MStep.Optimizer = adam("/phi/flow", optim.Rate{}) }, `MStep.Optimizer has a group "/phi/flow"`},
		"near miss":    {func(s *Spec) { s.MStep.Optimizer = adam("/theta2", optim.Rate{}) }, `"/theta2"`},
		"no sleep":     {func(s *Spec) { s.Sleep.Batch = 0 }, ""},
		"plain model":  {func(s *Spec) { s.Model = plainToy{m} }, ""},
		"groups":       {func(s *Spec) { s.Wake.Optimizer = adam("/phi/flow", optim.Rate{}) }, ""},
	} {
		spec := toySpec(m)
		c.set(&spec)
		l, err := New(b, model.NewStore(), spec)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if l != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %s", name, err, c.want)
		}
	}
}

// What is wrong with a model shows as an error of New, and what is wrong with a batch as one of Step.
func TestBuildErrors(t *testing.T) {
	m := tiny()
	spec := toySpec(m)
	spec.Wake.Objective = gfn.VarGrad{Samples: 1}
	_, err := New(newBackend(t), model.NewStore(), spec)
	if err == nil || !strings.Contains(err.Error(), `program "wake": failure_test.go:`) ||
		!strings.Contains(err.Error(), "gfn: VarGrad needs two or more trajectories") {
		t.Errorf("error %v", err)
	}
	spec = toySpec(m)
	spec.Data = func(step uint64) []*tensors.Tensor {
		return []*tensors.Tensor{tensors.FromShape(shapes.Make(dtypes.Float32, 4, m.bits+int(step)))}
	}
	l := newLearner(t, newBackend(t), spec)
	steps(t, l, 1)
	before := l.State()
	if _, err := l.Step(); err == nil || !strings.Contains(err.Error(), "wake update 1") {
		t.Errorf("error %v", err)
	}
	if l.State() != before {
		t.Errorf("state %+v after a failure", l.State())
	}
}

// abort panics with something that is no error, as a user's network may.
type abort struct{}

func (abort) Heads(*model.Scope, gfn.Batch, gfn.State, int) gfn.Heads { panic("boom") }

func TestPanicOfPolicy(t *testing.T) {
	spec := toySpec(tiny())
	spec.Policy = abort{}
	if _, err := New(newBackend(t), model.NewStore(), spec); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("error %v, want the policy's", err)
	}
}

func TestHVINeedsOnPolicy(t *testing.T) {
	spec := toySpec(tiny())
	spec.Wake.Objective, spec.Wake.Explore.Epsilon = gfn.HVI{}, Constant(0.1)
	if _, err := New(newBackend(t), model.NewStore(), spec); err == nil {
		t.Error("HVI with exploration was accepted")
	}
}
