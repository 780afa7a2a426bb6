package synthetic

import (
	"math"
	"slices"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/treebank"
)

// rule is X → L R with its probability below each parent; ROOT is parent 0.
type rule struct {
	left, right int
	p           []float64
}

// rulesOf returns the rules of each nonterminal that are possible below some parent.
func rulesOf(g *grammar.Grammar) [][]rule {
	n, s := len(g.Nonterminals), len(g.Nonterminals)+len(g.Preterminals)
	all := make([][]rule, n)
	for x := range all {
		for i := range s * s {
			r, possible := rule{i / s, i % s, make([]float64, n+1)}, false
			for p := range r.p {
				r.p[p] = g.RuleRow(x, p)[i]
				possible = possible || r.p[p] > 0
			}
			if possible {
				all[x] = append(all[x], r)
			}
		}
	}
	return all
}

// LogProbs returns log p(x) of each sentence under a grammar, over sentences of all lengths, in nats; −∞ if the grammar
// cannot make it.
func LogProbs(g *grammar.Grammar, sentences []treebank.Sentence) []float64 {
	rules := rulesOf(g)
	logs := make([]float64, len(sentences))
	for i, s := range sentences {
		c := newChart(g, len(s.Words))
		for k, w := range s.Words {
			logs[i] += c.leaves(k, func(t, x int) float64 { return g.EmitRow(t, x)[w] })
		}
		c.fill(rules)
		logs[i] += math.Log(c.prefixes()[len(s.Words)])
	}
	return logs
}

// lengthProbs returns the exact probability that a sentence of a grammar has n words, at index n, up to most: every
// leaf is some word with probability 1.
func lengthProbs(g *grammar.Grammar, most int) []float64 {
	c := newChart(g, most)
	for k := range most {
		c.leaves(k, func(int, int) float64 { return 1 })
	}
	c.fill(rulesOf(g))
	return c.prefixes()
}

// chart is that of the inside algorithm: the probability of words i to j from a symbol, nonterminals first, by its
// parent.
type chart struct {
	*grammar.Grammar
	words int
	cells [][]float64 // [i*words+j][symbol*(N+1)+parent]
}

func newChart(g *grammar.Grammar, words int) *chart {
	size := (len(g.Nonterminals) + len(g.Preterminals)) * (len(g.Nonterminals) + 1)
	return &chart{g, words, newTable(words*words, size)}
}

// leaves fills in the probabilities of word k from preterminal t below nonterminal x, relative to the largest of them.
func (c *chart) leaves(k int, p func(t, x int) float64) (logScale float64) {
	n, cell := len(c.Nonterminals), c.cells[k*c.words+k]
	for t := range c.Preterminals {
		for x := range n {
			cell[(n+t)*(n+1)+x+1] = p(t, x)
		}
	}
	largest := slices.Max(cell)
	for i := range cell {
		cell[i] /= largest
	}
	return math.Log(largest)
}

func (c *chart) fill(rules [][]rule) {
	parents := len(c.Nonterminals) + 1
	for width := 2; width <= c.words; width++ {
		for i := range c.words - width + 1 {
			j := i + width - 1
			cell := c.cells[i*c.words+j]
			for x := range rules {
				for _, r := range rules[x] {
					left, right := r.left*parents+x+1, r.right*parents+x+1
					var both float64
					for k := i; k < j; k++ {
						both += c.cells[i*c.words+k][left] * c.cells[(k+1)*c.words+j][right]
					}
					if both == 0 {
						continue
					}
					for p := range r.p {
						cell[x*parents+p] += r.p[p] * both
					}
				}
			}
		}
	}
}

// prefixes returns the probabilities that a sentence is the first n words, at index n.
func (c *chart) prefixes() []float64 {
	total := make([]float64, c.words+1)
	for n := 2; n <= c.words; n++ {
		for x, p := range c.Root {
			total[n] += p * c.cells[n-1][x*(len(c.Nonterminals)+1)]
		}
	}
	return total
}

// project returns the context-free grammar with the same symbols that is closest to a grammar: of all of them it gives
// the trees of the grammar the highest expected log-probability. Its rules have the grammar's expected counts.
func project(g *grammar.Grammar) *grammar.Grammar {
	counts := expectedCounts(g)
	flat := grammar.New(grammar.CFG, g.Nonterminals, g.Preterminals, g.Words)
	copy(flat.Root, g.Root)
	for x := range g.Nonterminals {
		for p, count := range counts[x] {
			addScaled(flat.RuleRow(x, 0), g.RuleRow(x, p), count/sumOf(counts[x]))
		}
	}
	for t := range g.Preterminals {
		below := counts[len(g.Nonterminals)+t]
		for x, count := range below[1:] {
			addScaled(flat.EmitRow(t, 0), g.EmitRow(t, x), count/sumOf(below))
		}
	}
	return flat
}

// expectedCounts returns how often a tree has, on average, a symbol below a parent, [S][N+1].
func expectedCounts(g *grammar.Grammar) [][]float64 {
	const levels = 1000 // of a tree; deeper ones have no measurable probability
	n, rules := len(g.Nonterminals), rulesOf(g)
	counts, level := newTable(n+len(g.Preterminals), n+1), newTable(n, n+1)
	for x, p := range g.Root {
		level[x][0] = p
	}
	for range levels {
		next := newTable(n, n+1)
		for x := range rules {
			addScaled(counts[x], level[x], 1)
			for _, r := range rules[x] {
				var count float64
				for p := range r.p {
					count += level[x][p] * r.p[p]
				}
				for _, c := range []int{r.left, r.right} {
					if c < n {
						next[c][x+1] += count
					} else {
						counts[c][x+1] += count
					}
				}
			}
		}
		level = next
	}
	return counts
}

func newTable(rows, columns int) [][]float64 {
	t := make([][]float64, rows)
	flat := make([]float64, rows*columns)
	for i := range t {
		t[i] = flat[i*columns:][:columns:columns]
	}
	return t
}

func addScaled(dst, src []float64, scale float64) {
	for i, v := range src {
		dst[i] += scale * v
	}
}
