package treebank

import (
	"math"
	"slices"
)

// LengthProbs returns the exact probability that a sentence of the grammar has n words, at index n, up to max. They
// sum to less than 1 by the probability of longer sentences.
func (g *Grammar) LengthProbs(max int) []float64 {
	rules := g.rules()
	byLength := make([][][]float64, max+1) // [n][X][P]
	// below is the probability that the child c of nonterminal x has n words.
	below := func(c, x, n int) float64 {
		if c < len(rules) {
			return byLength[n][c][x+1]
		} else if n == 1 {
			return 1
		}
		return 0
	}
	for n := range byLength {
		byLength[n] = newTable(len(rules), len(rules)+1)
		for x := range rules {
			for _, r := range rules[x] {
				var both float64
				for k := 1; k < n; k++ {
					both += below(r.left, x, k) * below(r.right, x, n-k)
				}
				for p := range r.p {
					byLength[n][x][p] += r.p[p] * both
				}
			}
		}
	}
	total := make([]float64, max+1)
	for n := range total {
		for x, p := range g.Root {
			total[n] += p * byLength[n][x][0]
		}
	}
	return total
}

// LogProbs returns log p(x) of each sentence under the grammar, over sentences of all lengths, in nats; −∞ if the
// grammar cannot make it. It is the inside algorithm with a chart over spans, symbols and their parents.
func (g *Grammar) LogProbs(sentences []Sentence) []float64 {
	in := inside{g, g.rules(), nil, nil, 0}
	logs := make([]float64, len(sentences))
	for i, s := range sentences {
		logs[i] = in.logProb(s.Words)
	}
	return logs
}

// inside is the chart of a sentence.
type inside struct {
	*Grammar
	rules [][]rule
	chart [][]float64   // [i*n+j][X*(N+1)+P], of words i to j
	leaf  [][][]float64 // [i][t][X]: t → word i below X, relative to the largest of them
	n     int
}

func (in *inside) logProb(words []int32) float64 {
	in.n = len(words)
	if in.n < 2 {
		return math.Inf(-1)
	}
	logScale := in.leaves(words)
	in.chart = newTable(in.n*in.n, len(in.rules)*(len(in.rules)+1))
	for width := 2; width <= in.n; width++ {
		for i := 0; i+width <= in.n; i++ {
			in.cell(i, i+width-1)
		}
	}
	var sum float64
	top := in.chart[in.n-1]
	for x, p := range in.Root {
		sum += p * top[x*(len(in.rules)+1)]
	}
	return math.Log(sum) + logScale
}

// leaves fills the table of leaves and returns the logarithm of what it was divided by.
func (in *inside) leaves(words []int32) (logScale float64) {
	in.leaf = make([][][]float64, in.n)
	for i, w := range words {
		var largest float64
		for _, byParent := range in.Emit {
			for _, p := range byParent {
				largest = max(largest, p[w])
			}
		}
		in.leaf[i] = newTable(len(in.Emit), len(in.rules))
		for t, byParent := range in.Emit {
			for x, p := range byParent {
				in.leaf[i][t][x] = p[w] / largest
			}
		}
		logScale += math.Log(largest)
	}
	return logScale
}

func (in *inside) cell(i, j int) {
	cell := in.chart[i*in.n+j]
	for x := range in.rules {
		for _, r := range in.rules[x] {
			from, to := i, j-1 // ends of the left child
			if r.left >= len(in.rules) {
				to = i
			}
			if r.right >= len(in.rules) {
				from = j - 1
			}
			var both float64
			for k := from; k <= to; k++ {
				both += in.below(i, k, r.left, x) * in.below(k+1, j, r.right, x)
			}
			if both == 0 {
				continue
			}
			for p := range r.p {
				cell[x*(len(in.rules)+1)+p] += r.p[p] * both
			}
		}
	}
}

// below is the probability of words i to j from the child c of nonterminal x.
func (in *inside) below(i, j, c, x int) float64 {
	switch nonterminal := c < len(in.rules); {
	case nonterminal && i < j:
		return in.chart[i*in.n+j][c*(len(in.rules)+1)+x+1]
	case !nonterminal && i == j:
		return in.leaf[i][c-len(in.rules)][x]
	}
	return 0
}

// Project returns the context-free grammar with the same symbols that is closest to the grammar: of all of them it
// gives the trees of the grammar the highest expected log-probability. Its rules have the grammar's expected counts.
func (g *Grammar) Project() *Grammar {
	visits, leaves := g.expectedCounts()
	n := len(g.Nonterminals)
	flat := &Grammar{Nonterminals: g.Nonterminals, Preterminals: g.Preterminals, Words: g.Words, ContextFree: true, Root: g.Root}
	for x, byParent := range g.Binary {
		table := newTable(len(byParent[0]), len(byParent[0]))
		total := sumOf(visits[x])
		for p := range byParent {
			for l := range table {
				addScaled(table[l], byParent[p][l], visits[x][p]/total)
			}
		}
		flat.Binary = append(flat.Binary, slices.Repeat([][][]float64{table}, n+1))
	}
	for t, byParent := range g.Emit {
		words := make([]float64, len(g.Words))
		total := sumOf(leaves[t])
		for x := range byParent {
			addScaled(words, byParent[x], leaves[t][x]/total)
		}
		flat.Emit = append(flat.Emit, slices.Repeat([][]float64{words}, n))
	}
	return flat
}

// expectedCounts returns how often a tree has, on average, nonterminal x below parent p, [X][P], and preterminal t
// below nonterminal x, [t][X].
func (g *Grammar) expectedCounts() (visits, leaves [][]float64) {
	const levels = 1000 // of a tree; deeper ones have no measurable probability
	n := len(g.Nonterminals)
	visits, leaves = newTable(n, n+1), newTable(len(g.Preterminals), n)
	rules := g.rules()
	level := newTable(n, n+1)
	for x, p := range g.Root {
		level[x][0] = p
	}
	for range levels {
		next := newTable(n, n+1)
		for x := range rules {
			addScaled(visits[x], level[x], 1)
			for _, r := range rules[x] {
				var count float64
				for p := range r.p {
					count += level[x][p] * r.p[p]
				}
				for _, c := range []int{r.left, r.right} {
					if c < n {
						next[c][x+1] += count
					} else {
						leaves[c-n][x] += count
					}
				}
			}
		}
		level = next
	}
	return visits, leaves
}

func newTable(rows, columns int) [][]float64 {
	t := make([][]float64, rows)
	flat := make([]float64, rows*columns)
	for i := range t {
		t[i] = flat[i*columns : (i+1)*columns : (i+1)*columns]
	}
	return t
}

func addScaled(dst, src []float64, scale float64) {
	for i, v := range src {
		dst[i] += scale * v
	}
}

func sumOf(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum
}
