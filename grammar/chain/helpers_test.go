package chain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
)

// newGrammar makes a grammar whose probabilities are proportional to exponentials. Logits are those of a row of a table, by the
// symbols that the row is of; of roots x is -1.
func newGrammar(
	kind grammar.Kind, nt, pt, words int, rules func(x, parent, i int) float64, emit func(tag, x, word int) float64,
) *grammar.Grammar {
	names := func(prefix string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(prefix, i))
		}
		return out
	}
	g := grammar.New(kind, names("A", nt), names("T", pt), names("w", words))
	fill := func(row []float64, logit func(i int) float64) {
		logits := make([]float64, len(row))
		for i := range row {
			logits[i] = logit(i)
		}
		copy(row, gfn.Normalise(logits))
	}
	fill(g.Root, func(i int) float64 { return rules(-1, 0, i) })
	parents, hosts := 1, 1
	if kind == grammar.NCFG {
		parents, hosts = nt+1, nt
	}
	for x := range nt {
		for p := range parents {
			fill(g.RuleRow(x, p), func(i int) float64 { return rules(x, p, i) })
		}
	}
	for t := range pt {
		for x := range hosts {
			fill(g.EmitRow(t, x), func(i int) float64 { return emit(t, x, i) })
		}
	}
	return g
}

// randomGrammar draws a grammar; a rule, emission or root is absent with probability zeros.
func randomGrammar(r *rand.Rand, kind grammar.Kind, nt, pt, words int, zeros float64) *grammar.Grammar {
	draw := func(_, _, i int) float64 {
		if i > 0 && r.Float64() < zeros {
			return math.Inf(-1)
		}
		return 2 * r.NormFloat64()
	}
	return newGrammar(kind, nt, pt, words, draw, draw)
}

// tiny is the grammar of the reference numbers.
func tiny(kind grammar.Kind) *grammar.Grammar {
	seen := 0.0 // whether what is above matters
	if kind == grammar.NCFG {
		seen = 1
	}
	return newGrammar(kind, 2, 2, 3, func(x, parent, i int) float64 {
		if x < 0 {
			return math.Sin(1 + float64(i))
		}
		return math.Sin(1+16*float64(x)+float64(i)) + seen*math.Cos(2+16*float64(parent)+float64(i))
	}, func(tag, x, word int) float64 {
		at := float64(3*tag + word)
		return math.Cos(1+at) + seen*0.5*math.Sin(1+6*float64(x+1)+at)
	})
}

// weightsOf are the weights of sentences under a grammar.
func weightsOf(t testing.TB, g *grammar.Grammar, sentences [][]int32) *Weights {
	t.Helper()
	n := 0
	var lengths []int32
	for _, x := range sentences {
		n = max(n, len(x))
		lengths = append(lengths, int32(len(x)))
	}
	pt := len(g.Preterminals)
	hosts := len(g.Emit) / pt / len(g.Words)
	terms := make([]float64, len(sentences)*n*pt*hosts)
	for b, x := range sentences {
		for i, w := range x {
			for tag := range pt {
				for h := range hosts {
					terms[((b*n+i)*pt+tag)*hosts+h] = math.Log(g.EmitRow(tag, h)[w])
				}
			}
		}
	}
	dims := []int{len(sentences), n, pt}
	if g.Kind == grammar.NCFG {
		dims = append(dims, hosts)
	}
	tables := g.LogTables(dtypes.Float64)
	s, err := NewWeights(grammar.PotentialTensors{
		Root: tables.Root, Rules: tables.Rules, Terms: tensors.FromFlatDataAndDimensions(terms, dims...),
	}, lengths)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// slowLogTree is log p(x,z), by a sum over all preterminals of all words.
func slowLogTree(g *grammar.Grammar, x []int32, z *grammar.Tree) float64 {
	n, nt := len(x), len(g.Nonterminals)
	above := make([]int, 2*n-1) // one more than the label above
	for m, label := range z.Label {
		above[z.Left[m]], above[z.Right[m]] = label+1, label+1
	}
	tags := make([]int, n)
	total := 0.0
	var add func(i int, p float64)
	add = func(i int, p float64) {
		if i < n {
			for tags[i] = range g.Preterminals {
				add(i+1, p*g.EmitRow(tags[i], above[i]-1)[x[i]])
			}
			return
		}
		symbol := func(node int) int {
			if node < n {
				return nt + tags[node]
			}
			return z.Label[node-n]
		}
		for m, label := range z.Label {
			p *= g.RuleRow(label, above[n+m])[symbol(z.Left[m])*(nt+len(g.Preterminals))+symbol(z.Right[m])]
		}
		total += p
	}
	add(0, g.Root[z.Label[n-2]])
	return math.Log(total)
}

// labelledTrees lists all trees over n words.
func labelledTrees(n, nt int) (out []*grammar.Tree) {
	type merge struct{ first, mid, last, label int }
	var over func(first, last int) [][]merge
	over = func(first, last int) (out [][]merge) {
		if first == last {
			return [][]merge{nil}
		}
		for mid := first; mid < last; mid++ {
			for _, l := range over(first, mid) {
				for _, r := range over(mid+1, last) {
					for x := range nt {
						out = append(out, append(slices.Concat(l, r), merge{first, mid, last, x}))
					}
				}
			}
		}
		return out
	}
	for _, merges := range over(0, n-1) {
		z, node := &grammar.Tree{}, map[[2]int]int{}
		for i := range n {
			node[[2]int{i, i}] = i
		}
		for m, s := range merges {
			z.Left, z.Right = append(z.Left, node[[2]int{s.first, s.mid}]), append(z.Right, node[[2]int{s.mid + 1, s.last}])
			z.Label = append(z.Label, s.label)
			node[[2]int{s.first, s.last}] = n + m
		}
		out = append(out, z)
	}
	return out
}

// bare writes a tree without labels.
func bare(t *grammar.Tree) string {
	z := *t
	z.Label = make([]int, len(t.Label))
	return z.Shape()
}

// near says whether two numbers agree to 1e-10, relative to their size where that is above one.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-10*max(1, math.Abs(a), math.Abs(b))
}
