package induce

import (
	"math"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// triedScope is where the best start is kept while others are tried.
const triedScope = "/start"

// starts says how far the choice of a start has come.
type starts struct {
	Now    int           `json:"now"`    // that is trained, from 0; as many as there are once one is chosen
	Spent  uint64        `json:"spent"`  // iterations of other starts
	Chosen int           `json:"chosen"` // the best one so far
	Best   run.Selection `json:"best"`   // how good it was
	Loop   em.State      `json:"loop"`   // and where it stood then
}

// keepStarts prepares to try several starts, if there are.
func (s *Session) keepStarts() (err error) {
	if s.Restarts <= 1 {
		return nil
	}
	if valid, err := s.data.Split(treebank.Valid); err != nil || len(valid.Sentences) == 0 {
		return badinput.Errorf("restarts = %d needs validation sentences, and %s has none of 2 to %d words",
			s.Restarts, s.Config.Data, s.MaxLength)
	}
	s.Starts = &starts{}
	s.tried, err = run.KeepBestAt(triedScope, s.set.Store, em.Theta, em.Phi, em.Kept, optim.Root)
	return err
}

// starting reports whether a start is still to be chosen.
func (s *Session) starting() bool { return s.Starts != nil && s.Starts.Now < s.Restarts }

// spent is the number of iterations of starts that are not gone on with.
func (s *Session) spent() uint64 {
	if s.Starts == nil {
		return 0
	}
	return s.Starts.Spent
}

// left is the least number of iterations of the starts that are still to come.
func (s *Session) left() uint64 {
	if !s.starting() {
		return 0
	}
	return uint64(s.Restarts-1-s.Starts.Now) * uint64(s.RestartUpdates)
}

// endStart compares a start with those before, and begins the next one, or goes on with the best.
func (s *Session) endStart(log map[string]float64) error {
	if _, ok := log["valid/nll_per_word"]; !ok {
		if err := s.measure(log); err != nil {
			return err
		}
	}
	at, before := s.Starts, s.tried.Selection
	if err := s.tried.Measured(s.at(), -log["valid/nll_per_word"]); err != nil {
		return err
	}
	if s.tried.Step != before.Step {
		at.Chosen, at.Loop = at.Now, s.loop.State()
	}
	at.Now++
	at.Spent += s.loop.State().Iteration
	if at.Now < s.Restarts {
		return s.begin(at.Now)
	}
	if s.tried.Step == 0 { // no start can be measured: this one is as good as any
		at.Chosen, at.Loop = at.Now-1, s.loop.State()
	}
	if err := s.tried.Take(); err != nil {
		return err
	}
	at.Spent -= at.Loop.Iteration
	s.loop.SetState(at.Loop)
	if s.best == nil || s.tried.Step == 0 {
		return nil
	}
	return s.best.Measured(s.at(), s.tried.Score)
}

// begin sets all variables to where another start has them.
func (s *Session) begin(start int) error {
	c := s.Config
	c.Seed, c.Restarts, c.Eval.Select, c.Eval.Patience = rng.New(c.Seed, "grammar/start", uint64(start)).Uint64()&math.MaxInt64, 1, Last, 0
	fresh, err := NewSession(s.set.Backend, c, s.data)
	if err != nil {
		return err
	}
	defer fresh.Close()
	from, err := run.StoreArrays(fresh.set.Store)
	if err != nil {
		return err
	}
	arrays, err := run.StoreArrays(s.set.Store)
	if err != nil {
		return err
	}
	for path, a := range from {
		if strings.HasPrefix(path, "/") { // a variable
			arrays[path] = a
		}
	}
	s.loop.SetState(em.State{})
	return run.SetStore(s.set.Store, arrays)
}

// checkStarts complains about starts that the training cannot have; to where it stands it adds their iterations.
func (s *Session) checkStarts(saved counters, at *uint64) error {
	if (saved.Starts != nil) != (s.Starts != nil) {
		return badinput.Errorf("the checkpoint is of a training with another number of restarts")
	}
	if s.Starts == nil {
		return nil
	}
	c := saved.Starts
	if c.Now < 0 || c.Now > s.Restarts || c.Chosen < 0 || c.Chosen >= s.Restarts || c.Spent > math.MaxInt64 ||
		c.Now < s.Restarts && saved.Loop.M > uint64(s.RestartUpdates) || c.Loop.M > uint64(s.RestartUpdates) {
		return badinput.Errorf("the counters of the checkpoint contradict each other: %+v", *c)
	}
	*at += c.Spent
	return c.Best.Check(*at)
}

// Chosen says which of several starts was gone on with, counted from 1; ok is false if there was no choice, or not yet.
func (s *Session) Chosen() (start, of int, ok bool) {
	if s.Starts == nil || s.starting() {
		return 0, 0, false
	}
	return s.Starts.Chosen + 1, s.Restarts, true
}
