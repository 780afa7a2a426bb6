package synthetic

import (
	"math/rand/v2"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/treebank"
)

// derivation is a sentence that is being drawn from a grammar.
type derivation struct {
	*grammar.Grammar
	treebank.Sentence
	r              *rand.Rand
	least, longest int // words that it will have at least, and may have at most
}

// sample draws sentences with their trees. Those that would be too long are thrown away, so that the rest keep their
// proportions.
func sample(g *grammar.Grammar, longest, n int, r *rand.Rand) (out []treebank.Sentence) {
	for len(out) < n {
		d := derivation{Grammar: g, r: r, least: 2, longest: longest}
		if d.expand(pick(g.Root, r), 0) {
			out = append(out, d.Sentence)
		}
	}
	return out
}

// expand draws what is below nonterminal x with a parent, unless the sentence gets too long.
func (d *derivation) expand(x, parent int) bool {
	n, s := len(d.Nonterminals), len(d.Nonterminals)+len(d.Preterminals)
	first := len(d.Sentence.Words)
	rule := pick(d.RuleRow(x, parent), d.r)
	children := []int{rule / s, rule % s}
	for _, c := range children {
		if c < n {
			d.least++
		}
	}
	if d.least > d.longest {
		return false
	}
	for _, c := range children {
		if c >= n {
			d.Sentence.Words = append(d.Sentence.Words, int32(pick(d.EmitRow(c-n, x), d.r)))
		} else if !d.expand(c, x+1) {
			return false
		}
	}
	d.Gold = append(d.Gold, treebank.Span{first, len(d.Sentence.Words) - 1})
	return true
}

// pick draws an index in proportion to probabilities that sum to 1.
func pick(p []float64, r *rand.Rand) (last int) {
	u := r.Float64()
	for i, v := range p {
		if v == 0 {
			continue
		}
		last = i
		if u -= v; u < 0 {
			break
		}
	}
	return last
}
