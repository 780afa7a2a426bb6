package synthetic

import (
	"math/rand/v2"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/treebank"
)

// Dreams draws sentences from a grammar, up to n of them, with no more than longest words: fewer where it seldom makes short ones.
func Dreams(g *grammar.Grammar, longest, n int, r *rand.Rand) (out []treebank.Sentence) {
	for range 100 * n {
		d := derivation{Grammar: g, r: r, least: 2, longest: longest}
		if len(out) < n && d.expand(pick(g.Root, r), 0) {
			out = append(out, d.Sentence)
		}
	}
	return out
}
