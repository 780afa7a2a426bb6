// Package synthetic holds grammars that are built in, and sentences drawn from them: treebanks whose truth is known.
package synthetic

import (
	"fmt"
	"math"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// maxLength is the number of words of the longest English sentences; the shortest has 2.
const maxLength = 20

const trainSize, heldOutSize = 5000, 500

// English returns a small English of our making, whose rules and words depend on the parent (an NCFG), or the
// context-free grammar closest to it, with the same symbols.
func English(kind grammar.Kind) (*grammar.Grammar, error) {
	switch kind {
	case grammar.CFG:
		return project(parse(englishRules, englishWords)), nil
	case grammar.NCFG:
		return parse(englishRules, englishWords), nil
	}
	return nil, badinput.Errorf("unknown synthetic treebank %q; known: %s, %s", kind, grammar.CFG, grammar.NCFG)
}

// Treebank returns the English of a kind and a seed: 5,000 sentences for training and 500 each for validation and test,
// drawn independently from the grammar given that a sentence has 2 to 20 words. The vocabulary is the grammar's words
// in the grammar's order, without <unk>.
//
// TrueLogProb of a split is the log-likelihood of its sentences under that truncated distribution: log p(x) of the
// grammar less log P(2 ≤ n ≤ 20), summed.
func Treebank(kind grammar.Kind, seed uint64) (*treebank.Dataset, error) {
	g, err := English(kind)
	if err != nil {
		return nil, err
	}
	d, err := draw(g, maxLength, [3]int{trainSize, heldOutSize, heldOutSize}, seed, fmt.Sprintf("treebank/%s/", kind))
	if err != nil {
		return nil, err
	}
	d.Source = fmt.Sprintf("synthetic %s, seed %d", kind, seed)
	d.Options = treebank.Options{
		KeepTags: []string{treebank.AllTags}, KeepCase: true, KeepNumbers: true, VocabSize: d.Vocabulary.Size(), MinLength: 2,
		MaxLength: maxLength,
	}
	inBounds := math.Log(sumOf(lengthProbs(g, maxLength)))
	for i := range d.Splits {
		s := &d.Splits[i]
		var sum float64
		for _, logP := range LogProbs(g, s.Sentences) {
			sum += logP - inBounds
		}
		s.TrueLogProb = &sum
	}
	return d, nil
}

// draw draws the sentences of the usual splits, each from a random stream of its own.
func draw(g *grammar.Grammar, longest int, sizes [3]int, seed uint64, stream string) (*treebank.Dataset, error) {
	v, err := treebank.NewVocabulary(g.Words)
	if err != nil {
		return nil, err
	}
	d := &treebank.Dataset{Vocabulary: v}
	for i, name := range []string{treebank.Train, treebank.Valid, treebank.Test} {
		split := treebank.Split{Name: name, Gold: true, Sentences: sample(g, longest, sizes[i], rng.New(seed, stream+name))}
		for _, s := range split.Sentences {
			split.Leaves += len(s.Words)
		}
		d.Splits = append(d.Splits, split)
	}
	return d, nil
}
