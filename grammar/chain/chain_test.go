package chain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/testkit"
)

// Scores of trees are sums over tags, and what a proposal says it changes is the difference of two scores. Taken back,
// nothing has changed.
func TestWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		for i := range 40 {
			g := randomGrammar(r, kind, 2, 2, 3, []float64{0, 0.2}[i%2])
			x := make([]int32, 2+i%4)
			for j := range x {
				x[j] = int32(r.IntN(3))
			}
			s := weightsOf(t, g, [][]int32{x})
			for _, z := range labelledTrees(len(x), 2) {
				if got, want := s.LogTree(0, z), slowLogTree(g, x, z); !near(got, want) {
					t.Errorf("log p(x,z) of %s is %v, want %v", z.Shape(), got, want)
				}
			}
			w := s.walker(0, grammar.RandomTree(r, len(x), 2))
			for step := range 60 {
				before, tree, scores := w.logp(), w.Copy().Shape(), slices.Clone(w.score)
				var change float64
				if step%2 == 0 && len(x) > 2 {
					change = w.rotate(w.edge(r.IntN(len(x) - 2)))
				} else {
					change = w.relabel(len(x)+r.IntN(len(x)-1), r.IntN(2))
				}
				if err := w.Copy().Check(); err != nil {
					t.Fatal(err)
				}
				after := s.LogTree(0, w.Copy())
				switch {
				case !near(after, w.logp()):
					t.Errorf("%s: kept scores sum to %v, the tree has %v", w.Copy().Shape(), w.logp(), after)
				case !math.IsInf(before, -1) && !near(change, after-before):
					t.Errorf("from %s to %s: change %v, want %v", tree, w.Copy().Shape(), change, after-before)
				}
				if r.IntN(2) == 0 {
					w.undo()
					if w.Copy().Shape() != tree || !slices.Equal(w.score, scores) {
						t.Errorf("%s became %s when taken back", tree, w.Copy().Shape())
					}
				}
			}
		}
	}
}

// TestReferenceNodes checks the nodes of the two trees whose probabilities are given.
func TestReferenceNodes(t *testing.T) {
	one := &grammar.Tree{Left: []int{1, 0}, Right: []int{2, 3}, Label: []int{1, 0}}
	two := &grammar.Tree{Left: []int{0, 2, 4}, Right: []int{1, 3, 5}, Label: []int{0, 1, 1}}
	const eight, ten = 0.51e-8, 0.51e-10 // decimals
	for _, c := range []struct {
		kind   grammar.Kind
		words  []int32
		tree   *grammar.Tree
		want   float64
		nodes  []float64 // by merge
		within float64
	}{
		{grammar.CFG, []int32{0, 1, 2}, one, -7.6649621084, []float64{-3.4508819024, -3.4864448613}, ten},
		{grammar.NCFG, []int32{0, 1, 2}, one, -7.8710898728, []float64{-3.6446180526, -3.4988364755}, ten},
		{grammar.CFG, []int32{2, 0, 1, 1}, two, -11.42282318, []float64{-3.32832407, -3.74641679, -3.68827342}, eight},
		{grammar.NCFG, []int32{2, 0, 1, 1}, two, -12.55193099, []float64{-3.37754177, -3.47104270, -5.04353763}, eight},
	} {
		digits := func(what string, got, want float64) {
			t.Helper()
			if !(math.Abs(got-want) <= c.within) {
				t.Errorf("%s %s: %s is %.12f, want %.10f", c.kind, c.tree.Shape(), what, got, want)
			}
		}
		w := weightsOf(t, tiny(c.kind), [][]int32{c.words}).walker(0, c.tree)
		digits("joint", w.logp(), c.want)
		for m, want := range c.nodes {
			digits(fmt.Sprint("node ", m), w.score[len(c.words)+m], want)
		}
	}
}

// kernel is the transition matrix of one step on all labelled trees, by enumeration of proposals.
type kernel struct {
	trees []*grammar.Tree
	at    map[string]int
	p     [][]float64
}

