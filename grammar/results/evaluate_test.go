package results

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/treebank"
)

// The likelihood per word counts the end of each sentence as a word, and is that of the grammar's table in double
// precision.
func TestEvaluate(t *testing.T) {
	s := tinySession(t, tinyConfig(induce.Marginal), tinyData(t))
	for range 20 {
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	valid := s.HeldOut()[0]
	truth := -100.0
	valid.TrueLogProb = &truth
	r, err := s.Evaluate()
	if err != nil {
		t.Fatal(err)
	}
	res := r.(*Result)
	if len(res.Splits) != 2 || res.Splits[0].Name != treebank.Valid || res.Splits[1].Name != treebank.Test || res.Updates != 20 || res.Iterations != 0 {
		t.Fatalf("%+v", res)
	}
	g, err := s.Learned()
	if err != nil {
		t.Fatal(err)
	}
	p := parse.NewExact(simd(), g)
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
	c := tinyConfig(induce.Marginal)
	c.Eval.Every, c.Updates = 4, 6
	s := tinySession(t, c, tinyData(t))
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
		r, err := s.evaluate(s.HeldOut()[0])
		if err != nil {
			t.Fatal(err)
		}
		if nll != r.NLL || tick.Log["valid/f1"] != r.F1[0].Sentence {
			t.Errorf("update %d: %v nats and F1 %v, evaluated %v and %v", k, nll, tick.Log["valid/f1"], r.NLL, r.F1[0].Sentence)
		}
	}
}

// An evaluation of a GFlowNet has all that others have, and more; a prior on shapes, which its training sees, plays no
// part.
func TestEvaluateGFN(t *testing.T) {
	c := tinyGFN(3, grammar.CFG)
	evaluated := func(c induce.Config) *Result {
		t.Helper()
		r, err := tinySession(t, c, tinyData(t)).Evaluate()
		if err != nil {
			t.Fatal(err)
		}
		return r.(*Result)
	}
	r := evaluated(c)
	var names []string
	for _, f := range r.Splits[0].F1 {
		names = append(names, f.Trees)
	}
	if got, want := fmt.Sprint(names[:5]), "[viterbi mbr sample gfn gfn-mbr]"; got != want || len(names) != 9 {
		t.Errorf("F1 of %s, want those of %s first", names, want)
	}
	g := r.Splits[0].GFlowNet
	if d := g.Bound.PerWord - r.Splits[0].NLL - g.KLTrajectories.PerWord; !(math.Abs(d) <= 1e-9) || !(g.KLTrajectories.PerWord > 0) {
		t.Errorf("bound %v, exact %v, KL %v", g.Bound, r.Splits[0].NLL, g.KLTrajectories)
	}
	if g.Labels != 3 || !(g.LabelPerplexity > 1 && g.LabelPerplexity <= 3) || g.Spearman == nil || !(math.Abs(*g.Spearman) <= 1) {
		t.Errorf("%d labels, perplexity %v, Spearman %v", g.Labels, g.LabelPerplexity, g.Spearman)
	}
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), `"flow_estimate":{"per_word":`) {
		t.Errorf("%v: %s", err, data)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"flow estimate, no guarantee", "KL over trees, at most", "words and sentence ends", "Spearman"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("nothing is printed of %q", want)
		}
	}
	if r.Splits[0].Listed != nil {
		t.Error("a grammar that is learned is listed")
	}
	c.Prior.On = true // untrained, grammar and network are those of the same seed
	if with := evaluated(c); *with.Splits[0].GFlowNet.Spearman != *g.Spearman || with.Splits[0].GFlowNet.Bound != g.Bound {
		t.Errorf("bound %+v with a prior on shapes, %+v without", with.Splits[0].GFlowNet.Bound, g.Bound)
	}
}
