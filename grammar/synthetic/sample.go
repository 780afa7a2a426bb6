package synthetic

import (
	"math/rand/v2"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/treebank"
)

// sample draws sentences with their trees. Those that would be too long are thrown away, so that the rest keep their
// proportions.
func sample(g *grammar.Grammar, longest, n int, r *rand.Rand) (out []treebank.Sentence) {
	for len(out) < n {
		d := g.Draw(r, longest)
		if d == nil {
			continue
		}
		s := treebank.Sentence{Words: d.Words}
		for _, c := range d.Tree.Spans() {
			s.Gold = append(s.Gold, treebank.Span{c.First, c.Last})
		}
		out = append(out, s)
	}
	return out
}
