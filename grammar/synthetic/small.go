package synthetic

import (
	"math"
	"strings"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// SmallLongest is the number of words of the longest sentences of the small grammar.
const SmallLongest = 6

const smallTrain, smallValid, smallTest = 4000, 20, 100

// Small draws a grammar with so few symbols that all trees of its shorter sentences can be listed, always the same one.
// Most rules are rare, as in a grammar that has been learned: a tree chosen at random is far less probable than the
// best ones. This one was taken of two dozen since its sentences have two to six words about equally often, and most of
// the longer ones several trees of similar probability.
func Small() *grammar.Grammar {
	const ruleScale, wordScale, branching = 4.5, 3, 0.5
	g := grammar.New(grammar.CFG, strings.Fields("X Y Z"), strings.Fields("T-1 T-2 T-3 T-4"), strings.Fields("a b c d e f g h"))
	r := rng.New(13, "grammar/small")
	draw := func(p []float64, logit func(i int) float64) {
		for i := range p {
			p[i] = math.Exp(logit(i))
		}
		normalize(p)
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

// SmallTreebank draws sentences of two to six words from the small grammar, always the same ones.
func SmallTreebank() (*treebank.Dataset, error) {
	d, err := draw(Small(), SmallLongest, [3]int{smallTrain, smallValid, smallTest}, 0, "grammar/small/")
	if err != nil {
		return nil, err
	}
	d.Source = "drawn from the small grammar"
	return d, nil
}
