package grammar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
)

var newBackend = sync.OnceValue(func() compute.Backend {
	b, err := backend.Open("simd")
	if err != nil {
		panic(err)
	}
	return b
})

// derivation is a node of a full tree: its symbol (as on a right-hand side), its words, and its children.
type derivation struct {
	symbol, start, width int
	left, right          *derivation
	logp                 float64
}

// shape writes the tree without preterminals, so that two derivations of one labelled tree agree.
func (d *derivation) shape() string {
	if d.left == nil {
		return strconv.Itoa(d.start)
	}
	return fmt.Sprintf("%d(%s %s)", d.symbol, d.left.shape(), d.right.shape())
}

// full writes the tree with preterminals.
func (d *derivation) full() string {
	if d.left == nil {
		return fmt.Sprintf("%d:%d", d.symbol, d.start)
	}
	return fmt.Sprintf("%d(%s %s)", d.symbol, d.left.full(), d.right.full())
}

func (d *derivation) walk(f func(*derivation)) {
	f(d)
	if d.left != nil {
		d.left.walk(f)
		d.right.walk(f)
	}
}

// enumerate lists all derivations of words of positive probability, the root included in logp.
func enumerate(g *Grammar, words []int32) []*derivation {
	type cell struct{ i, w, symbol, parent int }
	memo := map[cell][]*derivation{}
	nt := len(g.Nonterminals)
	var below func(c cell) []*derivation
	below = func(c cell) []*derivation {
		if out, ok := memo[c]; ok {
			return out
		}
		var out []*derivation
		switch {
		case c.symbol >= nt && c.w == 1:
			if p := g.EmitRow(c.symbol-nt, c.parent-1)[words[c.i]]; p > 0 {
				out = append(out, &derivation{symbol: c.symbol, start: c.i, width: 1, logp: math.Log(p)})
			}
		case c.symbol < nt && c.w > 1:
			row := g.RuleRow(c.symbol, c.parent)
			for k := 1; k < c.w; k++ {
				for rule, p := range row {
					if p == 0 {
						continue
					}
					l, r := rule/g.symbols(), rule%g.symbols()
					for _, a := range below(cell{c.i, k, l, c.symbol + 1}) {
						for _, b := range below(cell{c.i + k, c.w - k, r, c.symbol + 1}) {
							out = append(out, &derivation{c.symbol, c.i, c.w, a, b, math.Log(p) + a.logp + b.logp})
						}
					}
				}
			}
		}
		memo[c] = out
		return out
	}
	var all []*derivation
	for x, p := range g.Root {
		if p == 0 {
			continue
		}
		for _, d := range below(cell{0, len(words), x, 0}) {
			top := *d
			top.logp += math.Log(p)
			all = append(all, &top)
		}
	}
	return all
}

// logSumExp adds up exponentials; of nothing it is -Inf.
func logSumExp(x []float64) float64 {
	most := math.Inf(-1)
	for _, v := range x {
		most = max(most, v)
	}
	if math.IsInf(most, -1) {
		return most
	}
	total := 0.0
	for _, v := range x {
		total += math.Exp(v - most)
	}
	return most + math.Log(total)
}

// logTotal is log p(x), given all derivations.
func logTotal(all []*derivation) float64 {
	x := make([]float64, len(all))
	for i, d := range all {
		x[i] = d.logp
	}
	return logSumExp(x)
}

func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = prefix + strconv.Itoa(i)
	}
	return out
}

// randomGrammar draws a grammar; a rule, emission or root is absent with probability zeros.
func randomGrammar(r *rand.Rand, kind Kind, nt, pt, words int, zeros float64) *Grammar {
	g := New(kind, names("A", nt), names("T", pt), names("w", words))
	fill := func(table []float64) {
		for i := range table {
			if r.Float64() >= zeros {
				table[i] = math.Exp(2 * r.NormFloat64())
			}
		}
	}
	fill(g.Root)
	fill(g.Rules)
	fill(g.Emit)
	normalise(g.Root, len(g.Root))
	normalise(g.Rules, g.symbols()*g.symbols())
	normalise(g.Emit, words)
	return g
}

// sentences draws words [B,n] for the given lengths; padding is random, too, for it must not matter.
func sentences(r *rand.Rand, n, vocabulary int, lengths []int32) (flat []int32, words, lens *tensors.Tensor) {
	flat = make([]int32, len(lengths)*n)
	for i := range flat {
		flat[i] = int32(r.IntN(vocabulary))
	}
	return flat, tensors.FromFlatDataAndDimensions(flat, len(lengths), n), tensors.FromFlatDataAndDimensions(lengths, len(lengths))
}

// near says whether two numbers agree to 1e-10, relative to their size where that is above one.
func near(a, b float64) bool {
	if math.IsInf(a, -1) || math.IsInf(b, -1) {
		return a == b
	}
	return math.Abs(a-b) <= 1e-10*max(1, math.Abs(a), math.Abs(b))
}
