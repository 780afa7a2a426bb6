package treebank

import (
	"cmp"
	"math"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/rng"
)

// Formats of input files.
const (
	FormatAuto      = "auto"      // told by the ending of a file's name, or by its first lines
	FormatTrees     = "trees"     // trees in brackets
	FormatSentences = "sentences" // one sentence a line, words between spaces
	FormatText      = "text"      // text, whose words and sentences are found as the options say
	FormatCoNLL     = "conll"     // CoNLL-U or CoNLL-X, without the dependencies
)

// Inputs are the texts of a data set: either a list of files for each split, or files to be divided. A folder stands
// for the files below it that end in .mrg, .trees, .ptb, .conllu, .conll, .conllx or .txt, compressed or not.
type Inputs struct {
	Train, Valid, Test []string

	// All is divided, if the lists above are empty: its last sentences are the test split, those before them the
	// validation split, so that texts stay together.
	All           []string
	ValidFraction float64
	TestFraction  float64
	Shuffle       bool   // divide at random instead
	Seed          uint64 // of Shuffle

	Format string // one of the formats above; "" means FormatAuto
}

// Build prepares a data set. Sentences keep their order.
func Build(in Inputs, o Options) (*Dataset, error) {
	o = o.filled()
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &reading{Options: o, format: cmp.Or(in.Format, FormatAuto)}
	parts, err := in.read(r)
	if err != nil {
		return nil, err
	}
	o = r.resolved()
	if o.LearnLength == FitLength {
		o.LearnLength = fitting(parts[Train], o.MinLength)
		for _, name := range []string{Valid, Test} {
			if len(parts[name]) > 0 {
				o.LearnLength = max(o.LearnLength, fitting(parts[name], o.MinLength))
			}
		}
	}
	vocabulary := o.Vocabulary
	if vocabulary == nil {
		if len(parts[Train]) == 0 {
			return nil, badinput.Errorf("no training sentences to make a vocabulary of")
		}
		if vocabulary, err = o.makeVocabulary(parts[Train]); err != nil {
			return nil, err
		}
	}
	d := &Dataset{Source: in.describe(), Options: o, Vocabulary: vocabulary, Notes: r.notes()}
	for _, name := range []string{Train, Valid, Test} {
		if len(parts[name]) == 0 {
			continue
		}
		split, err := makeSplit(name, parts[name], o, vocabulary)
		if err != nil {
			return nil, err
		}
		d.Splits = append(d.Splits, split)
	}
	return d, nil
}

func (in Inputs) check() error {
	named := len(in.Train) + len(in.Valid) + len(in.Test)
	switch {
	case named == 0 && len(in.All) == 0:
		return badinput.Errorf("no input: name a file for training, or files to divide")
	case named > 0 && len(in.All) > 0:
		return badinput.Errorf("files of splits and files to divide (%s) exclude each other", strings.Join(in.All, ", "))
	case !(in.ValidFraction >= 0 && in.TestFraction >= 0 && in.ValidFraction+in.TestFraction < 1):
		return badinput.Errorf("fractions %v and %v for validation and test leave no training data, or are negative",
			in.ValidFraction, in.TestFraction)
	}
	switch in.Format {
	case "", FormatAuto, FormatTrees, FormatSentences, FormatText, FormatCoNLL:
		return nil
	}
	return badinput.Errorf("unknown format %q; known: %s, %s, %s, %s, %s", in.Format, FormatAuto, FormatTrees, FormatSentences,
		FormatText, FormatCoNLL)
}

// read returns the prepared sentences of each split.
func (in Inputs) read(r *reading) (map[string][]raw, error) {
	if len(in.All) > 0 {
		all, err := r.all(in.All)
		if err != nil {
			return nil, err
		}
		return in.divide(all), nil
	}
	parts := make(map[string][]raw)
	for _, p := range in.lists() {
		part, err := r.all(p.paths)
		if err != nil {
			return nil, err
		}
		parts[p.split] = part
	}
	return parts, nil
}

// list is the inputs of a split.
type list struct {
	split string
	paths []string
}

func (in Inputs) lists() []list { return []list{{Train, in.Train}, {Valid, in.Valid}, {Test, in.Test}} }

func (in Inputs) divide(all []raw) map[string][]raw {
	if in.Shuffle {
		rng.New(in.Seed, "treebank/shuffle").Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	test := int(math.Round(in.TestFraction * float64(len(all))))
	valid := int(math.Round(in.ValidFraction * float64(len(all))))
	train := len(all) - valid - test
	return map[string][]raw{Train: all[:train], Valid: all[train : train+valid], Test: all[train+valid:]}
}

// describe names the inputs without their folders, which mean nothing elsewhere.
func (in Inputs) describe() string {
	var parts []string
	for _, p := range append(in.lists(), list{"all", in.All}) {
		if len(p.paths) == 0 {
			continue
		}
		var names []string
		for _, path := range p.paths {
			names = append(names, filepath.Base(path))
		}
		part := strings.Join(names, " ")
		if p.split != "all" {
			part = p.split + ": " + part
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// makeSplit selects sentences and numbers their words.
func makeSplit(name string, all []raw, o Options, v *Vocabulary) (Split, error) {
	kept, dropped, err := o.selectLengths(all)
	if err != nil {
		return Split{}, err
	}
	if len(kept) == 0 {
		return Split{}, badinput.Errorf("%s: none of its %d sentences has a length that is wanted (too short %d, too long %d)",
			name, len(all), dropped.Short, dropped.Long)
	}
	s := Split{Name: name, Sentences: make([]Sentence, len(kept)), Gold: kept[0].gold != nil, Dropped: dropped}
	for _, r := range all {
		s.Leaves += r.leaves
	}
	for i, r := range kept {
		if s.Gold != (r.gold != nil) {
			return Split{}, badinput.Errorf("%s: trees and plain sentences in one split (the first is at %s)", r.where,
				kept[0].where)
		}
		words := make([]int32, len(r.words))
		for j, w := range r.words {
			if words[j] = v.ID(w); words[j] < 0 {
				return Split{}, badinput.Errorf("%s: the word %q is not in the vocabulary, which has no %s", r.where, w, Unknown)
			}
		}
		s.Sentences[i] = Sentence{Words: words, Gold: r.gold}
	}
	return s, nil
}
