package induce

import (
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// keepBest prepares to keep the best state, if that is the one that counts.
func (s *Session) keepBest() (err error) {
	if s.Eval.Select != Best {
		return nil
	}
	if valid, err := s.data.Split(treebank.Valid); s.Eval.Patience > 0 && (err != nil || len(valid.Sentences) == 0) {
		return badinput.Errorf("eval.patience = %d needs validation sentences, and %s has none of 2 to %d words",
			s.Eval.Patience, s.Config.Data, s.MaxLength)
	}
	s.best, err = run.KeepBest(s.set.Store, em.Theta, em.Phi)
	return err
}

// impatient reports whether so many evaluations were not better than the best one that the training ends.
func (s *Session) impatient() bool {
	return s.best != nil && s.Eval.Patience > 0 && s.best.Since >= uint64(s.Eval.Patience)
}

// AtBest calls f while the grammar and the GFlowNet are those that count: the best ones, if the training keeps these.
func (s *Session) AtBest(f func() error) error { return s.best.During(f) }

// Standing says which state that is.
func (s *Session) Standing() run.Standing { return s.best.Standing(s.at()) }

// older makes a state of an earlier version of the program, which kept the last state alone, one of this training.
func (s *Session) older(state *run.State, saved *counters) error {
	switch {
	case (saved.Selection != nil) == (s.best != nil):
		return nil
	case s.best == nil:
		return badinput.Errorf("the checkpoint is of a training with eval.select = %q", Best)
	}
	older, ok := s.best.Older(*state)
	if !ok {
		return badinput.Errorf("the counters of the checkpoint do not fit its configuration: missing selection")
	}
	*state, saved.Selection = older, &run.Selection{}
	return nil
}

// bestOf puts the variables that count in the place of those of a state.
func bestOf(state *run.State) error {
	var saved counters
	if err := state.Rest(&saved); err != nil {
		return err
	}
	state.Arrays = saved.Selection.Of(state.Arrays)
	return nil
}
