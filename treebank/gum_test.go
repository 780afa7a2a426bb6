package treebank

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// gum is the training part of the GUM treebank, which is not part of this repository.
const gum = "../../shared/data/gum/train.trees.gz"

// leaf is a word of a tree with its tag.
type leaf struct{ tag, word string }

func leaves(t *Tree) (out []leaf) {
	if t.Word != "" {
		return []leaf{{t.Label, t.Word}}
	}
	for _, c := range t.Children {
		out = append(out, leaves(c)...)
	}
	return out
}

// readGUM returns the leaves of the first sentences, or skips the test.
func readGUM(t *testing.T, n int) (out [][]leaf, trees []*Tree) {
	t.Helper()
	f, err := os.Open(gum)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not there", gum)
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := NewReader(f, gum)
	if err != nil {
		t.Fatal(err)
	}
	for len(out) < n {
		tree, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		out, trees = append(out, leaves(tree)), append(trees, tree)
	}
	return out, trees
}

// written is a sentence as people write it, and the tokens that it has then: words with hyphens are one.
func written(sentence []leaf) (text string, tokens []string) {
	glue, even := true, false
	for _, l := range sentence {
		w := map[string]string{"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "``": `"`, "''": `"`}[l.word]
		if w == "" {
			w = l.word
		}
		quote := w == `"`
		left := slices.Contains(strings.Split(`. , ; : ? ! ) ] % ” ’ …`, " "), w) || l.tag == "POS" || l.tag == "HYPH" ||
			slices.Contains(contractions, strings.ToLower(strings.ReplaceAll(w, "’", "'"))) || quote && even
		right := slices.Contains(strings.Split("( [ $ “ ‘ # £ €", " "), w) || l.tag == "HYPH" || quote && !even
		if quote {
			even = !even
		}
		hyphen := l.tag == "HYPH" || len(tokens) > 0 && strings.HasSuffix(text, "-") && glue
		if !glue && !left {
			text += " "
		}
		if text += w; hyphen && len(tokens) > 0 {
			tokens[len(tokens)-1] += w
		} else {
			tokens = append(tokens, w)
		}
		glue = right
	}
	return text, tokens
}

// Two thousand sentences of many genres, written as people do: each line is one, and nearly all of them have the tokens
// that annotators gave them. Their trees and CoNLL give the counts that a recount of leaves gives.
func TestGUM(t *testing.T) {
	const n = 2000
	sentences, trees := readGUM(t, n)
	var raw, conll, brackets strings.Builder
	same, total, kept, short, words := 0, 0, 0, 0, 0
	var different []string
	for i, s := range sentences {
		text, tokens := written(s)
		raw.WriteString(text + "\n")
		brackets.WriteString(trees[i].String() + "\n")
		got := english(text)
		for k := range tokens {
			tokens[k] = strings.ReplaceAll(tokens[k], "’", "'")
		}
		if slices.Equal(got, tokens) {
			same++
		} else {
			different = append(different, fmt.Sprintf("%q\n%q", tokens, got))
		}
		total += len(s)
		n := 0
		for k, l := range s {
			if slices.Contains(kimTags, l.tag) {
				n++
			}
			fmt.Fprintf(&conll, "%d\t%s\t_\t%s\n", k+1, l.word, l.tag)
		}
		conll.WriteString("\n")
		if n < 2 {
			short++
		} else {
			kept, words = kept+1, words+n
		}
	}
	if same < n*95/100 {
		t.Errorf("%d of %d sentences have the tokens of the treebank; some others:\n%s", same, n, strings.Join(different[:min(10, len(different))], "\n"))
	}
	t.Logf("%d of %d sentences have the tokens of the treebank", same, n)
	var z strings.Builder
	gz := gzip.NewWriter(&z)
	if _, err := gz.Write([]byte(raw.String())); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{"raw.txt.gz": z.String(), "gum.conllu": conll.String(), "gum.trees": brackets.String()})
	o := CorpusOptions()
	read := func(name string) (*Dataset, Split) {
		d, err := Build(Inputs{All: []string{dir + "/" + name}}, o)
		if err != nil {
			t.Fatal(err)
		}
		return d, d.Splits[0]
	}
	_, s := read("gum.trees")
	if s.Leaves != total || s.Dropped.Short != short || len(s.Sentences) != kept {
		t.Errorf("trees: %d leaves, %+v, %d sentences; recounted %d, %d, %d", s.Leaves, s.Dropped, len(s.Sentences), total, short, kept)
	}
	if _, s = read("gum.conllu"); s.Leaves != total || len(s.Sentences)+s.Dropped.Short != n {
		t.Errorf("CoNLL: %d tokens of %d", s.Leaves, total)
	}
	d, s := read("raw.txt.gz")
	if len(s.Sentences)+s.Dropped.Short != n || d.Notes[0] != "raw.txt.gz: text, cut into tokens as English, one sentence a line" {
		t.Errorf("%d sentences, %q", len(s.Sentences)+s.Dropped.Short, d.Notes)
	}
	once, known := recount(s, d), d.Vocabulary.Size()-1
	if st := d.Stats(&s); once != 0 || known < 1000 || st.Unknown == 0 {
		t.Errorf("%d words of the vocabulary occur once or never in training sentences of at most %d words; there are %d; %d unknown",
			once, d.Options.LearnLength, known, st.Unknown)
	}
	t.Logf("max_length %d, vocabulary %d", d.Options.LearnLength, known+1)
}

// recount counts words of the vocabulary that sentences learned from have less than twice.
func recount(s Split, d *Dataset) (rare int) {
	counts := make([]int, d.Vocabulary.Size())
	for _, x := range s.Sentences {
		for _, w := range x.Words {
			if len(x.Words) <= d.Options.LearnLength {
				counts[w]++
			}
		}
	}
	for _, n := range counts {
		if n < 2 {
			rare++
		}
	}
	return rare
}
