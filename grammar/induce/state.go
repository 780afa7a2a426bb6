package induce

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/prior"
	"github.com/gfnem/gfnem/run"
)

// counters are the part of a state that is not arrays.
type counters struct {
	Loop    em.State `json:"loop"`
	OfPrior uint64   `json:"prior_updates"`
	// OfPriorSkipped are updates of the prior that were not made.
	OfPriorSkipped em.Tally `json:"prior_skipped"`
	// Words is the vocabulary, so that a run can parse without its data.
	Words      []string          `json:"words"`
	Symbols    *symbols          `json:"symbols,omitempty"` // of a fixed grammar
	PriorState *prior.Checkpoint `json:"prior,omitempty"`
	// Selection says which state was best; nil if the last one counts.
	Selection *run.Selection `json:"selection,omitempty"`
	Starts    *starts        `json:"starts,omitempty"` // nil if there is only one
}

// declare makes all variables of the training: graphs that use the grammar or the network use all of it.
func (s *Session) declare(tables func(*graph.Graph) grammar.LogProbs) error {
	if err := forest.Weigher(s.set, tables).Declare(shortest()); err != nil {
		return err
	}
	if s.gfn != nil {
		if err := s.gfn.Flow.Declare(shortest()); err != nil {
			return err
		}
		s.gfn.optimizer.Declare(s.set.Store)
	}
	if s.fixed == nil {
		s.loop.M.(mStep).optimizer.Declare(s.set.Store)
	}
	return nil
}

// shortest is a batch of one sentence of two words, for its shape.
func shortest() forest.SentenceTensors {
	return forest.SentenceTensors{
		Words: tensors.FromValue([][]int32{{0, 0}}), Lengths: tensors.FromValue([]int32{2}),
	}
}

// State implements run.Job.
func (s *Session) State() (run.State, error) {
	arrays, err := run.StoreArrays(s.set.Store)
	if err != nil {
		return run.State{}, err
	}
	if s.prior != nil {
		s.PriorState = &s.prior.Checkpoint
	}
	if s.best != nil {
		s.Selection = &s.best.Selection
	}
	if s.tried != nil {
		s.Starts.Best = s.tried.Selection
	}
	s.counters.Loop = s.loop.State()
	extra, err := json.Marshal(s.counters)
	return run.State{Arrays: arrays, Extra: extra}, err
}

// Restore implements run.Job.
func (s *Session) Restore(state run.State) error {
	var saved counters // decoded apart from s.counters, whose words are those of the data
	if err := state.Rest(&saved); err != nil {
		return err
	}
	if !slices.Equal(saved.Words, s.Words) {
		return badinput.Errorf("%s does not have the words that the run was started with: give it back as it was",
			s.Config.Data)
	}
	if !reflect.DeepEqual(saved.Symbols, s.Symbols) {
		return badinput.Errorf("the checkpoint is of other symbols than the configuration: was fixed = %q edited?", s.Fixed)
	}
	if err := s.older(&state, &saved); err != nil {
		return err
	}
	if err := s.check(saved); err != nil {
		return err
	}
	if err := run.SetStore(s.set.Store, state.Arrays); err != nil {
		return err
	}
	s.counters = saved
	s.loop.SetState(saved.Loop)
	if s.best != nil {
		s.best.Selection = *saved.Selection
	}
	if s.tried != nil {
		s.tried.Selection = saved.Starts.Best
	}
	if s.prior != nil {
		s.prior.Checkpoint = *s.PriorState
	}
	return nil
}

// check complains about counters that the training cannot have.
func (s *Session) check(saved counters) error {
	iterations := uint64(math.MaxUint64) // the gate decides on them
	switch {
	case s.fixed != nil, s.gfn == nil:
		iterations = uint64(s.Config.Updates)
	case s.MaxIterations > 0:
		iterations = uint64(s.MaxIterations)
	}
	if err := saved.Loop.Check(iterations); err != nil {
		return err
	}
	if saved.Loop.M > uint64(s.Config.Updates) {
		return badinput.Errorf("the checkpoint is already at update %d of %d", saved.Loop.M, s.Config.Updates)
	}
	at := saved.OfPrior + saved.Loop.Iteration
	if err := s.checkStarts(saved, &at); err != nil {
		return err
	}
	if s.best != nil {
		if err := saved.Selection.Check(at); err != nil {
			return err
		}
	}
	if (saved.PriorState != nil) != (s.prior != nil) {
		return badinput.Errorf("the checkpoint is of a training with prior.on = %t", saved.PriorState != nil)
	}
	if s.prior == nil {
		return nil
	}
	if saved.OfPrior > uint64(s.Prior.Updates) {
		return badinput.Errorf("the counters of the checkpoint say update %d of %d of the prior", saved.OfPrior,
			s.Prior.Updates)
	}
	return saved.PriorState.Check()
}
