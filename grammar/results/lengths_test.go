package results

import (
	"math"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/induce"
)

// longer evaluates a grammar of short sentences, which nobody has trained, on longer ones.
func longer(t *testing.T, c induce.Config, most int) (session, *Result) {
	t.Helper()
	c.Data, c.MaxLength, c.Bucket, c.Eval.MaxLength = "synthetic", 8, 4, most
	if err := config.Resolve(&c); err != nil {
		t.Fatal(err)
	}
	s, err := Task{}.Start(simd(), &c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	r, err := s.Evaluate()
	if err != nil {
		t.Fatal(err)
	}
	return s.(session), r.(*Result)
}

// What an evaluation says of sentences up to some length is what one of no others says.
func TestByLength(t *testing.T) {
	c := tinyConfig(induce.Marginal)
	s, all := longer(t, c, 12)
	_, short := longer(t, c, 10)
	for i, r := range all.Splits {
		want := short.Splits[i]
		if len(r.ByLength) != 2 || want.ByLength != nil {
			t.Fatalf("%s is told apart into %d lengths, the shorter one into %d", r.Name, len(r.ByLength), len(want.ByLength))
		}
		got := r.ByLength[0]
		if got.Most != 10 || got.Sentences != want.Sentences || !(math.Abs(got.NLL-want.NLL) <= 1e-6) || len(got.F1) != len(r.F1) {
			t.Errorf("%s, up to 10 words: %+v, want %+v", r.Name, got, want)
		}
		for _, f := range want.F1 {
			random := f.Trees == "sample" || f.Trees == "random merges" // others are drawn in other batches
			if one := got.of(f.Trees); one != f.Sentence && !random {
				t.Errorf("%s of at most 10 words: %s has F1 %v, want %v", r.Name, f.Trees, one, f.Sentence)
			}
		}
		last := r.ByLength[1]
		if last.Most != 12 || last.Sentences != r.Sentences || last.NLL != r.NLL || last.of("mbr") != r.F1[1].Sentence || r.F1[1].Trees != "mbr" {
			t.Errorf("%s, all: %+v, want %+v", r.Name, last, r)
		}
	}
	if n := len(s.Shown().Sentences); n >= all.Splits[0].Sentences || n == 0 {
		t.Errorf("a report shows %d sentences", n)
	}
	var text strings.Builder
	if err := all.Print(&text); err != nil || !strings.Contains(text.String(), "test, by length") || !strings.Contains(text.String(), "≤ 10 words") {
		t.Errorf("error %v, %s", err, text.String())
	}
	if s.Data()["treebank"] == "" || len(s.HeldOut()) != 2 {
		t.Errorf("data %v, %d splits", s.Data(), len(s.HeldOut()))
	}
}

// A GFlowNet is compared on the sentences that it can read.
func TestLongerThanRead(t *testing.T) {
	c := tinyGFN(3, "cfg")
	c.Sleep.Leaves, c.Sleep.Steps = 4, 3
	s, r := longer(t, c, 12)
	if n := s.Network.Longest(); n != 8 {
		t.Fatalf("it reads %d words", n)
	}
	for _, split := range r.Splits {
		g := split.GFlowNet
		if g == nil || g.Sentences >= split.Sentences || !math.IsNaN(split.ByLength[1].of("gfn")) || !math.IsNaN(split.ByLength[0].of("gfn")) {
			t.Errorf("%s: %+v", split.Name, split)
		}
	}
	if !math.IsNaN(r.bound()) || !math.IsNaN(r.sampled().Sentence) {
		t.Errorf("tables have a bound %v and F1 %v of some sentences", r.bound(), r.sampled().Sentence)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "the others are longer than those that it reads") {
		t.Errorf("error %v, %s", err, text.String())
	}
}
