package treebank

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts files into a new folder and returns it.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// texts returns the sentences of a data set by split.
func texts(d *Dataset) string {
	var parts []string
	for _, split := range d.Splits {
		part := split.Name + ":"
		for _, s := range split.Sentences {
			part += " [" + d.Text(s) + "]"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestBuildSplits(t *testing.T) {
	dir := write(t, map[string]string{
		"train.trees": "(S (NN The) (NN dog) (. .))\n(S (NN The) (NN dog) (NN and) (NN cat))\n(S (NN Yes))",
		"test.trees":  "(S (NN the) (NN fox))",
	})
	d, err := Build(Inputs{Train: []string{dir + "/train.trees"}, Test: []string{dir + "/test.trees"}}, Options{MaxLength: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := texts(d), "train: [the dog] test: [the <unk>]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := d.Splits[0]; got.Dropped != (Dropped{Short: 1, Long: 1}) || got.Leaves != 8 || !got.Gold {
		t.Errorf("%+v", got)
	}
	// Words of sentences that are left out still count for the vocabulary.
	if got := fmt.Sprint(d.Vocabulary.Words()); got != "[<unk> dog the and cat yes]" {
		t.Errorf("vocabulary %s", got)
	}
	if got := fmt.Sprint(d.Compact().Vocabulary.Words(), texts(d.Compact()) == texts(d)); got != "[<unk> dog the] true" {
		t.Errorf("compact: %s", got)
	}
	if got := texts(d.Between(0, 2)); got != texts(d) {
		t.Errorf("shortened to 2: %s", got)
	}
	if got := d.Between(0, 1); texts(got) != "train: test:" || got.Splits[0].Dropped != (Dropped{Short: 1, Long: 2}) {
		t.Errorf("shortened to 1: %s, %+v", texts(got), got.Splits[0].Dropped)
	}
	if _, err := d.Split(Valid); err == nil {
		t.Error("there is a split that nobody gave")
	}
}

func TestBuildDivides(t *testing.T) {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "a w%c\n\n", 'a'+i)
	}
	path := write(t, map[string]string{"all.txt": b.String()}) + "/all.txt"
	in := Inputs{All: []string{path}, ValidFraction: 0.1, TestFraction: 0.2}
	plain, err := Build(in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sizes := func(d *Dataset) (sizes []int) {
		for _, s := range d.Splits {
			sizes = append(sizes, len(s.Sentences))
		}
		return sizes
	}
	if got := fmt.Sprint(sizes(plain)); got != "[14 2 4]" {
		t.Errorf("splits of %s sentences", got)
	}
	if plain.Splits[0].Gold {
		t.Error("sentences without trees have gold spans")
	}
	if first := plain.Text(plain.Splits[0].Sentences[13]); first != "a wn" {
		t.Errorf("sentence 13 is %q: the order changed", first)
	}
	in.Shuffle = true
	once, err := Build(in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	twice, _ := Build(in, Options{})
	in.Seed = 1
	other, _ := Build(in, Options{})
	if texts(once) != texts(twice) || texts(once) == texts(other) || texts(once) == texts(plain) {
		t.Error("shuffling does not depend on the seed alone")
	}
	if got := fmt.Sprint(sizes(once)); got != "[14 2 4]" {
		t.Errorf("shuffled splits of %s sentences", got)
	}
}

func TestBuildReadsFolders(t *testing.T) {
	dir := write(t, map[string]string{
		"02/wsj_0202.mrg":    "( (S (NN c) (NN c)) )",
		"02/wsj_0201.MRG":    "( (S (NN b) (NN b)) )",
		"01/wsj_0101.mrg.gz": compressed("( (S (NN a) (NN a)) )"),
		"01/README":          "not a tree",
		"empty/README":       "not a tree",
	})
	d, err := Build(Inputs{Train: []string{dir}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := texts(d), "train: [a a] [b b] [c c]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := Build(Inputs{Train: []string{dir + "/empty"}}, Options{}); err == nil || !strings.Contains(err.Error(), "no file that ends in") {
		t.Errorf("a folder without trees: %v", err)
	}
}

func TestBuildVocabularyOfAnother(t *testing.T) {
	path := write(t, map[string]string{"x.txt": "a b\nb c"}) + "/x.txt"
	v, err := NewVocabulary([]string{"b", Unknown})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Build(Inputs{Test: []string{path}}, Options{Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := texts(d), "test: [<unk> b] [b <unk>]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	closed, _ := NewVocabulary([]string{"a", "b"})
	if _, err := Build(Inputs{Test: []string{path}}, Options{Vocabulary: closed}); err == nil || !strings.Contains(err.Error(), `x.txt:2: the word "c" is not in the vocabulary`) {
		t.Errorf("a word that has no number: %v", err)
	}
}

func TestBuildErrors(t *testing.T) {
	dir := write(t, map[string]string{
		"ok.trees": "(S (A a) (B b))\n\n(S (NN a))\n(S (NN a) (NN b) (NN c))\n", "empty.trees": "\n", "bad.trees": "(S (NN a) (NN b))\n(S (NN a) b)",
		"plain.txt": "a b\n\na b c", "latin.txt": "a b\ncaf\xe9 c", "all.trees": "(S (NN a))",
	})
	at := func(names ...string) (paths []string) {
		for _, n := range names {
			paths = append(paths, filepath.Join(dir, n))
		}
		return paths
	}
	strict := Options{Strict: true, MaxLength: 2, KeepTags: []string{AllTags}}
	for name, c := range map[string]struct {
		in   Inputs
		o    Options
		want string
	}{
		"nothing":       {Inputs{}, Options{}, "no input"},
		"both":          {Inputs{Train: at("ok.trees"), All: at("ok.trees")}, Options{}, "exclude each other"},
		"fractions":     {Inputs{All: at("ok.trees"), ValidFraction: 0.5, TestFraction: 0.5}, Options{}, "leave no training data"},
		"negative":      {Inputs{All: at("ok.trees"), ValidFraction: -0.5}, Options{}, "negative"},
		"format":        {Inputs{All: at("ok.trees"), Format: "penn"}, Options{}, `unknown format "penn"`},
		"missing":       {Inputs{Train: at("nowhere")}, Options{}, "nowhere"},
		"empty":         {Inputs{Train: at("empty.trees")}, Options{}, "empty.trees holds no sentence"},
		"malformed":     {Inputs{Train: at("bad.trees")}, Options{}, "bad.trees:2: "},
		"encoding":      {Inputs{Train: at("latin.txt")}, Options{}, "latin.txt:2: "},
		"not trees":     {Inputs{Train: at("plain.txt"), Format: FormatTrees}, Options{}, "plain.txt:1: "},
		"mixed":         {Inputs{Train: at("plain.txt", "ok.trees")}, Options{}, "ok.trees:4: trees and plain sentences in one split"},
		"all dropped":   {Inputs{Train: at("all.trees")}, Options{}, "none of its 1 sentences has a length that is wanted"},
		"no train":      {Inputs{Test: at("ok.trees")}, Options{}, "no training sentences"},
		"strict, short": {Inputs{Train: at("ok.trees")}, strict, "ok.trees:3: the sentence has 1 words to keep, the minimum is 2"},
		"strict, long":  {Inputs{Train: at("plain.txt")}, strict, "plain.txt:3: the sentence has 3 words to keep, the maximum is 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(c.in, c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
