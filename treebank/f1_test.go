package treebank

import (
	"math"
	"strings"
	"testing"
)

func sentenceOf(n int, gold ...Span) Sentence {
	return Sentence{Words: make([]int32, n), Gold: append(gold, Span{0, n - 1})}
}

func TestF1(t *testing.T) {
	for name, c := range map[string]struct {
		s         Sentence
		predicted []Span
		sentence  float64
		corpus    float64
	}{
		"two words":          {sentenceOf(2), []Span{{0, 1}}, 100, 100},
		"two words, twice":   {sentenceOf(2, Span{0, 1}), []Span{{0, 1}}, 0, 0},
		"no inner gold":      {sentenceOf(3), []Span{{0, 1}, {0, 2}}, 0, 0},
		"right":              {sentenceOf(3, Span{1, 2}), []Span{{1, 2}, {0, 2}}, 100, 100},
		"wrong":              {sentenceOf(3, Span{0, 1}), []Span{{1, 2}, {0, 2}}, 0, 0},
		"half":               {sentenceOf(4, Span{2, 3}), []Span{{2, 3}, {1, 3}, {0, 3}}, 100 * 2. / 3, 100 * 2. / 3},
		"duplicates":         {sentenceOf(4, Span{2, 3}, Span{2, 3}), []Span{{2, 3}, {2, 3}, {1, 3}, {0, 3}}, 100 * 2. / 3, 100 * 2. / 3},
		"words do not count": {sentenceOf(3, Span{1, 2}), []Span{{0, 0}, {1, 1}, {1, 2}, {2, 2}, {0, 2}}, 100, 100},
		"whole twice":        {sentenceOf(3, Span{1, 2}, Span{0, 2}), []Span{{1, 2}, {0, 2}}, 100 * 2. / 3, 100 * 2. / 3},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := F1([]Sentence{c.s}, [][]Span{c.predicted}, Standard)
			if err != nil {
				t.Fatal(err)
			}
			// The published formula adds 1e-8 to denominators; with numerators up to 1 in percent that moves F1 by some
			// 1e-6.
			if !(math.Abs(got.Sentence-c.sentence) <= 5e-6) || !(math.Abs(got.Corpus-c.corpus) <= 1e-9) {
				t.Errorf("F1 %v, want %v and %v", got, c.sentence, c.corpus)
			}
		})
	}
}

func TestF1OfSeveral(t *testing.T) {
	sentences := []Sentence{sentenceOf(3, Span{1, 2}), sentenceOf(4, Span{0, 1}), sentenceOf(2)}
	var trees [][]Span
	for _, s := range sentences {
		trees = append(trees, RightBranching(len(s.Words)))
	}
	got, err := F1(sentences, trees, Standard)
	if err != nil {
		t.Fatal(err)
	}
	// One of three predicted spans is right, and one of two gold spans is found.
	if !(math.Abs(got.Sentence-100*2./3) <= 5e-6) || !(math.Abs(got.Corpus-40) <= 1e-9) {
		t.Errorf("F1 %v, want 66.67 and 40", got)
	}
}

func TestF1Errors(t *testing.T) {
	two := []Sentence{sentenceOf(2)}
	for want, c := range map[string]struct {
		sentences []Sentence
		predicted [][]Span
	}{
		"1 sentences":    {two, nil},
		"no sentences":   {nil, nil},
		"[0 2] is not":   {two, [][]Span{{{0, 2}}}},
		"[1 0] is not":   {two, [][]Span{{{1, 0}}}},
		"no gold spans":  {[]Sentence{{Words: make([]int32, 3)}}, [][]Span{nil}},
		"[-1 1] is not ": {two, [][]Span{{{-1, 1}}}},
	} {
		if _, err := F1(c.sentences, c.predicted, Standard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestReleasedF1 checks the drawing of the span that is left out: of the tree over (1,2) and (0,2) it is either, and if
// it is (1,2), the only span that is right, F1 is 0.
func TestReleasedF1(t *testing.T) {
	const n = 10_000
	sentences, right, left := make([]Sentence, n), make([][]Span, n), make([][]Span, n)
	for i := range sentences {
		sentences[i] = sentenceOf(3, Span{1, 2})
		right[i], left[i] = RightBranching(3), LeftBranching(3)
	}
	half := func(f1 float64) bool { return math.Abs(f1-50) < 4.5*50/math.Sqrt(n) } // false alarm: 7e-6
	released, err := F1(sentences, right, Released)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := F1(sentences, right, Released)
	standard, _ := F1(sentences, right, Standard)
	if !half(released.Sentence) || released != again {
		t.Errorf("F1 %v and %v, want 50 twice", released, again)
	}
	if half(standard.Sentence) {
		t.Errorf("the standard metric gives %v too", standard)
	}
	onlyWhole, _ := F1(sentences, left, Released) // no other span ends with the last word
	if want, _ := F1(sentences, left, Standard); onlyWhole != want {
		t.Errorf("left-branching trees: %v, want %v", onlyWhole, want)
	}
}