func newKernel(s *Weights, n, nt int, rotation bool, prior func(*Tree) float64) *kernel {
	k := &kernel{trees: labelledTrees(n, nt), at: map[string]int{}}
	for i, z := range k.trees {
		k.at[z.Shape()] = i
	}
	for i, z := range k.trees {
		row := make([]float64, len(k.trees))
		w := s.walker(0, z)
		before := prior(w.Tree)
		proposals := 0
		try := func(change float64) {
			proposals++
			a := min(1, math.Exp(change+prior(w.Tree)-before))
			row[k.at[w.Copy().Shape()]] += a
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

func noPrior(*Tree) float64 { return 0 }

// leftist likes trees whose top has a wide left part, and label 0 there.
func leftist(t *Tree) float64 {
	l, _ := t.Children(t.Top())
	v := 0.3 * float64(t.label[t.Top()])
	if l >= t.Words() {
		v += 0.9
	}
	return v
}

// Each step leaves p(x,z), times a prior, as it is: exactly, by enumeration.
func TestStationary(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		for _, prior := range []func(*Tree) float64{noPrior, leftist} {
			for n := 2; n <= 4; n++ {
				g := randomGrammar(r, kind, 2, 2, 3, 0)
				x := make([]int32, n)
				for i := range x {
					x[i] = int32(r.IntN(3))
				}
				s := weightsOf(t, g, [][]int32{x})
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

func stationary(s *Weights, k *kernel, prior func(*Tree) float64) []float64 {
	logs := make([]float64, len(k.trees))
	for i, z := range k.trees {
		logs[i] = s.LogTree(0, z) + prior(NewTree(z))
	}
	return gfn.Normalise(logs)
}

// Every tree has n-2 rotations, each of which can be taken back by one of the n-2 rotations of the result, and
// rotations and new labels together reach all trees.
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
				c := NewTree(z)
				undo := c.Rotate(e)
				j := at[c.Copy().Shape()]
				if undo(); c.Copy().Shape() != z.Shape() {
					t.Errorf("%s became %s when turned back", z.Shape(), c.Copy().Shape())
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

// alpha is the false-alarm rate of one check.
const alpha = 5e-6

// After a few steps from random merges, trees have exactly the distribution that the enumerated kernels say; that of
// one step less is told apart. The false-alarm rate is alpha for each of four checks.
func TestRun(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	const copies, steps, n, nt = 20_000, 5, 4, 2
	x := []int32{2, 0, 1, 1}
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		for _, prior := range []func(*Tree) float64{nil, leftist} {
			g := randomGrammar(r, kind, nt, 2, 3, 0)
			of := noPrior
			c := Sampler{Weights: weightsOf(t, g, slices.Repeat([][]int32{x}, copies)), Steps: steps}
			if prior != nil {
				of = prior
				c.LogPrior = func(_ int, t *Tree) float64 { return prior(t) }
			}
			rotate, label := newKernel(c.Weights, n, nt, true, of), newKernel(c.Weights, n, nt, false, of)
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
			counts := map[string]int{}
			for i, res := range c.Run(seed, "chains", 3, nil) {
				counts[res.Tree.Shape()]++
				if !near(res.LogP, c.Weights.LogTree(i, res.Tree)) {
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
				return testkit.ChiSquare(counts, p)
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
func TestStart(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	g := tiny(grammar.NCFG)
	s := weightsOf(t, g, [][]int32{{0, 1, 2, 0, 1}, {0, 1}, {2, 0, 1, 1}})
	start := []*grammar.Tree{grammar.RandomTree(r, 5, 2), grammar.RandomTree(r, 2, 2), grammar.RandomTree(r, 4, 2)}
	for i, res := range (Sampler{Weights: s}).Run(seed, "a", 0, start) {
		if res.Tree.Shape() != start[i].Shape() {
			t.Errorf("no steps led from %s to %s", start[i].Shape(), res.Tree.Shape())
		}
	}
	one, two := Sampler{Weights: s, Steps: 100}.Run(seed, "a", 0, start), Sampler{Weights: s, Steps: 100}.Run(seed, "a", 0, start)
	for i := range one {
		if one[i].Tree.Shape() != two[i].Tree.Shape() || one[i].LogP != two[i].LogP {
			t.Errorf("two runs led to %s and %s", one[i].Tree.Shape(), two[i].Tree.Shape())
		}
	}
	// A grammar whose trees branch to the right only: A -> T A | T T.
	right := grammar.New(grammar.CFG, []string{"A", "B"}, []string{"T"}, []string{"w"})
	right.Root[0], right.Emit[0] = 1, 1
	right.RuleRow(0, 0)[2*3+0], right.RuleRow(0, 0)[2*3+2] = 0.5, 0.5
	right.RuleRow(1, 0)[2*3+2] = 1
	res := Sampler{Weights: weightsOf(t, right, [][]int32{{0, 0, 0, 0}}), Steps: 10_000}.Run(seed, "b", 0,
		[]*grammar.Tree{{Left: []int{0, 4, 5}, Right: []int{1, 2, 3}, Label: []int{1, 1, 1}}})
	if math.IsInf(res[0].LogP, -1) {
		t.Errorf("the chain stays at %s, which is impossible", res[0].Tree.Shape())
	}
}

// 32 sentences of 20 words, 29 nonterminals, 60 preterminals, 1,000 steps, tables included.
func BenchmarkSampler(b *testing.B) {
	const nt, pt, n, batch = 29, 60, 20, 32
	r := rand.New(rand.NewPCG(1, 1))
	normal := func(plus float32, dims ...int) *tensors.Tensor {
		t := tensors.FromShape(shapes.Make(dtypes.Float32, dims...))
		tensors.MustMutableFlatData(t, func(x []float32) {
			for i := range x {
				x[i] = float32(r.NormFloat64()) + plus
			}
		})
		return t
	}
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		b.Run(string(kind), func(b *testing.B) {
			p := grammar.PotentialTensors{Root: normal(-3, nt), Rules: normal(-9, nt, nt+pt, nt+pt), Terms: normal(-8, batch, n, pt)}
			if kind == grammar.NCFG {
				p.Rules, p.Terms = normal(-9, nt, nt+1, nt+pt, nt+pt), normal(-8, batch, n, pt, nt)
			}
			lengths := slices.Repeat([]int32{n}, batch)
			for b.Loop() {
				s, err := NewWeights(p, lengths)
				if err != nil {
					b.Fatal(err)
				}
				Sampler{Weights: s, Steps: 1000}.Run(1, "bench", 0, nil)
			}
		})
	}
}
