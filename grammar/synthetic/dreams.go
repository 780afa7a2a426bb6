package synthetic

import (
	"math/rand/v2"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/treebank"
)

// Dreams draws sentences from a grammar, up to n of them, with no more than longest words: fewer where it seldom makes short ones.
func Dreams(g *grammar.Grammar, longest, n int, r *rand.Rand) (out []treebank.Sentence) {
	for tries := 0; tries < 100*n && len(out) < n; tries++ {
		if d := g.Draw(r, longest); d != nil {
			out = append(out, sentenceOf(d))
		}
	}
	return out
}

// sentenceOf is a sentence that was drawn, with its tree as the gold one.
func sentenceOf(d *grammar.Drawn) treebank.Sentence {
	s := treebank.Sentence{Words: d.Words}
	for _, c := range d.Tree.Spans() {
		s.Gold = append(s.Gold, treebank.Span{c.First, c.Last})
	}
	return s
}
