package induce

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// small names a grammar that is small enough for all trees of a sentence to be listed, and sentences drawn from it.
const small = "small"

const smallLongest = 6 // words of its sentences

// newSmallGrammar makes the small grammar.
func newSmallGrammar() *grammar.Grammar {
	words := strings.Fields("a b c d e f g h")
	g := grammar.New(grammar.CFG, []string{"X", "Y", "Z"}, numberedNames("T-", 4), words)
	r := rng.New(0, "grammar/small")
	fill := func(p []float64, sharp float64, bias func(i int) float64) {
		sum := 0.0
		for i := range p {
			p[i] = math.Exp(sharp*r.NormFloat64() + bias(i))
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
	}
	none := func(int) float64 { return 0 }
	fill(g.Root, 1, none)
	s := 3 + len(g.Preterminals)
	for x := range 3 {
		fill(g.RuleRow(x, 0), 2, func(i int) float64 {
			n := 0.0
			for _, c := range []int{i / s, i % s} {
				if c < 3 {
					n++
				}
			}
			return -0.2 * n
		})
	}
	for t := range g.Preterminals {
		fill(g.EmitRow(t, 0), 2, none)
	}
	return g
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

// smallDataset draws sentences of two to six words.
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
	}{{treebank.Train, 4000}, {treebank.Valid, 20}, {treebank.Test, 60}} {
		r := rng.New(0, "grammar/small/"+part.name)
		split := treebank.Split{Name: part.name, Gold: true}
		for len(split.Sentences) < part.size {
			if s, ok := drawSentence(g, r); ok {
				split.Sentences = append(split.Sentences, s)
			}
		}
		d.Splits = append(d.Splits, split)
	}
	return d, nil
}

// drawSentence draws a sentence of a context-free grammar, unless it gets too long.
func drawSentence(g *grammar.Grammar, r *rand.Rand) (s treebank.Sentence, ok bool) {
	n, size := len(g.Nonterminals), 2
	all := n + len(g.Preterminals)
	var expand func(x int) bool
	expand = func(x int) bool {
		first := len(s.Words)
		rule := pick(g.RuleRow(x, 0), r)
		for _, c := range []int{rule / all, rule % all} {
			if c < n {
				if size++; size > smallLongest {
					return false
				}
			}
		}
		for _, c := range []int{rule / all, rule % all} {
			if c >= n {
				s.Words = append(s.Words, int32(pick(g.EmitRow(c-n, 0), r)))
			} else if !expand(c) {
				return false
			}
		}
		s.Gold = append(s.Gold, treebank.Span{first, len(s.Words) - 1})
		return true
	}
	ok = expand(pick(g.Root, r))
	return s, ok
}
