package treebank

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// One small corpus as text, as CoNLL-U and in brackets: what is read, dropped and unknown, counted by hand. In brackets
// the same words have tags that say what punctuation is.
func TestCorpusFigures(t *testing.T) {
	for _, ending := range []string{"txt", "conllu", "trees"} {
		o := CorpusOptions()
		o.MaxLength = 10
		d, err := Build(Inputs{All: []string{"testdata/raw." + ending}}, o)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Splits[0]
		if got.Leaves != 50 || got.Dropped != (Dropped{Short: 1, Long: 1}) || len(got.Sentences) != 4 {
			t.Errorf("%s: %d tokens, %+v, %d sentences", ending, got.Leaves, got.Dropped, len(got.Sentences))
		}
		if got := fmt.Sprint(d.Vocabulary.Words()); got != "[<unk> the cat dog sleeps]" {
			t.Errorf("%s: vocabulary %s", ending, got)
		}
		want := "train: [the dog <unk> <unk> <unk> the cat] [the cat <unk> <unk> <unk> the dog] [the cat sleeps] [the dog sleeps]"
		if got := texts(d); got != want {
			t.Errorf("%s: %s", ending, got)
		}
		if st := d.Stats(&d.Splits[0]); st.Words != 20 || st.Unknown != 6 || st.Types != 5 {
			t.Errorf("%s: %+v", ending, st)
		}
		p := Preparation{Tokens: TokensEnglish}
		if d.Preparation() != p {
			t.Errorf("%s: preparation %+v", ending, d.Preparation())
		}
		if got := p.Words("“The dog, Ann's, sleeps!” (No.)"); fmt.Sprint(got) != "[The dog Ann 's sleeps No]" {
			t.Errorf("%s: a new line has words %q", ending, got)
		}
	}
}

// A data set keeps how it was made, and what is in it is what Files says.
func TestCorpusSaved(t *testing.T) {
	d, err := Build(Inputs{All: []string{"testdata/raw.txt"}}, CorpusOptions())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := d.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(d, again) {
		t.Errorf("saved %+v, loaded %+v", d, again)
	}
	files, err := d.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if on, err := os.ReadFile(dir + "/" + name); err != nil || string(on) != string(data) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if want := "raw.txt: text, cut into tokens as English, one sentence a line"; len(d.Notes) != 1 || d.Notes[0] != want {
		t.Errorf("notes %q", d.Notes)
	}
}

func TestEnglish(t *testing.T) {
	for line, want := range map[string]string{
		"I can't, you won't; they'll (maybe) go...": "I ca n't , you wo n't ; they 'll ( maybe ) go ...",
		"John’s “dogs’ home” cannot wait—ever":      "John 's “ dogs ' home ” can not wait — ever",
		"The U.S. and Mr. Li, e.g., paid $3.50.":    "The U.S. and Mr. Li , e.g. , paid $ 3.50 .",
		"At 10:30,1,200 of 5% came--late":           "At 10:30,1,200 of 5 % came -- late",
		"See https://a.org/x?y=1. Or me@b.org!":     "See https://a.org/x?y=1 . Or me@b.org !",
		"a <unk> is n't 's own":                     "a <unk> is n't 's own",
		"well-known '90s":                           "well-known ' 90s",
		"It's me, J. Doe; so do I.":                 "It 's me , J. Doe ; so do I .",
		"ÄRZTE'S 日本。":                               "ÄRZTE 'S 日本 。",
	} {
		if got := strings.Join(english(line), " "); got != want {
			t.Errorf("%q: %s\nwant %s", line, got, want)
		}
	}
}

// What is cut is not cut again, and no letter or digit is lost.
func TestEnglishIsIdempotent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := strings.Split("a|I|Mr|U.S|don't|'s|.|,|!|\"|(|)|'|’|--|…|3|1,2|%|$| | | |é|日|-|<unk>|/|http://x.y", "|")
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if isWordRune(r) {
				return r
			}
			return -1
		}, s)
	}
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(8) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		once := english(b.String())
		if twice := english(strings.Join(once, " ")); !slices.Equal(once, twice) {
			t.Fatalf("%q: %q, again %q", b.String(), once, twice)
		}
		if letters(b.String()) != letters(strings.Join(once, "")) {
			t.Fatalf("%q: %q", b.String(), once)
		}
	}
}

func TestSplit(t *testing.T) {
	for paragraph, want := range map[string]string{
		"One. Two! Three? four. Five":                                       "One.|Two!|Three? four.|Five",
		"Mr. Li came. \"Did he?\" Yes (he did.) Ok.":                        "Mr. Li came.|\"Did he?\"|Yes (he did.)|Ok.",
		"The U.S. Army, i.e. Ann J. Doe. No. 3 is it. No. It is not…  Well": "The U.S. Army, i.e. Ann J. Doe.|No. 3 is it.|No.|It is not…|Well",
		"": "",
	} {
		if got := strings.Join(split(paragraph), "|"); got != want {
			t.Errorf("%q: %s\nwant %s", paragraph, got, want)
		}
	}
}

