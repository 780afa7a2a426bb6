package task

import (
	"fmt"
	"math"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/run"
)

// counters are what a state has besides variables.
type counters struct {
	em.State
	Selection *run.Selection `json:"selection,omitempty"` // nil if the last state is the one that counts
}

// choose looks whether what was measured after an iteration is better than ever.
func (s *Session) choose(metrics map[string]float64) error {
	if s.best == nil {
		return nil
	}
	score, ok := metrics[s.learning.Best]
	if !ok {
		return fmt.Errorf("Learning.Best is %q, which Learning.Metrics does not return", s.learning.Best)
	}
	return s.best.Measured(s.learner.State().Iteration, score)
}

// impatient reports whether so many measurements were not better than the best one that the training ends.
func (s *Session) impatient() bool {
	return s.best != nil && s.learning.Patience > 0 && s.best.Since >= s.learning.Patience
}

// restored returns a state of this session, and its counters. A run that was begun without Learning.Best has measured
// nothing yet.
func (s *Session) restored(state run.State) (run.State, counters, error) {
	var saved counters
	if err := state.Rest(&saved); err != nil {
		return state, saved, err
	}
	switch {
	case s.best == nil && saved.Selection != nil:
		return state, saved, badinput.Errorf("the checkpoint is of a training that keeps its best state, by Learning.Best")
	case s.best != nil && saved.Selection == nil:
		older, ok := s.best.Older(state)
		if !ok {
			return state, saved, badinput.Errorf("the counters of the checkpoint do not fit its configuration: missing selection")
		}
		state, saved.Selection = older, &run.Selection{}
	}
	most := s.learning.Iterations
	if most == 0 {
		most = math.MaxUint64
	}
	err := saved.Check(most)
	if err == nil && s.best != nil {
		err = saved.Selection.Check(saved.Iteration)
	}
	return state, saved, err
}

// standing says which state Evaluate and Report are about.
func (s *Session) standing() run.Standing { return s.best.Standing(s.learner.State().Iteration) }
