package induce

import (
	"math"
	"testing"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/treebank"
)

// The curves of a GFlowNet are of one trajectory of each sentence, the first of an evaluation.
func TestWatchGFN(t *testing.T) {
	s := tinySession(t, tinyGFN(4, grammar.NCFG))
	log := map[string]float64{}
	if err := s.watch(log); err != nil {
		t.Fatal(err)
	}
	valid, err := s.data.Split(treebank.Valid)
	if err != nil {
		t.Fatal(err)
	}
	logX, err := s.Exact.LogLikelihoods(valid.Sentences)
	if err != nil {
		t.Fatal(err)
	}
	r, draws, err := s.Network.Bounds(valid.Sentences, logX, s.Config.Seed)
	if err != nil {
		t.Fatal(err)
	}
	f1, err := treebank.F1(valid.Sentences, parse.Spans(draws.First), treebank.Standard)
	if err != nil {
		t.Fatal(err)
	}
	if log["valid/flow_per_word"] != r.Flow.PerWord || log["valid/gfn_f1"] != f1.Sentence {
		t.Errorf("%v, evaluated %+v and %+v", log, r.Flow, f1)
	}
	// One trajectory is as good as 32 within the error of one.
	if off := math.Abs(log["valid/bound_per_word"] - r.Bound.PerWord); !(off <= sigmas*r.Bound.Error*math.Sqrt(32)) || off == 0 {
		t.Errorf("bound %v, evaluated %+v", log["valid/bound_per_word"], r.Bound)
	}
}