// The layout of a text, and whether it has spaces between tokens, are seen in the text; what looks like a tree is one
// only if the rest does, too.
func TestSniffing(t *testing.T) {
	wrapped := strings.Repeat("A dog came to\nthe house. It saw a\ncat there. It ran\naway.\n\n", 3)
	for _, c := range []struct{ name, text, note, first string }{
		{"a.txt", "The dog came.\nThe cat left.\n", "text, cut into tokens as English, one sentence a line", "the dog came"},
		{"a.txt", "The dog came . Yes , it did n't .\nA cat left .\n", "text with spaces between tokens, which is taken as it is, one sentence a line", "the dog came yes it did n't"},
		{"a.txt", "the dog came\nthe cat left\n", "text, cut into tokens as English, one sentence a line", "the dog came"},
		{"a.txt", "A dog came. It slept. It ran.\nA cat came. It ate.\n", "text, cut into tokens as English, several sentences a line", "a dog came"},
		{"a.txt", wrapped, "text, cut into tokens as English, with sentences that go on from line to line", "a dog came to the house"},
		{"a.txt", "(Laughter)\nWe go home (all of us) now.\n", "text, cut into tokens as English, one sentence a line", "we go home all of us now"},
		{"a.txt", "(Laughter) We go home now.\n", "text, cut into tokens as English, one sentence a line", "laughter we go home now"},
		{"a.txt", "(He said) yes, we go.\n", "text, cut into tokens as English, one sentence a line", "he said yes we go"},
		{"a.txt", "(S (NN dog) (VB runs))\n", "trees in brackets", "dog runs"},
		{"a", "( (S\n  (NP (NN dog))\n  (VP (VB runs))))\n", "trees in brackets", "dog runs"},
		{"a.txt", "# text = x\n1\tThe\tthe\tDET\t_\n2\tdog\tdog\tNOUN\t_\n", "CoNLL, of which words are used and dependencies are not", "the dog"},
		{"a.conll.gz", compressed("1\tThe\t_\tDT\n2\tdog\t_\tNN\n3\t.\t_\t.\n\n"), "CoNLL, of which words are used and dependencies are not", "the dog"},
	} {
		dir := write(t, map[string]string{c.name: c.text})
		o := CorpusOptions()
		o.Rare = 0
		d, err := Build(Inputs{All: []string{dir + "/" + c.name}}, o)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := d.Notes[0]; got != c.name+": "+c.note {
			t.Errorf("%q: %s\nwant %s", c.text, got, c.note)
		}
		if got := d.Text(d.Splits[0].Sentences[0]); got != c.first {
			t.Errorf("%q: the first sentence is %q, want %q", c.text, got, c.first)
		}
	}
}

func TestCoNLLErrors(t *testing.T) {
	for text, want := range map[string]string{
		"1\tThe\tthe\tDET\n2 dog dog NOUN\n": "a.conllu:2: \"2 dog dog NOUN\" is no line of CoNLL",
		"1\tThe\tthe\tDET\nx\ta\ta\tb\n":     "a.conllu:2: ",
		"the dog\n":                          "a.conllu:1: ",
		"# nothing\n":                        "a.conllu holds no sentence",
	} {
		dir := write(t, map[string]string{"a.conllu": text})
		_, err := Build(Inputs{All: []string{dir + "/a.conllu"}}, CorpusOptions())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Rare words are <unk> or of a class, which unknown words of other splits find, too.
func TestSuffixes(t *testing.T) {
	dir := write(t, map[string]string{
		"train.txt": "the walking the talking\nthe dogs the cats\nthe table the 7\n", "test.txt": "singing tables sky 12\n",
	})
	in, err := InputsAt(dir, 0.1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	o := CorpusOptions()
	o.Suffixes, o.KeepNumbers = true, true
	d, err := Build(in, o)
	if err != nil {
		t.Fatal(err)
	}
	want := "train: [the <unk-ing> the <unk-ing>] [the <unk-s> the <unk-s>] [the <unk> the <unk>] test: [<unk-ing> <unk-s> <unk> <unk>]"
	if got := texts(d); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if st := d.Stats(&d.Splits[1]); st.Unknown != 4 {
		t.Errorf("%d unknown words, want 4", st.Unknown)
	}
}

// Nine tenths of the sentences fit, between 20 and 40 words.
func TestFitting(t *testing.T) {
	of := func(lengths ...int) (all []raw) {
		for _, n := range lengths {
			all = append(all, raw{words: make([]string, n)})
		}
		return all
	}
	for _, c := range []struct {
		all  []raw
		want int
	}{
		{of(3, 5, 4), 5}, {of(5, 5, 5, 5, 5, 5, 5, 5, 5, 90), 20}, {of(5, 5, 5, 5, 5, 5, 5, 5, 30, 90), 30},
		{of(90, 91), 40}, {of(1), 20}, {nil, 20},
	} {
		if got := fitting(c.all, 2); got != c.want {
			t.Errorf("%d sentences: %d, want %d", len(c.all), got, c.want)
		}
	}
}

// What fits is said by the split with the longest sentences, so that none loses more than a tenth.
func TestFittingOfSplits(t *testing.T) {
	dir := t.TempDir()
	for name, words := range map[string]int{"train": 6, "valid": 25, "test": 31} {
		line := strings.Repeat("a ", words-1) + "b\n"
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(strings.Repeat(line, 10)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	in, err := InputsAt(dir, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{31, 25, 6} {
		d, err := Build(in, CorpusOptions())
		if err != nil {
			t.Fatal(err)
		}
		if d.Options.LearnLength != want {
			t.Errorf("%d words, want %d", d.Options.LearnLength, want)
		}
		if in.Test != nil {
			in.Test = nil
		} else {
			in.Valid = nil
		}
	}
}
