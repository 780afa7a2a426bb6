package induce

import (
	"fmt"
	"maps"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// Trial measures iterations of GFlowNet-EM on sentences that mean nothing.
type Trial struct{ s *Session }

// NewTrial prepares one for a vocabulary of so many words. Lengths are uniform up to the configuration's greatest.
func NewTrial(b compute.Backend, c Config, words int) (*Trial, error) {
	c.Method, c.Pool = GFN, 1
	if err := c.Validate(); err != nil {
		return nil, err
	}
	names := make([]string, words)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	v, err := treebank.NewVocabulary(names)
	if err != nil {
		return nil, err
	}
	r := rng.New(c.Seed, "trial")
	some := make([]treebank.Sentence, 4*c.Batch)
	for i := range some {
		some[i].Words = make([]int32, 2+r.IntN(c.MaxLength-1))
		for j := range some[i].Words {
			some[i].Words[j] = int32(r.IntN(words))
		}
	}
	s, err := NewSession(b, c, &treebank.Dataset{Vocabulary: v, Splits: []treebank.Split{
		{Name: treebank.Train, Sentences: some}, {Name: treebank.Valid, Sentences: some[:1]},
	}})
	if err != nil {
		return nil, err
	}
	s.loop.SetState(em.State{Iteration: 1}) // an epoch begins without an M-step
	return &Trial{s}, nil
}

// Iterate makes an iteration, with an M-step or without. With parts it also returns what each program took, waiting for each.
func (t *Trial) Iterate(maximize, parts bool) (total time.Duration, each map[string]time.Duration, err error) {
	s := t.s
	state := s.loop.State()
	if state.Iteration%s.sampler.perEpoch() == 0 {
		state.Iteration++
	}
	state.Gate.Open = maximize
	s.loop.SetState(state)
	s.set.Measure(parts)
	defer s.set.Measure(false)
	begin := time.Now()
	if _, err := s.loop.Step(); err != nil {
		return 0, nil, err
	}
	total = time.Since(begin)
	if each = maps.Clone(s.set.Times()); each != nil {
		rest := total
		for _, d := range each {
			rest -= d
		}
		each["host"] = rest
	}
	return total, each, nil
}

// Close releases the compiled programs.
func (t *Trial) Close() { t.s.Close() }
