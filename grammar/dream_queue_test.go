package grammar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// twist is a mistake in queued, to see that tests notice it.
type twist string

const (
	rightly      twist = ""
	depthFirst   twist = "the newest symbol is expanded first"
	allSpelt     twist = "all preterminals become words"
	noneSpelt    twist = "no preterminal of a cut tree becomes a word"
	oneMore      twist = "a tree may have a leaf more"
	orphans      twist = "all rules are those below ROOT"
	wrongHost    twist = "words see the nonterminal two above"
	mirrored     twist = "children are swapped"
	independence twist = "left and right children are independent"
)

// queued expands symbols as Dream says, with a queue, and writes the tree; choose draws from a distribution.
func queued(g *Grammar, leaves int, how twist, choose func(p []float64) int) string {
	type node struct {
		symbol, parent, grand int // parents count from ROOT
		text                  string
		left, right           *node
	}
	nt, s := len(g.Nonterminals), g.symbols()
	if how == oneMore {
		leaves++
	}
	top := &node{symbol: choose(g.Root)}
	queue, frontier := []*node{top}, 1
	spell := func(x *node) {
		host := x.parent
		if how == wrongHost && x.grand > 0 {
			host = x.grand
		}
		x.text = fmt.Sprint("w", choose(g.EmitRow(x.symbol-nt, host-1)))
	}
	for len(queue) > 0 && frontier < leaves {
		x := queue[0]
		queue = queue[1:]
		if how == depthFirst {
			queue = append([]*node{x}, queue...)
			x, queue = queue[len(queue)-1], queue[:len(queue)-1]
		}
		if x.symbol >= nt {
			if how != noneSpelt {
				spell(x)
			}
			continue
		}
		parent := x.parent
		if how == orphans {
			parent = 0
		}
		row := g.RuleRow(x.symbol, parent)
		rule := choose(row)
		l, r := rule/s, rule%s
		switch how {
		case mirrored:
			l, r = r, l
		case independence:
			r = choose(row) % s
		}
		x.left = &node{symbol: l, parent: x.symbol + 1, grand: x.parent}
		x.right = &node{symbol: r, parent: x.symbol + 1, grand: x.parent}
		queue = append(queue, x.left, x.right)
		frontier++
	}
	var write func(x *node) string
	write = func(x *node) string {
		switch {
		case x.left != nil:
			return fmt.Sprintf("%d(%s %s)", x.symbol, write(x.left), write(x.right))
		case x.text == "" && x.symbol >= nt && (how == allSpelt || how == noneSpelt && frontier < leaves):
			spell(x)
		}
		switch {
		case x.text != "":
			return x.text
		case x.symbol < nt:
			return fmt.Sprint("x", x.symbol)
		}
		return fmt.Sprint("t", x.symbol-nt)
	}
	return write(top)
}

// distribution runs a function for all that can be chosen, and gives the probability of each result.
func distribution(f func(choose func(p []float64) int) string) map[string]float64 {
	all := map[string]float64{}
	type choice struct {
		p  []float64
		at int
	}
	var path []choice
	for {
		depth, weight := 0, 1.0
		result := f(func(p []float64) int {
			if depth == len(path) {
				path = append(path, choice{p, slices.IndexFunc(p, func(v float64) bool { return v > 0 })})
			}
			c := path[depth]
			depth++
			weight *= c.p[c.at]
			return c.at
		})
		all[result] += weight
		for len(path) > 0 {
			c := &path[len(path)-1]
			c.at++
			for c.at < len(c.p) && c.p[c.at] == 0 {
				c.at++
			}
			if c.at < len(c.p) {
				break
			}
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return all
		}
	}
}

// Dreams have the distribution of all that a queue can give, trees that were cut included, and not that of a queue with
// a mistake. The false-alarm rate is alpha for each of four checks.
func TestDreamDistribution(t *testing.T) {
	seed := testkit.Seed(t)
	const rows, calls = 2000, 10
	for _, c := range []struct {
		kind   Kind
		leaves int
	}{{CFG, 4}, {CFG, 5}, {NCFG, 4}, {NCFG, 5}} {
		g := dreamGrammar(rand.New(rand.NewPCG(seed, uint64(c.leaves))), c.kind)
		exec := dreamProgram(newBackend(), rows, c.leaves)
		counts := map[string]float64{}
		for i := range calls {
			for _, d := range dreams(t, exec, g, dtypes.Float32, rng.Key(seed, "dream", uint64(i))) {
				text, err := d.text(g)
				if err != nil {
					t.Fatal(err)
				}
				counts[text]++
			}
		}
		wrong := []twist{depthFirst, allSpelt, noneSpelt, oneMore, mirrored, independence}
		if c.kind == NCFG {
			wrong = append(wrong, orphans, wrongHost)
		}
		for _, how := range append([]twist{rightly}, wrong...) {
			p := distribution(func(choose func([]float64) int) string { return queued(g, c.leaves, how, choose) })
			total := 0.0
			for _, v := range p {
				total += v
			}
			if math.Abs(total-1) > 1e-12 {
				t.Fatalf("enumerated probabilities add up to %v", total)
			}
			q := chi2(counts, p, rows*calls)
			t.Logf("%s, %d leaves, %d outcomes, %q: p-value %.3g", c.kind, c.leaves, len(p), how, q)
			if (q >= alpha) != (how == rightly) {
				t.Errorf("%s, %d leaves, %q: p-value %g", c.kind, c.leaves, how, q)
			}
		}
	}
}

// dreamGrammar draws a grammar of which a queue gives few outcomes, trees of all lengths and cut ones among them: two
// nonterminals, two preterminals, two words, and four rules of each nonterminal. What depends on the parent does so
// clearly.
func dreamGrammar(r *rand.Rand, kind Kind) *Grammar {
	g := New(kind, names("A", 2), names("T", 2), names("w", 2))
	for x := range 2 {
		g.Root[x] = 0.5 + r.Float64()
		for p := range g.parents() {
			row := g.RuleRow(x, p)
			l, r1, r2 := r.IntN(2), 2+r.IntN(2), 2+r.IntN(2)
			for _, rule := range [][2]int{{l, r1}, {r2, 1 - l}, {r1, 2 + r.IntN(2)}, {x, 1 - x}} {
				row[rule[0]*4+rule[1]] += 0.3 + r.Float64()
			}
		}
	}
	for t := range 2 {
		for x := range g.hosts() {
			likely := (t + x) % 2
			g.EmitRow(t, x)[likely], g.EmitRow(t, x)[1-likely] = 3+r.Float64(), 1
		}
	}
	normalise(g.Root, 2)
	normalise(g.Rules, 16)
	normalise(g.Emit, 2)
	return g
}

// A host's queue that draws at random agrees with its own enumeration, so the enumeration is right.
func TestQueueEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	g := dreamGrammar(r, NCFG)
	const draws = 20_000
	counts := map[string]float64{}
	for range draws {
		counts[queued(g, 5, rightly, func(p []float64) int {
			u := r.Float64()
			for i, v := range p {
				if u -= v; u < 0 {
					return i
				}
			}
			return len(p) - 1
		})]++
	}
	p := distribution(func(choose func([]float64) int) string { return queued(g, 5, rightly, choose) })
	if q := chi2(counts, p, draws); q < alpha {
		t.Errorf("p-value %g", q)
	}
}
