package induce

import (
	"errors"

	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/treebank"
)

// Watched is the number of validation sentences behind a point of the curves.
const Watched = 256

// watch measures the grammar on some validation sentences, for the curves, and keeps it if it never was better.
func (s *Session) watch(log map[string]float64) error {
	if err := s.measure(log); err != nil || s.best == nil || s.starting() {
		return err
	}
	key := "valid/nll_per_word"
	if s.fixed != nil { // that stays as it is
		key = "valid/bound_per_word"
	}
	nats, ok := log[key]
	if !ok {
		return nil
	}
	return s.best.Measured(s.at(), -nats)
}

func (s *Session) measure(log map[string]float64) error {
	split, err := s.data.Split(treebank.Valid)
	if err != nil || len(split.Sentences) == 0 {
		return nil
	}
	some := spread(split.Sentences, Watched)
	logP, err := s.Exact.LogLikelihoods(some)
	if err != nil {
		return err
	}
	log["valid/nll_per_word"] = parse.NatsPerWord(logP, some)
	if s.Network != nil {
		if err := s.watchGFN(log, some, split.Gold); err != nil && !errors.Is(err, parse.ErrNotFinite) { // which the updates count
			return err
		}
	}
	if !split.Gold {
		return nil
	}
	best, err := s.Exact.Parse(some, parse.Viterbi, s.Config.Seed)
	if err != nil {
		return err
	}
	score, err := treebank.F1(some, parse.Spans(parse.Trees(best)), treebank.Standard)
	log["valid/f1"] = score.Sentence
	return err
}

// watchGFN measures the GFlowNet with one trajectory of each sentence.
func (s *Session) watchGFN(log map[string]float64, some []treebank.Sentence, gold bool) error {
	d, err := s.Network.DrawOnce(some, s.Config.Seed)
	if err != nil {
		return err
	}
	bound := make([]float64, len(some))
	for i, w := range d.LogW {
		bound[i] = w[0]
	}
	log["valid/bound_per_word"] = parse.NatsPerWord(bound, some)
	if !s.Network.NoFlows {
		flows, err := s.Network.LogLikelihoods(some)
		if err != nil {
			return err
		}
		log["valid/flow_per_word"] = parse.NatsPerWord(flows, some)
	}
	if !gold {
		return nil
	}
	score, err := treebank.F1(some, parse.Spans(d.First), treebank.Standard)
	log["valid/gfn_f1"] = score.Sentence
	return err
}

// spread takes at most n sentences at even distances, since files are often sorted by length.
func spread(all []treebank.Sentence, n int) []treebank.Sentence {
	if len(all) <= n {
		return all
	}
	some := make([]treebank.Sentence, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	return some
}
