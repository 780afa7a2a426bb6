package parse

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/treebank"
)

// The number of forests is that of what is listed; trees alone are Catalan numbers times labels.
func TestCountForests(t *testing.T) {
	for _, c := range []struct{ n, labels, want int }{
		{1, 5, 1}, {2, 3, 4}, {3, 1, 5}, {3, 3, 25}, {4, 3, 190}, {6, 3, 14_506}, {20, 29, mostForests + 1},
	} {
		if got := countForests(c.n, c.labels); got != c.want {
			t.Errorf("%d words and %d labels have %d forests, want %d", c.n, c.labels, got, c.want)
		}
	}
	for n, trees := range map[int]int{2: 2, 3: 2 * 4, 4: 5 * 8} {
		l, err := listForests(simd(), forest.Env{Words: n, Labels: 2})
		if err != nil {
			t.Fatal(err)
		}
		if l.Len() != countForests(n, 2) || len(l.trees) != trees || l.inner != l.Len()-trees {
			t.Errorf("%d words: %d forests, %d trees, %d others", n, l.Len(), len(l.trees), l.inner)
		}
		seen := map[string]bool{}
		for _, z := range l.trees {
			if err := z.Check(); err != nil {
				t.Error(err)
			}
			seen[z.Shape()] = true
		}
		if len(seen) != trees {
			t.Errorf("%d words: %d different trees", n, len(seen))
		}
	}
}

// What is said of a sentence is what the slow way says, which evaluates every state from nothing and scores trees in
// double precision. For both kinds of grammars, and not by accident: a uniform policy would be further away.
func TestList(t *testing.T) {
	seed := testkit.Seed(t)
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		p := newTiny(t, seed, kind)
		var all []treebank.Sentence
		var nll, bound, tv, kl, worst float64
		for _, x := range list(t, p, kind, seed, 2, 3, 4, 5) {
			all = append(all, x.sentence, x.sentence)
			one := gfn.TotalVariation(x.q(), gfn.Normalise(x.logR))
			kl += 2 * stat.KullbackLeibler(x.q(), gfn.Normalise(x.logR))
			nll, bound, tv, worst = nll-2*x.logX(), bound-2*x.bound(), tv+2*one, max(worst, one)
		}
		got, err := p.List(all)
		if err != nil {
			t.Fatal(err)
		}
		tokens := float64(Tokens(all))
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"nats per word", got.NLL, nll / tokens}, {"bound", got.Bound, bound / tokens},
			{"total variation", got.TotalVariation, tv / float64(len(all))}, {"the worst", got.Worst, worst},
			{"divergence", got.KL, kl / tokens},
		} {
			if !(math.Abs(c.got-c.want) <= 1e-5) { // the network is one of single precision
				t.Errorf("%s, %s: %v, want %v", kind, c.what, c.got, c.want)
			}
		}
		if got.Sentences != len(all) || !(got.Bound > got.NLL+1e-3) || !(got.TotalVariation > 0.01 && got.TotalVariation < got.Worst) {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}

// Sentences of too many forests together are not listed, however short each is; one that occurs often counts once.
func TestListOfMany(t *testing.T) {
	p := newTiny(t, testkit.Seed(t), grammar.CFG)
	const words = 6
	var same, others []treebank.Sentence
	for i := range 1 + mostListed/countForests(words, p.net.Env(2).Labels) {
		x := make([]int32, words)
		same = append(same, treebank.Sentence{Words: x[:3]})
		for j := range x {
			x[j], i = int32(i%3), i/3
		}
		others = append(others, treebank.Sentence{Words: x})
	}
	if got, err := p.List(others); got != nil || err != nil {
		t.Errorf("%d sentences are listed: %v, error %v", len(others), got, err)
	}
	for i := range same {
		same[i].Words = same[0].Words
	}
	if got, err := p.List(same); err != nil || got == nil || got.Sentences != len(same) {
		t.Errorf("one sentence many times is listed as %v, error %v", got, err)
	}
}

// overShapes makes a tiny GFlowNet one over shapes.
func overShapes(p *GFlowNet) *GFlowNet {
	p.net.Grammar = p.net.LogProbs
	return p
}

