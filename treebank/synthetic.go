package treebank

import (
	"fmt"
	"math"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/rng"
)

// Grammar is a probabilistic grammar with rules ROOT → X, X → L R and t → w, where X is a nonterminal, L and R are
// nonterminals or preterminals, t is a preterminal and w a word. What a symbol becomes may depend on its parent.
//
// L and R count the nonterminals first, then the preterminals. P counts ROOT as 0 and nonterminal X as X+1. A grammar
// that is context-free has equal tables for all parents. Every table of a symbol and a parent sums to 1.
type Grammar struct {
	Nonterminals, Preterminals, Words []string
	ContextFree                       bool

	Root   []float64       // [X]: of ROOT → X
	Binary [][][][]float64 // [X][P][L][R]: of X → L R below the parent P
	Emit   [][][]float64   // [t][X][w]: of t → w below the nonterminal X
}

// The synthetic treebank.
const (
	ContextFree     = "cfg"  // variant whose grammar is context-free
	ParentDependent = "ncfg" // variant whose rules and words depend on the parent

	SyntheticMaxLength = 20 // words of a sentence; the shortest has 2

	syntheticTrain, syntheticHeldOut = 5000, 500
)

// Synthetic returns the grammar of a variant of the synthetic treebank. ParentDependent is a small English of our
// making; ContextFree is the context-free grammar closest to it, with the same symbols (see [Grammar.Project]).
func Synthetic(variant string) (*Grammar, error) {
	switch variant {
	case ContextFree:
		return parseGrammar(englishRules, englishWords).Project(), nil
	case ParentDependent:
		return parseGrammar(englishRules, englishWords), nil
	}
	return nil, badinput.Errorf("unknown synthetic treebank %q; known: %s, %s", variant, ContextFree, ParentDependent)
}

// SyntheticDataset returns the treebank of a variant and a seed: 5,000 sentences for training and 500 each for
// validation and test, drawn independently from the grammar given that a sentence has 2 to 20 words. The vocabulary
// is the grammar's words in the grammar's order, without <unk>.
//
// TrueLogProb of a split is the log-likelihood of its sentences under that truncated distribution: log p(x) of the
// grammar less log P(2 ≤ n ≤ 20), summed.
func SyntheticDataset(variant string, seed uint64) (*Dataset, error) {
	g, err := Synthetic(variant)
	if err != nil {
		return nil, err
	}
	v, err := NewVocabulary(g.Words)
	if err != nil {
		return nil, err
	}
	d := &Dataset{
		Source:     fmt.Sprintf("synthetic %s, seed %d", variant, seed),
		Options:    Options{KeepTags: []string{AllTags}, KeepCase: true, KeepNumbers: true, VocabSize: v.Size(), MinLength: 2, MaxLength: SyntheticMaxLength},
		Vocabulary: v,
	}
	for _, part := range []struct {
		name string
		size int
	}{{Train, syntheticTrain}, {Valid, syntheticHeldOut}, {Test, syntheticHeldOut}} {
		d.Splits = append(d.Splits, g.split(part.name, part.size, v, rng.New(seed, "treebank/"+variant+"/"+part.name), d.Options))
	}
	return d, nil
}

// logInBounds returns log P(n ≤ SyntheticMaxLength).
func (g *Grammar) logInBounds() float64 {
	return math.Log(sumOf(g.LengthProbs(SyntheticMaxLength)))
}
