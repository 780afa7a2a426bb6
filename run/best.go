package run

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/memory"
)

// bestScope is where copies of variables are, as they were when a training was best: that of /theta/w is /best/theta/w.
const bestScope = "/best"

// Selection says when a training was best, by a measure on data that it does not learn from. A checkpoint has both states,
// so that there is no second kind of checkpoint: from the last one a run goes on, and the best one is shown and exported.
// Patience, the number of measurements without a better one that ends a training, is counted with it.
type Selection struct {
	Step  uint64  `json:"step"`  // as Job.Step reports it; 0 if nothing has been measured
	Score float64 `json:"score"` // then; the greater the better
	Since uint64  `json:"since"` // measurements after it, none of which was better
}

// Check complains about counters that a training cannot have after so many steps.
func (s Selection) Check(step uint64) error {
	if s.Step > step || s.Since > step-s.Step || math.IsNaN(s.Score) || math.IsInf(s.Score, 0) {
		return badinput.Errorf("the counters of the checkpoint say that step %d was best, %d measurements before step %d",
			s.Step, s.Since, step)
	}
	return nil
}

// Best keeps the variables below some scopes of a store as they were when the training was best. The copies are variables
// of the same store, so that every checkpoint has them: the last state, from which a run goes on, and the best one are
// saved together, and neither is ever there without the other. The Selection belongs to the counters of the job.
type Best struct {
	Selection
	scope string // of the copies
	pairs []bestPair
}

type bestPair struct{ now, best *model.Variable }

// KeepBest adds copies to a store, which must have its variables.
func KeepBest(store *model.Store, scopes ...string) (*Best, error) {
	return KeepBestAt(bestScope, store, scopes...)
}

// KeepBestAt is KeepBest with copies below another scope than /best, for what is not shown at the end of a training.
func KeepBestAt(at string, store *model.Store, scopes ...string) (*Best, error) {
	b := &Best{scope: at}
	var all []*model.Variable
	size := 0
	for v := range store.IterVariables() {
		for _, scope := range scopes {
			if strings.HasPrefix(v.Path(), scope+"/") {
				all, size = append(all, v), size+int(v.Shape().ByteSize())
			}
		}
	}
	if err := memory.Need("the best state", size); err != nil {
		return nil, err
	}
	for _, v := range all {
		a, err := variableArray(v)
		if err != nil {
			return nil, err
		}
		t, err := arrayTensor(a)
		if err != nil {
			return nil, err
		}
		copied := store.Scope(at+v.Scope()).VariableWithValue(v.Name(), t).SetTrainable(false)
		b.pairs = append(b.pairs, bestPair{v, copied})
	}
	return b, nil
}

// Measured says how good the training is after a step, and copies the variables if it never was better. A score that is
// not finite is not better.
func (b *Best) Measured(step uint64, score float64) error {
	if math.IsNaN(score) || math.IsInf(score, 0) || b.Step > 0 && score <= b.Score {
		if b.Step > 0 {
			b.Since++
		}
		return nil
	}
	for _, p := range b.pairs {
		a, err := variableArray(p.now)
		if err != nil {
			return err
		}
		t, err := arrayTensor(a)
		if err != nil {
			return err
		}
		if err := p.best.SetValue(t); err != nil {
			return fmt.Errorf("keep the best state: %w", err)
		}
	}
	b.Selection = Selection{Step: step, Score: score}
	return nil
}

// During calls f while the variables are as they were when the training was best. They stay as they are if nothing has
// been measured, or if b is nil.
func (b *Best) During(f func() error) (err error) {
	if b == nil || b.Step == 0 {
		return f()
	}
	if err := b.swap(); err != nil {
		return err
	}
	defer func() {
		if back := b.swap(); err == nil {
			err = back
		}
	}()
	return f()
}

// Take makes the best state the present one, from which the training goes on; the copies then are of the other one.
func (b *Best) Take() error {
	if b == nil || b.Step == 0 {
		return nil
	}
	return b.swap()
}

// Show is Take for who does not train any more: During shows the best state then, too.
func (b *Best) Show() error {
	err := b.Take()
	if b != nil {
		b.pairs = nil
	}
	return err
}

// swap exchanges the variables and their copies.
func (b *Best) swap() error {
	for _, p := range b.pairs {
		now, err := p.now.Value()
		if err != nil {
			return err
		}
		best, err := p.best.Value()
		if err != nil {
			return err
		}
		if err := p.now.SetValuePreservingOld(best); err != nil {
			return err
		}
		if err := p.best.SetValuePreservingOld(now); err != nil {
			return err
		}
	}
	return nil
}

// Of returns the arrays of a state as they were when its training was best: copies in the place of variables. They are
// the state's own if nothing has been measured.
func (s *Selection) Of(arrays map[string]Array) map[string]Array {
	if s == nil || s.Step == 0 {
		return arrays
	}
	out := maps.Clone(arrays)
	for path := range variablesOf(arrays) {
		if best, ok := arrays[bestScope+path]; ok {
			out[path] = best
		}
	}
	return out
}

// Older returns a state without copies, as one whose training has measured nothing yet: what it keeps are its present
// variables. Trainings of earlier versions of the program have such states. It reports false of one that has copies.
func (b *Best) Older(s State) (State, bool) {
	arrays, fixed := maps.Clone(s.Arrays), slices.Collect(maps.Keys(frozen(s.Arrays)))
	for path := range variablesOf(s.Arrays) {
		if strings.HasPrefix(path, b.scope+"/") {
			return s, false
		}
	}
	for _, p := range b.pairs {
		if a, ok := s.Arrays[p.now.Path()]; ok {
			arrays[p.best.Path()], fixed = a, append(fixed, p.best.Path())
		}
	}
	addFrozen(arrays, fixed)
	s.Arrays = arrays
	return s, true
}

// Standing says of what state a result is, for reports.
type Standing struct {
	State string  `json:"state"`           // "best", or "last"
	Step  uint64  `json:"step"`            // of that state
	Last  uint64  `json:"last_step"`       // from which the run goes on
	Score float64 `json:"score,omitempty"` // of the best one
}

// Standing says which state During shows of a training that is at a step. A nil b is one that keeps the last one alone.
func (b *Best) Standing(step uint64) Standing {
	if b == nil || b.Step == 0 {
		return Standing{State: "last", Step: step, Last: step}
	}
	return Standing{State: "best", Step: b.Step, Last: step, Score: b.Score}
}

// Note says it in words; it is empty where nothing was chosen.
func (s Standing) Note() string {
	if s.State != "best" {
		return ""
	}
	return fmt.Sprintf("this is the state of step %d, the best by validation; the last one, of step %d, is kept to go on from",
		s.Step, s.Last)
}
