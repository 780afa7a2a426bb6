package forest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// sumOut makes the network one over shapes.
func (r *rig) sumOut(tables grammar.LogProbTensors) {
	r.Grammar = func(g *Graph) grammar.LogProbs {
		return grammar.LogProbs{
			Root: ConstCachedTensor(g, tables.Root), Rules: ConstCachedTensor(g, tables.Rules), Emit: ConstCachedTensor(g, tables.Emit),
		}
	}
}

// randomTables are those of a grammar with random probabilities.
func randomTables(seed uint64, kind grammar.Kind, labels, preterminals, words int) grammar.LogProbTensors {
	names := func(n int) []string { return make([]string, n) }
	g := grammar.New(kind, names(labels), names(preterminals), names(words))
	r := rng.New(seed, "tables")
	for _, table := range [][]float64{g.Root, g.Rules, g.Emit} {
		for i := range table {
			table[i] = math.Exp(r.NormFloat64()) / 3
		}
	}
	return g.LogProbs(dtypes.Float64)
}

// insideOf is what the words below a node weigh, if it has a label and a symbol above it, 0 for ROOT: the sum over all
// labels below.
func insideOf(g *grammar.Grammar, words []int32, v *tree, label, above int) (total float64) {
	n := len(g.Nonterminals)
	s := n + len(g.Preterminals)
	child := func(c *tree, symbol int) float64 {
		switch {
		case c.left == nil && symbol >= n:
			return g.EmitRow(symbol-n, label)[words[c.first]]
		case c.left != nil && symbol < n:
			return insideOf(g, words, c, symbol, label+1)
		}
		return 0
	}
	for rule, p := range g.RuleRow(label, above) {
		total += p * child(v.left, rule/s) * child(v.right, rule%s)
	}
	return total
}

// logMean is u(node), the logarithm of the mean over labels and what is above.
func logMean(g *grammar.Grammar, words []int32, v *tree) float64 {
	above := 1
	if g.Kind == grammar.NCFG {
		above = len(g.Nonterminals) + 1
	}
	total := 0.0
	for label := range g.Nonterminals {
		for a := range above {
			total += insideOf(g, words, v, label, a)
		}
	}
	return math.Log(total / float64(above*len(g.Nonterminals)))
}

type shapeRewards[T any] struct{ Walked, Embedded, Exact, Partial T }

// TestShapeRewards: log p(x,s) of the shapes where walks end, from what the walks know, is that of shapes which are
// embedded from nothing, that of package grammar, and the sum over all labels; and the partial reward of each forest on
// the way is the sum over its trees.
func TestShapeRewards(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		r := tinyRig(t, seed, []int32{0, 1, 2, 0, 1}, []int32{2, 1}, []int32{2, 0, 1, 1}, []int32{0, 1, 2}, []int32{1, 1, 0, 2, 2, 0, 1})
		g := tinyGrammar(kind)
		r.sumOut(g.LogProbs(dtypes.Float64))
		wake, move := r.walk(t, seed, 3, plain)
		for what, walk := range map[string]WalkTensors{"wake": wake, "a move": move} {
			out := call[shapeRewards[*tensors.Tensor]](t, r, func(in walked[Sentences, Walk]) shapeRewards[*Node] {
				h := in.Wake.Built(in.Sentences.Words)
				root := r.Grammar(in.Sentences.Words.Graph()).Root
				known := r.shapeRewards(root, in.Wake.Forest, in.Wake.Inside)
				fresh := r.Embed(r.scope(), in.Wake.Forest, in.Sentences.Words)
				scored := r.Score(r.scope(), 1000, Histories{h, r.n - 1})[0]
				return shapeRewards[*Node]{
					known.LogR, r.shapeRewards(root, in.Wake.Forest, fresh.Inside).LogR, potentials(g, h).LogShape(h.Trees),
					scored.Rewarded(grammar.CFG, known.Nodes, known.LogR).Partial,
				}
			}, r.walked(walk, WalkTensors{}))
			near(t, what+": log p(x,s) that the walk knows", out.Walked, out.Exact, 1e-10)
			near(t, what+": log p(x,s) of embedded shapes", out.Embedded, out.Exact, 1e-10)
			partial := float64s(t, out.Partial)
			for b, f := range readForests(walk.Forest) {
				words := tensors.MustCopyFlatData[int32](r.words)[b*r.n:]
				total := 0.0
				for label, p := range g.Root {
					total += p * insideOf(g, words, f[0], label, 0)
				}
				checkNumber(t, fmt.Sprintf("%s, sentence %d: log p(x,s)", what, b), float64s(t, out.Walked)[b], math.Log(total), 1e-10)
				if what == "a move" { // which undid a part alone
					continue
				}
				path := pathsOf(r, walk)[b]
				for at, state := range forests(len(path.words), path.steps) {
					want := 0.0
					for _, v := range state {
						if v.left != nil {
							want += logMean(g, words, v)
						}
					}
					checkNumber(t, fmt.Sprintf("sentence %d, state %d: partial reward", b, at), partial[b*r.n+at], want, 1e-10)
				}
			}
		}
	}
}

