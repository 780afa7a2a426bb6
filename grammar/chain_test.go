package grammar

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/testkit"
)

// hostScores makes scores of sentences under an explicit grammar.
func hostScores(t testing.TB, g *Grammar, sentences [][]int32) *Scores {
	t.Helper()
	root, rules, _ := g.LogTables(dtypes.Float64)
	n := 0
	var lengths []int32
	for _, x := range sentences {
		n = max(n, len(x))
		lengths = append(lengths, int32(len(x)))
	}
	hosts, pt := g.hosts(), len(g.Preterminals)
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
	if g.Kind == NCFG {
		dims = append(dims, hosts)
	}
	s, err := NewScores(root, rules, tensors.FromFlatDataAndDimensions(terms, dims...), lengths)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Scores of trees are sums over tags, and what a proposal says it changes is the difference of two scores. Taken back,
// nothing has changed.
func TestChainScores(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, kind := range []Kind{CFG, NCFG} {
		for i := range 40 {
			g := randomGrammar(r, kind, 2, 2, 3, []float64{0, 0.2}[i%2])
			x := make([]int32, 2+i%4)
			for j := range x {
				x[j] = int32(r.IntN(3))
			}
			byShape := map[string][]float64{}
			for _, d := range enumerate(g, x) {
				byShape[d.shape()] = append(byShape[d.shape()], d.logp)
			}
			s := hostScores(t, g, [][]int32{x})
			for _, z := range labelledTrees(len(x), 2) {
				same(t, "log p(x,z)", []float64{s.LogTree(0, z)}, []float64{logSumExp(byShape[z.Shape()])})
			}
			w := s.walker(0, RandomTree(r, len(x), 2))
			for step := range 60 {
				before, tree, scores := w.logp(), w.Tree().Shape(), slices.Clone(w.score)
				var change float64
				if step%2 == 0 && len(x) > 2 {
					change = w.rotate(w.edge(r.IntN(len(x) - 2)))
				} else {
					change = w.relabel(len(x)+r.IntN(len(x)-1), r.IntN(2))
				}
				if err := w.Tree().Check(); err != nil {
					t.Fatal(err)
				}
				after := s.LogTree(0, w.Tree())
				switch {
				case !near(after, w.logp()):
					t.Errorf("%s: kept scores sum to %v, the tree has %v", w.Tree().Shape(), w.logp(), after)
				case !math.IsInf(before, -1) && !near(change, after-before):
					t.Errorf("from %s to %s: change %v, want %v", tree, w.Tree().Shape(), change, after-before)
				}
				if r.IntN(2) == 0 {
					w.undo()
					if w.Tree().Shape() != tree || !slices.Equal(w.score, scores) {
						t.Errorf("%s became %s when taken back", tree, w.Tree().Shape())
					}
				}
			}
		}
	}
}

// kernel is the transition matrix of one step on all labelled trees, by enumeration of proposals.
type kernel struct {
	trees []*Tree
	at    map[string]int
	p     [][]float64
}

func newKernel(s *Scores, n, nt int, rotation bool, prior func(*ChainTree) float64) *kernel {
	k := &kernel{trees: labelledTrees(n, nt), at: map[string]int{}}
	for i, z := range k.trees {
		k.at[z.Shape()] = i
	}
	for i, z := range k.trees {
		row := make([]float64, len(k.trees))
		w := s.walker(0, z)
		before := prior(w.ChainTree)
		proposals := 0
		try := func(change float64) {
			proposals++
			a := min(1, math.Exp(change+prior(w.ChainTree)-before))
			row[k.at[w.Tree().Shape()]] += a
			row[i] += 1 - a
			w.undo()
		}
		if rotation {
			for e := range n - 2 {
				try(w.rotate(w.edge(e)))
			}
		} else {
			for v := n; v < 2*n-1; v++ {
				for x := range nt {
					try(w.relabel(v, x))
				}
			}
		}
		for j := range row {
			row[j] /= float64(max(proposals, 1))
		}
		if proposals == 0 {
			row[i] = 1
		}
		k.p = append(k.p, row)
	}
	return k
}

func (k *kernel) step(pi []float64) []float64 {
	out := make([]float64, len(pi))
	for i, row := range k.p {
		for j, p := range row {
			out[j] += pi[i] * p
		}
	}
	return out
}

func noPrior(*ChainTree) float64 { return 0 }

// leftist likes trees whose top has a wide left part, and label 0 there.
func leftist(t *ChainTree) float64 {
	l, _ := t.Children(t.Top())
	v := 0.3 * float64(t.Label(t.Top()))
	if l >= t.Words() {
		v += 0.9
	}
	return v
}

// Each step leaves p(x,z), times a prior, as it is: exactly, by enumeration.
func TestChainIsStationary(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, kind := range []Kind{CFG, NCFG} {
		for _, prior := range []func(*ChainTree) float64{noPrior, leftist} {
			for n := 2; n <= 4; n++ {
				g := randomGrammar(r, kind, 2, 2, 3, 0)
				x := make([]int32, n)
				for i := range x {
					x[i] = int32(r.IntN(3))
				}
				s := hostScores(t, g, [][]int32{x})
				for _, rotation := range []bool{true, false} {
					k := newKernel(s, n, 2, rotation, prior)
					pi := stationary(s, k, prior)
					for i, p := range k.step(pi) {
						if !(math.Abs(p-pi[i]) <= 1e-12) {
							t.Errorf("%s, %d words, rotation %v: probability %v of %s became %v", kind, n, rotation, pi[i], k.trees[i].Shape(), p)
						}
					}
				}
			}
		}
	}
}

func stationary(s *Scores, k *kernel, prior func(*ChainTree) float64) []float64 {
	logs := make([]float64, len(k.trees))
	for i, z := range k.trees {
		logs[i] = s.LogTree(0, z) + prior(NewChainTree(z))
	}
	total := logSumExp(logs)
	for i := range logs {
		logs[i] = math.Exp(logs[i] - total)
	}
	return logs
}

// Every tree has n-2 rotations, each of which can be taken back by one of the n-2 rotations of the result, and rotations and
// new labels together reach all trees.
func TestRotations(t *testing.T) {
	const nt = 2
	for n := 2; n <= 6; n++ {
		labels := nt
		if n == 6 {
			labels = 1
		}
		trees := labelledTrees(n, labels)
		at := map[string]int{}
		for i, z := range trees {
			at[z.Shape()] = i
		}
		edges := make([]map[int]int, len(trees))
		near := make([][]int, len(trees))
		for i, z := range trees {
			edges[i] = map[int]int{}
			for e := range n - 2 {
				c := NewChainTree(z)
				undo := c.Rotate(e)
				j := at[c.Tree().Shape()]
				if undo(); c.Tree().Shape() != z.Shape() {
					t.Errorf("%s became %s when turned back", z.Shape(), c.Tree().Shape())
				}
				if bare(trees[j]) == bare(z) {
					t.Errorf("a rotation of %s gives the same tree", z.Shape())
				}
				edges[i][j]++
				near[i] = append(near[i], j)
			}
			for v := range z.Label {
				other := *z
				other.Label = slices.Clone(z.Label)
				other.Label[v] = (other.Label[v] + 1) % labels
				near[i] = append(near[i], at[other.Shape()])
			}
		}
		for i := range edges {
			for j, count := range edges[i] {
				if edges[j][i] != count {
					t.Errorf("%d rotations from %s to %s, %d back", count, trees[i].Shape(), trees[j].Shape(), edges[j][i])
				}
			}
		}
		reached, queue := map[int]bool{0: true}, []int{0}
		for len(queue) > 0 {
			i := queue[0]
			queue = queue[1:]
			for _, j := range near[i] {
				if !reached[j] {
					reached[j] = true
					queue = append(queue, j)
				}
			}
		}
		if len(reached) != len(trees) {
			t.Errorf("%d of %d trees over %d words can be reached", len(reached), len(trees), n)
		}
	}
}

// After a few steps from random merges, trees have exactly the distribution that the enumerated kernels say; that of one step
// less is told apart. The false-alarm rate is alpha for each of four checks.
func TestChainsRun(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	const copies, steps, n, nt = 20_000, 5, 4, 2
	x := []int32{2, 0, 1, 1}
	for _, kind := range []Kind{CFG, NCFG} {
		for _, prior := range []func(*ChainTree) float64{nil, leftist} {
			g := randomGrammar(r, kind, nt, 2, 3, 0)
			of := noPrior
			c := Chains{Scores: hostScores(t, g, slices.Repeat([][]int32{x}, copies)), Steps: steps}
			if prior != nil {
				of = prior
				c.Prior = func(_ int, t *ChainTree) float64 { return prior(t) }
			}
			rotate, label := newKernel(c.Scores, n, nt, true, of), newKernel(c.Scores, n, nt, false, of)
			pi := make([]float64, len(rotate.trees))
			for i, z := range rotate.trees {
				pi[i] = 1.0 / 6 / 8 // of six orders of three merges, with labels
				if bare(z) == "0(0(0 1) 0(2 3))" {
					pi[i] *= 2
				}
			}
			var last []float64
			for step := range steps {
				last = pi
				if step%2 == 0 {
					pi = rotate.step(pi)
				} else {
					pi = label.step(pi)
				}
			}
			counts := map[string]float64{}
			for i, res := range c.Run(seed, "chains", 3, nil) {
				counts[res.Tree.Shape()]++
				if !near(res.LogP, c.Scores.LogTree(i, res.Tree)) {
					t.Fatalf("%s is said to have %v", res.Tree.Shape(), res.LogP)
				}
				if res.Rotations != 3 || res.Labels != 2 || res.Rotated > 3 || res.Relabelled > 2 {
					t.Fatalf("counts %+v", res)
				}
			}
			test := func(pi []float64) float64 {
				p := map[string]float64{}
				for i, z := range rotate.trees {
					p[z.Shape()] = pi[i]
				}
				return chi2(counts, p, copies)
			}
			if q := test(pi); q < alpha {
				t.Errorf("%s: p-value %g", kind, q)
			}
			if q := test(last); q > alpha {
				t.Errorf("%s: the distribution of one step less passes, too: p-value %g", kind, q)
			}
		}
	}
}

// Two runs agree, a chain starts where it is told to, and it leaves trees of probability zero.
func TestChainsStart(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	g := tiny(NCFG)
	s := hostScores(t, g, [][]int32{{0, 1, 2, 0, 1}, {0, 1}, {2, 0, 1, 1}})
	start := []*Tree{RandomTree(r, 5, 2), RandomTree(r, 2, 2), RandomTree(r, 4, 2)}
	for i, res := range (Chains{Scores: s}).Run(seed, "a", 0, start) {
		if res.Tree.Shape() != start[i].Shape() {
			t.Errorf("no steps led from %s to %s", start[i].Shape(), res.Tree.Shape())
		}
	}
	one, two := Chains{Scores: s, Steps: 100}.Run(seed, "a", 0, start), Chains{Scores: s, Steps: 100}.Run(seed, "a", 0, start)
	for i := range one {
		if one[i].Tree.Shape() != two[i].Tree.Shape() || one[i].LogP != two[i].LogP {
			t.Errorf("two runs led to %s and %s", one[i].Tree.Shape(), two[i].Tree.Shape())
		}
	}
	// A grammar whose trees branch to the right only: A -> T A | T T.
	right := New(CFG, []string{"A", "B"}, []string{"T"}, []string{"w"})
	right.Root[0], right.Emit[0] = 1, 1
	right.RuleRow(0, 0)[2*3+0], right.RuleRow(0, 0)[2*3+2] = 0.5, 0.5
	right.RuleRow(1, 0)[2*3+2] = 1
	res := Chains{Scores: hostScores(t, right, [][]int32{{0, 0, 0, 0}}), Steps: 10_000}.Run(seed, "b", 0,
		[]*Tree{{Left: []int{0, 4, 5}, Right: []int{1, 2, 3}, Label: []int{1, 1, 1}}})
	if math.IsInf(res[0].LogP, -1) {
		t.Errorf("the chain stays at %s, which is impossible", res[0].Tree.Shape())
	}
}

// 32 sentences of 20 words, 29 nonterminals, 60 preterminals, 1,000 steps, tables included.
func BenchmarkChains(b *testing.B) {
	const nt, pt, n, batch = 29, 60, 20, 32
	r := rand.New(rand.NewPCG(1, 1))
	for _, kind := range []Kind{CFG, NCFG} {
		b.Run(string(kind), func(b *testing.B) {
			rules, terms := normal(r, -9, nt, nt+pt, nt+pt), normal(r, -8, batch, n, pt)
			if kind == NCFG {
				rules, terms = normal(r, -9, nt, nt+1, nt+pt, nt+pt), normal(r, -8, batch, n, pt, nt)
			}
			root := normal(r, -3, nt)
			lengths := slices.Repeat([]int32{n}, batch)
			for b.Loop() {
				s, err := NewScores(root, rules, terms, lengths)
				if err != nil {
					b.Fatal(err)
				}
				Chains{Scores: s, Steps: 1000}.Run(1, "bench", 0, nil)
			}
		})
	}
}
