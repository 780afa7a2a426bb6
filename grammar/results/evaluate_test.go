package results

import (
	"math"
	"testing"

	"github.com/gfnem/gfnem/treebank"
)

// The likelihood per word counts the end of each sentence as a word, and is that of the grammar's table in double precision.
func TestEvaluate(t *testing.T) {
	s := tinySession(t, tinyConfig(Marginal))
	steps(t, s, 20)
	valid, err := s.data.Split(treebank.Valid)
	if err != nil {
		t.Fatal(err)
	}
	truth := -100.0
	valid.TrueLogProb = &truth
	r, err := s.Evaluate()
	if err != nil {
		t.Fatal(err)
	}
	res := r.(*Result)
	if len(res.Splits) != 2 || res.Splits[0].Name != treebank.Valid || res.Splits[1].Name != treebank.Test || res.Updates != 20 {
		t.Fatalf("%+v", res)
	}
	g, err := s.table(simd(), stateOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewParser(simd(), g)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	logP, err := p.LogLikelihoods(valid.Sentences)
	if err != nil {
		t.Fatal(err)
	}
	nll, tokens := 0.0, 0.0
	for i, x := range valid.Sentences {
		nll -= logP[i]
		tokens += float64(len(x.Words)) + 1
	}
	// Single precision has seven digits.
	if got := res.Splits[0]; !(math.Abs(got.NLL-nll/tokens) <= 1e-5) || !(math.Abs(*got.TrueNLL-100/tokens) <= 1e-12) {
		t.Errorf("%v nats per word and truly %v, want %v and %v", got.NLL, *got.TrueNLL, nll/tokens, 100/tokens)
	}
	if res.Splits[1].TrueNLL != nil {
		t.Error("a true likelihood that nobody knows")
	}
	checkScores(t, res.Splits[0])
}

func checkScores(t *testing.T, r SplitResult) {
	t.Helper()
	scores := map[string]F1{}
	for _, f := range r.F1 {
		scores[f.Trees] = f
	}
	if len(scores) != 7 {
		t.Errorf("%d rows, want three of the grammar and four baselines", len(scores))
	}
	// The formula of a sentence has 1e-8 in its denominators.
	if gold := scores["gold, made binary"]; !(math.Abs(gold.Sentence-100) <= 1e-5) || gold.Corpus != 100 || !(gold.Released < 100) {
		t.Errorf("gold trees, which are binary, have %+v", gold)
	}
	if right, left := scores["right-branching"], scores["left-branching"]; !(left.Corpus < right.Corpus && right.Corpus < 100) {
		t.Errorf("right-branching %+v, left-branching %+v", right, left)
	}
	if r.Labels < 1 || r.Labels > 3 || !(1 <= r.LabelPerplexity && r.LabelPerplexity <= float64(r.Labels)+1e-9) {
		t.Errorf("%d labels of 3, perplexity %v", r.Labels, r.LabelPerplexity)
	}
}

// What the curves say is what an evaluation says, of the same sentences.
func TestWatch(t *testing.T) {
	c := tinyConfig(Marginal)
	c.EvalEvery, c.Updates = 4, 6
	s := tinySession(t, c)
	for k := 1; k <= 6; k++ {
		tick, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		nll, logged := tick.Log["valid/nll_per_word"]
		if want := k == 4 || k == 6; logged != want {
			t.Fatalf("update %d is evaluated: %t", k, logged)
		}
		if !logged {
			continue
		}
		valid, err := s.data.Split(treebank.Valid)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.evaluate(valid)
		if err != nil {
			t.Fatal(err)
		}
		if nll != r.NLL || tick.Log["valid/f1"] != r.F1[0].Sentence {
			t.Errorf("update %d: %v nats and F1 %v, evaluated %v and %v", k, nll, tick.Log["valid/f1"], r.NLL, r.F1[0].Sentence)
		}
	}
}
