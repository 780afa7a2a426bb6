package treebank

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func parseTree(t testing.TB, text string) *Tree {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestPrepareTree(t *testing.T) {
	const sentence = "(S (NP-SBJ (NP (NNP Pierre) (NNP Vinken)) (, ,) (ADJP (NP (CD 61) (NNS years)) (JJ old)) (, ,)) " +
		"(VP (MD will) (VP (VB join) (NP (-NONE- *)) (NP (NP (DT the) (NN board))))) (. .))"
	for name, c := range map[string]struct {
		o     Options
		text  string
		words string
		gold  []Span
	}{
		"usual": {Options{}, sentence, "pierre vinken N years old will join the board",
			[]Span{{0, 1}, {2, 3}, {2, 4}, {0, 4}, {7, 8}, {7, 8}, {6, 8}, {5, 8}, {0, 8}}},
		"as it is": {Options{KeepTags: []string{AllTags}, KeepCase: true, KeepNumbers: true}, "(S (CD 61) (, ,) (NP (-NONE- *)) (NN Dogs))", "61 , Dogs",
			[]Span{{0, 2}}},
		"chosen tags":    {Options{KeepTags: []string{KimTags, ","}}, "(S (NN a) (, ,) (. .))", "a ,", []Span{{0, 1}}},
		"unary chain":    {Options{}, "(S (NP (NML (NN a) (NN b))))", "a b", []Span{{0, 1}, {0, 1}, {0, 1}}},
		"outer brackets": {Options{}, "( (ROOT (S (NN a) (NN b))))", "a b", []Span{{0, 1}}},
		"one word":       {Options{}, "(S (NP (NN a)) (. .))", "a", []Span{}},
		"no word":        {Options{}, "(S (NP (-NONE- *)) (. .))", "", []Span{}},
		"odd space":      {Options{}, "(S (NN a\u00a0b) (NN c))", "a_b c", []Span{{0, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o.filled()
			words, gold := o.prepareTree(parseTree(t, c.text), o.tagFilter())
			if got := strings.Join(words, " "); got != c.words {
				t.Errorf("words %q, want %q", got, c.words)
			}
			if diff := cmp.Diff(c.gold, gold); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGoldSpansAgainstDeletion compares with the recipe as it is usually told: delete leaves, then empty brackets
// until there are none, then read off the spans.
func TestGoldSpansAgainstDeletion(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	o := Options{}.filled()
	for range 500 {
		tree := randomTree(r, 4)
		words, gold := o.prepareTree(tree, o.tagFilter())
		deleted := deleteLeaves(tree, o.tagFilter())
		var want []Span
		n := 0
		if deleted != nil {
			n = spansOf(deleted, 0, &want)
		}
		if len(words) != n || !slices.Equal(gold, want) {
			t.Fatalf("%s: %d words, spans %v; want %d, %v", tree, len(words), gold, n, want)
		}
	}
}

func randomTree(r *rand.Rand, depth int) *Tree {
	if depth == 0 || r.IntN(4) == 0 {
		return &Tree{Label: []string{"NN", "VB", ",", "-NONE-"}[r.IntN(4)], Word: "w"}
	}
	t := &Tree{Label: "X"}
	for range 1 + r.IntN(3) {
		t.Children = append(t.Children, randomTree(r, depth-1))
	}
	return t
}

func deleteLeaves(t *Tree, keep func(string) bool) *Tree {
	if t.Word != "" {
		if keep(t.Label) {
			return t
		}
		return nil
	}
	kept := &Tree{Label: t.Label}
	for _, c := range t.Children {
		if c = deleteLeaves(c, keep); c != nil {
			kept.Children = append(kept.Children, c)
		}
	}
	if len(kept.Children) == 0 {
		return nil
	}
	return kept
}

// spansOf appends the spans of a tree whose first word is at start, and returns its number of words.
func spansOf(t *Tree, start int, spans *[]Span) int {
	if t.Word != "" {
		return 1
	}
	n := 0
	for _, c := range t.Children {
		n += spansOf(c, start+n, spans)
	}
	if n >= 2 {
		*spans = append(*spans, Span{start, start + n - 1})
	}
	return n
}

func TestReplaceNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"1,234.5": "N", "10-year": "N-year", "8:30": "N:N", `1\/2`: `N\/N`, "n.v.": "n.v.", "3.": "N", "a1b2": "aNbN", ".5": ".N", "1,,2": "N",
		"dog": "dog", "": "", "½": "½", "٣": "٣",
	} {
		if got := numbers.ReplaceAllString(in, "N"); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	published := regexp.MustCompile(`[0-9]+([,.]?[0-9]*)*`)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b strings.Builder
		for range r.IntN(8) {
			b.WriteByte("019,.-a"[r.IntN(7)])
		}
		if got, want := numbers.ReplaceAllString(b.String(), "N"), published.ReplaceAllString(b.String(), "N"); got != want {
			t.Fatalf("%q became %q, want %q", b.String(), got, want)
		}
	}
}

func TestKimTags(t *testing.T) {
	if len(kimTags) != 36 {
		t.Errorf("%d tags, want 36", len(kimTags))
	}
}

func TestOptionsCheck(t *testing.T) {
	for _, o := range []Options{
		{VocabSize: -1}, {MinLength: -1}, {MinLength: 5, MaxLength: 4}, {KeepTags: []string{}},
	} {
		if err := o.filled().check(); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	if err := (Options{}).filled().check(); err != nil {
		t.Error(err)
	}
}

func TestVocabularyOrder(t *testing.T) {
	var sentences []raw
	for word, count := range map[string]int{"b": 3, "a": 3, "z": 5, "rare": 1, Unknown: 9, "B": 3} {
		for range count {
			sentences = append(sentences, raw{words: []string{word}})
		}
	}
	v, err := Options{VocabSize: 4}.makeVocabulary(sentences)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(v.Words()); got != "[<unk> z B a b]" {
		t.Errorf("vocabulary %s", got)
	}
	for word, want := range map[string]int32{"z": 1, "rare": 0, "never": 0, Unknown: 0, "b": 4} {
		if id := v.ID(word); id != want {
			t.Errorf("%q has number %d, want %d", word, id, want)
		}
	}
	closed, err := NewVocabulary([]string{"a"})
	if err != nil || closed.ID("b") != -1 {
		t.Errorf("a word outside a vocabulary without <unk> has number %d, %v", closed.ID("b"), err)
	}
	for _, bad := range [][]string{{"a", "a"}, {""}, {"a b"}} {
		if _, err := NewVocabulary(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