// What is said of a sentence by a GFlowNet over shapes is what the slow way says: the sum over labels is the inside
// algorithm's, the posterior of a shape that of all its labelled trees, and the policy is evaluated from nothing.
func TestListShapes(t *testing.T) {
	seed := testkit.Seed(t)
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		p := newTiny(t, seed, kind)
		withLabels := list(t, p, kind, seed, 2, 3, 4, 5)
		p = overShapes(newTiny(t, seed, kind))
		for _, x := range withLabels {
			n := len(x.sentence.Words)
			all, err := listForests(simd(), p.net.Env(n))
			if err != nil {
				t.Fatal(err)
			}
			logR := map[string][]float64{}
			for i, z := range x.trees {
				bare := &grammar.Tree{Left: z.Left, Right: z.Right, Label: make([]int, n-1)}
				logR[bare.Shape()] = append(logR[bare.Shape()], x.logR[i])
			}
			var shapes []float64
			for _, z := range all.trees {
				shapes = append(shapes, gfn.LogSumExp(logR[z.Shape()]))
			}
			tables, err := all.Tabulate(simd(), p.net.Set.Store, em.Phi, forest.Policy{Network: p.net.Network}, []*tensors.Tensor{
				tensors.FromFlatDataAndDimensions(x.sentence.Words, 1, n), tensors.FromFlatDataAndDimensions([]int32{int32(n)}, 1),
			})
			if err != nil {
				t.Fatal(err)
			}
			q, posterior := all.Terminating(tables[0]), gfn.Normalise(shapes)
			got, err := p.List([]treebank.Sentence{x.sentence})
			if err != nil {
				t.Fatal(err)
			}
			tokens := float64(n + 1)
			for _, c := range []struct {
				what      string
				got, want float64
			}{
				{"nats per word", got.NLL, -x.logX() / tokens}, {"bound", got.Bound, -all.ELBO(tables[0], shapes) / tokens},
				{"total variation", got.TotalVariation, gfn.TotalVariation(q, posterior)},
				{"divergence", got.KL, stat.KullbackLeibler(q, posterior) / tokens},
			} {
				if !(math.Abs(c.got-c.want) <= 1e-5) { // the network is one of single precision
					t.Errorf("%s, %d words, %s: %v, want %v", kind, n, c.what, c.got, c.want)
				}
			}
			if n > 3 && !(got.KL > 1e-4 && got.Bound > got.NLL) {
				t.Errorf("%s: %+v", kind, got)
			}
		}
	}
}

// A GFlowNet over shapes hands on labelled trees: given the shapes that it draws, labels have their posterior. By
// chi-square, with a false-alarm rate of 1e-5; labels that are uniform are told from that.
func TestShapesAreLabelled(t *testing.T) {
	seed := testkit.Seed(t)
	const copies = 3000
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		x := list(t, newTiny(t, seed, kind), kind, seed, 3)[0]
		p := overShapes(newTiny(t, seed, kind))
		p.Rows = copies
		same := make([]treebank.Sentence, copies)
		for i := range same {
			same[i] = x.sentence
		}
		found, err := p.Parse(same, GFNSample, seed)
		if err != nil {
			t.Fatal(err)
		}
		counts, posterior, uniform := map[string]int{}, map[string]float64{}, map[string]float64{}
		bracket := func(z *grammar.Tree) int { return z.Left[1] } // which of the two shapes over three words
		chosen := bracket(found[0].Tree)
		total, trees := 0.0, 0.0
		for i, z := range x.trees {
			if bracket(z) == chosen {
				posterior[z.Shape()] = math.Exp(x.logR[i])
				total, trees = total+math.Exp(x.logR[i]), trees+1
			}
		}
		for k := range posterior {
			posterior[k] /= total
			uniform[k] = 1 / trees
		}
		for _, f := range found {
			if bracket(f.Tree) == chosen {
				counts[f.Tree.Shape()]++
			}
		}
		if q := testkit.ChiSquare(counts, posterior); !(q > 1e-5) {
			t.Errorf("%s: labels %v, want %v: improbable by %.1g", kind, counts, posterior, q)
		}
		if q := testkit.ChiSquare(counts, uniform); q > 1e-5 {
			t.Errorf("%s: uniform labels pass", kind)
		}
	}
}
