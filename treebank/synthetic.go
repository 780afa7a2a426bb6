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
	g, err := parseGrammar(englishRules, englishWords)
	if err != nil {
		return nil, fmt.Errorf("the built-in grammar: %w", err)
	}
	switch variant {
	case ContextFree:
		return g.Project(), nil
	case ParentDependent:
		return g, nil
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
	var sum float64
	for _, p := range g.LengthProbs(SyntheticMaxLength) {
		sum += p
	}
	return math.Log(sum)
}

// Check returns an error unless all tables have the right shape and sum to 1.
func (g *Grammar) Check() error {
	n, t := len(g.Nonterminals), len(g.Preterminals)
	if len(g.Binary) != n || len(g.Emit) != t {
		return fmt.Errorf("grammar: rules of %d nonterminals and %d preterminals, want %d and %d", len(g.Binary), len(g.Emit), n, t)
	}
	if err := checkDistribution(g.Root, n, "ROOT"); err != nil {
		return err
	}
	for x, byParent := range g.Binary {
		if len(byParent) != n+1 {
			return fmt.Errorf("grammar: %s has rules for %d parents, want %d", g.Nonterminals[x], len(byParent), n+1)
		}
		for p, table := range byParent {
			var flat []float64
			for _, row := range table {
				flat = append(flat, row...)
			}
			if err := checkDistribution(flat, (n+t)*(n+t), fmt.Sprintf("%s below parent %d", g.Nonterminals[x], p)); err != nil {
				return err
			}
		}
	}
	for i, byParent := range g.Emit {
		if len(byParent) != n {
			return fmt.Errorf("grammar: %s has words for %d parents, want %d", g.Preterminals[i], len(byParent), n)
		}
		for x, words := range byParent {
			if err := checkDistribution(words, len(g.Words), fmt.Sprintf("%s below %s", g.Preterminals[i], g.Nonterminals[x])); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDistribution(p []float64, size int, name string) error {
	if len(p) != size {
		return fmt.Errorf("grammar: %s has %d probabilities, want %d", name, len(p), size)
	}
	var sum float64
	for _, v := range p {
		if !(v >= 0) {
			return fmt.Errorf("grammar: %s has the probability %v", name, v)
		}
		sum += v
	}
	if math.Abs(sum-1) > 1e-12 {
		return fmt.Errorf("grammar: the probabilities of %s sum to %v", name, sum)
	}
	return nil
}