// TestShapesOfSymbols: leaves that are symbols weigh as these alone, so that a dream that stopped early has the weights
// of its rules.
func TestShapesOfSymbols(t *testing.T) {
	t.Parallel()
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		r := tinyRig(t, 1, []int32{0, 0})
		g := tinyGrammar(kind)
		r.sumOut(g.LogProbs(dtypes.Float64))
		// Two words, ROOT, then the nonterminals and preterminals: B above the symbols A and T1.
		r.words = tensors.FromValue([][]int32{{4 + 0, 4 + 2 + 1}})
		type logs[T any] struct{ LogR T }
		out := call[logs[*tensors.Tensor]](t, r, func(x Sentences) logs[*Node] {
			z := grammar.Trees{
				Left: Const(x.Words.Graph(), [][]int32{{0}}), Right: Const(x.Words.Graph(), [][]int32{{1}}), Label: Const(x.Words.Graph(), [][]int32{{0}}),
			}
			w := r.Embed(r.scope(), FromTrees(z, x.Lengths), x.Words)
			return logs[*Node]{r.shapeRewards(r.Grammar(x.Words.Graph()).Root, w.Forest, w.Inside).LogR}
		}, r.sentences())
		want := 0.0
		for label, p := range g.Root {
			want += p * g.RuleRow(label, 0)[0*4+3]
		}
		checkNumber(t, fmt.Sprintf("%s: log of the rule's probability", kind), float64s(t, out.LogR)[0], math.Log(want), 1e-10)
	}
}

type drawnLabels[T any] struct{ Labels T }

// TestLabelsOfShapes: labels of a shape are drawn from the posterior given the shape, by enumeration. The chi-square
// test has a false-alarm rate of 1e-5; the posterior of the same shape over other words is told from it.
func TestLabelsOfShapes(t *testing.T) {
	t.Parallel()
	const count = 4000
	seed := testkit.Seed(t)
	words, others := []int32{2, 0, 1, 1}, []int32{0, 0, 2, 1}
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		g := tinyGrammar(kind)
		var sentences [][]int32
		for range count {
			sentences = append(sentences, words)
		}
		r := tinyRig(t, seed, sentences...)
		r.sumOut(g.LogProbs(dtypes.Float64))
		steps := []closing{{0, 0}, {2, 0}, {1, 0}} // ((0 1) (2 3))
		paths := make([]hostPath, count)
		for i := range paths {
			paths[i] = hostPath{words: words, steps: steps}
		}
		out := call[drawnLabels[*tensors.Tensor]](t, r, func(in keyed[*Node, History]) drawnLabels[*Node] {
			f := FromTrees(in.From.Trees, in.From.Length)
			w := r.Embed(r.scope(), f, in.From.Leaves)
			return drawnLabels[*Node]{r.drawLabels(r.Grammar(in.Key.Graph()), rng.In(in.Key), f, w.Inside)}
		}, keyed[*tensors.Tensor, historyTensors]{rng.Key(seed, "labels"), pack(4, paths)})
		counts := map[string]int{}
		flat := tensors.MustCopyFlatData[int32](out.Labels)
		for i := range count {
			counts[fmt.Sprint(flat[i*3:][:3])]++
		}
		posterior := func(words []int32) map[string]float64 {
			var keys []string
			var logs []float64
			for all := range 8 {
				label := []int{all & 1, all >> 1 & 1, all >> 2}
				z := forests(4, []closing{{0, label[0]}, {2, label[2]}, {1, label[1]}})[3][0]
				keys = append(keys, fmt.Sprint([]int{label[0] + 1, label[1] + 1, label[2] + 1}))
				logs = append(logs, logJoint(g, words, z))
			}
			out := map[string]float64{}
			for i, p := range gfn.Normalise(logs) {
				out[keys[i]] = p
			}
			return out
		}
		if q := chiSquare(counts, posterior(words)); !(q > alpha) {
			t.Errorf("%s: labels %v are improbable by %.1g, want %v", kind, counts, q, posterior(words))
		}
		if q := chiSquare(counts, posterior(others)); q > alpha {
			t.Errorf("%s: the test does not see the words", kind)
		}
	}
}

// TestShapesTogether: what is known of nodes goes along when batches are made one and taken apart.
func TestShapesTogether(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	small, large := newRig(t, seed, dtypes.Float64, 3, 2, 4), newRig(t, seed+1, dtypes.Float64, 7, 5)
	large.b = small.b
	for _, r := range []*rig{small, large} {
		r.sumOut(randomTables(seed, grammar.NCFG, r.Labels, r.Preterminals, r.Words))
	}
	_, a := small.walk(t, seed, 2, plain)
	_, b := large.walk(t, seed, 3, plain)
	got := call[union[WalkTensors]](t, small, func(in union[Walk]) union[Walk] {
		all := Together(in.A, in.B)
		a, b := Apart(all, 3, small.n, large.n)
		return union[Walk]{a, b, program.Map(all, Identity)}
	}, union[WalkTensors]{A: a, B: b})
	same(t, "first batch:", got.A, a, 0)
	same(t, "second batch:", got.B, b, 0)
	if got.All.Inside.Log.Shape().Dim(1) != 2*large.n-1 || a.Inside.Symbols == nil {
		t.Errorf("what is known of nodes: %v, %v", got.All.Inside, a.Inside)
	}
}
