package induce

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// small names a grammar with so few symbols that all trees of its shorter sentences can be listed, and sentences drawn from it.
const small = "small"

// The numbers of its sentences, and of the words of the longest ones.
const (
	smallTrain, smallValid, smallTest = 4000, 20, 100
	smallLongest                      = 6
)

// newSmallGrammar draws the small grammar, always the same one. Most rules are rare, as in a grammar that has been learned: a tree
// chosen at random is far less probable than the best ones. This one was taken of two dozen since its sentences have two to six words
// about equally often, and most of the longer ones several trees of similar probability.
func newSmallGrammar() *grammar.Grammar {
	const ruleScale, wordScale, branching = 4.5, 3, 0.5
	g := grammar.New(grammar.CFG, []string{"X", "Y", "Z"}, numberedNames("T-", 4), strings.Fields("a b c d e f g h"))
	r := rng.New(13, "grammar/small")
	draw := func(p []float64, logit func(i int) float64) {
		total := 0.0
		for i := range p {
			p[i] = math.Exp(logit(i))
			total += p[i]
		}
		for i := range p {
			p[i] /= total
		}
	}
	draw(g.Root, func(int) float64 { return r.NormFloat64() })
	n, s := len(g.Nonterminals), len(g.Nonterminals)+len(g.Preterminals)
	for x := range g.Nonterminals {
		draw(g.RuleRow(x, 0), func(i int) float64 {
			logit := ruleScale * r.NormFloat64()
			for _, child := range []int{i / s, i % s} {
				if child < n {
					logit += branching
				}
			}
			return logit
		})
	}
	for t := range g.Preterminals {
		draw(g.EmitRow(t, 0), func(int) float64 { return wordScale * r.NormFloat64() })
	}
	return g
}

// smallDataset draws sentences of two to six words from the small grammar, always the same ones.
func smallDataset() (*treebank.Dataset, error) {
	g := newSmallGrammar()
	v, err := treebank.NewVocabulary(g.Words)
	if err != nil {
		return nil, err
	}
	d := &treebank.Dataset{Source: "drawn from the small grammar", Vocabulary: v}
	for _, part := range []struct {
		name string
		size int
	}{{treebank.Train, smallTrain}, {treebank.Valid, smallValid}, {treebank.Test, smallTest}} {
		r := rng.New(0, "grammar/small/"+part.name)
		split := treebank.Split{Name: part.name, Gold: true}
		for len(split.Sentences) < part.size {
			d := derivation{Grammar: g, r: r, least: 2}
			if d.expand(pick(g.Root, r)) {
				split.Sentences = append(split.Sentences, d.Sentence)
			}
		}
		d.Splits = append(d.Splits, split)
	}
	return d, nil
}

// derivation is a sentence that is being drawn from a context-free grammar.
type derivation struct {
	*grammar.Grammar
	treebank.Sentence
	r     *rand.Rand
	least int // words that it will have at least
}

// expand draws what a nonterminal becomes, unless the sentence gets too long.
func (d *derivation) expand(x int) bool {
	n, s := len(d.Nonterminals), len(d.Nonterminals)+len(d.Preterminals)
	first := len(d.Sentence.Words)
	rule := pick(d.RuleRow(x, 0), d.r)
	children := []int{rule / s, rule % s}
	for _, c := range children {
		if c < n {
			d.least++
		}
	}
	if d.least > smallLongest {
		return false
	}
	for _, c := range children {
		if c >= n {
			d.Sentence.Words = append(d.Sentence.Words, int32(pick(d.EmitRow(c-n, 0), d.r)))
		} else if !d.expand(c) {
			return false
		}
	}
	d.Gold = append(d.Gold, treebank.Span{first, len(d.Sentence.Words) - 1})
	return true
}

// pick draws an index in proportion to probabilities.
func pick(p []float64, r *rand.Rand) int {
	u := r.Float64()
	for i, v := range p {
		if u -= v; u < 0 {
			return i
		}
	}
	return len(p) - 1
}
