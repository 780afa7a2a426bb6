package parse

import (
	"math"
	"testing"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
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
		l, err := listForests(simd(), n, 2)
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
		var nll, bound, tv, worst float64
		for _, x := range list(t, p, kind, seed, 2, 3, 4, 5) {
			all = append(all, x.sentence, x.sentence)
			one := gfn.TotalVariation(x.q(), gfn.Normalise(x.logR))
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
