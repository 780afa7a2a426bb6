package parse

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/treebank"
)

// sigmas is how many standard errors an estimate may be off: a normal number is further away once in 150,000 times, and
// the tests here look at two dozen of them.
const sigmas = 4.5

// far says whether an estimate and a number are too far apart.
func far(m Measure, want float64) bool { return !(math.Abs(m.PerWord-want) <= sigmas*m.Error) }

// What an evaluation says of a network is what enumeration says of it: bound, divergences and flow.
func TestBounds(t *testing.T) {
	seed := testkit.Seed(t)
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		p := newTiny(t, seed, kind)
		all := list(t, p, kind, seed, 2, 4, 5, 5)
		const copies = 60 // of each sentence, every one with trajectories of its own
		var x []treebank.Sentence
		var logX []float64
		for range copies {
			for _, l := range all {
				x, logX = append(x, l.sentence), append(logX, l.logX())
			}
		}
		p.Rows = len(x)
		flows, err := p.LogLikelihoods(x)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if want := all[i%len(all)].Flow[0]; !(math.Abs(flows[i]-want) <= 1e-4) { // single precision
				t.Errorf("%s: the flow estimate of sentence %d is %v, want %v", kind, i, flows[i], want)
			}
		}
		tried, err := p.drawAll(x, drawPlan{samples: 32, trees: 16, orders: 12}, seed)
		if err != nil {
			t.Fatal(err)
		}
		r := newBounds(x, logX, tried)
		r.setFlows(x, logX, flows)

		// Per word, as sums over the different sentences.
		var tokens, exact, bound, broken, flow, trees, reversed float64
		for _, l := range all {
			tokens += float64(len(l.sentence.Words)) + 1
			exact, bound, flow = exact-l.logX(), bound-l.bound(), flow-l.Flow[0]
			trees += stat.KullbackLeibler(l.q(), gfn.Normalise(l.logR))
			reversed += stat.KullbackLeibler(gfn.Normalise(l.logR), l.q())
			wrong := gfn.Table{LogPF: l.LogPF}
			for _, v := range l.LogPB {
				wrong.LogPB = append(wrong.LogPB, -v)
			}
			broken -= l.ELBO(wrong, l.logR)
		}
		if far(r.Bound, bound/tokens) {
			t.Errorf("%s: bound %+v, want %v", kind, r.Bound, bound/tokens)
		}
		if !far(r.Bound, broken/tokens) {
			t.Errorf("%s: a bound with log P_B of the wrong sign, %v, would pass for %+v", kind, broken/tokens, r.Bound)
		}
		if !(math.Abs(r.Flow.PerWord-flow/tokens) <= 1e-4) || r.Flow.Error != 0 {
			t.Errorf("%s: flow estimate %+v, want %v", kind, r.Flow, flow/tokens)
		}
		if far(r.KLTrajectories, (bound-exact)/tokens) {
			t.Errorf("%s: KL over trajectories %+v, want %v", kind, r.KLTrajectories, (bound-exact)/tokens)
		}
		if wrong := reversed / tokens; !far(r.KLTreesLow, wrong) || !far(r.KLTreesHigh, wrong) {
			t.Errorf("%s: the other divergence, %v, would pass for %+v and %+v", kind, wrong, r.KLTreesLow, r.KLTreesHigh)
		}
		between(t, string(kind), r.KLTreesLow, trees/tokens, r.KLTreesHigh)
		// What the orders of trees add to the divergence over trajectories is little; it is compared tree by tree.
		added := func(of [][]float64) Measure {
			return measure(x, func(i int) (float64, float64) {
				var d []float64
				for k, logQ := range of[i] {
					d = append(d, -tried.LogW[i][k]-logQ)
				}
				return average(d)
			})
		}
		least, most := added(tried.high), added(tried.low)
		between(t, string(kind)+", orders", least, (bound-exact-trees)/tokens, most)
		if !(least.PerWord > sigmas*least.Error) || !(most.PerWord < 2*least.PerWord) {
			t.Errorf("%s: orders add from %+v to %+v, which says nothing", kind, least, most)
		}
		// All samples together are nearer to the truth than one, and on the same side.
		if w := r.ImportanceBound; !(w.PerWord < r.Bound.PerWord) || !(w.PerWord >= exact/tokens-sigmas*w.Error) {
			t.Errorf("%s: importance-weighted bound %+v, bound %+v, exact %v", kind, w, r.Bound, exact/tokens)
		}
		if got, want := r.Bound.PerSentence*float64(len(x)), r.Bound.PerWord*tokens*copies; !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%s: bound %+v of %d sentences and %v words", kind, r.Bound, len(x), tokens*copies)
		}
	}
}

// between fails unless a number is between two estimates, but for their errors.
func between(t *testing.T, what string, low Measure, want float64, high Measure) {
	t.Helper()
	t.Logf("%s: %.5f is between %.5f ± %.5f and %.5f ± %.5f", what, want, low.PerWord, low.Error, high.PerWord, high.Error)
	if !(low.PerWord <= want+sigmas*low.Error) || !(high.PerWord >= want-sigmas*high.Error) {
		t.Errorf("%s: %v is not between %+v and %+v", what, want, low, high)
	}
}

// Trees of which all trajectories are known have a known q(z): with at most four words, all trees but those of two
// pairs have one order.
func TestLogQ(t *testing.T) {
	seed := testkit.Seed(t)
	p := newTiny(t, seed, grammar.CFG)
	p.Rows, p.Bucket = 50, 5
	for _, l := range list(t, p, grammar.CFG, seed, 2, 3, 4) {
		same := make([]treebank.Sentence, len(l.trees))
		for i := range same {
			same[i] = l.sentence
		}
		const orders = 20
		got, err := p.LogQ(same, l.trees, orders, seed)
		if err != nil {
			t.Fatal(err)
		}
		pairs, off := 0, 0.0
		for i, want := range l.q() {
			z := l.trees[i]
			if n := z.Words(); n == 4 && z.Left[2] >= n && z.Right[2] >= n {
				pairs++
				off += math.Exp(got[i])/want - 1
				continue
			}
			if !(math.Abs(got[i]-math.Log(want)) <= 1e-4) { // single precision
				t.Errorf("%s: log q %v, want %v", z.Shape(), got[i], math.Log(want))
			}
		}
		if pairs == 0 {
			continue
		}
		// P_F/P_B of one of two orders is at most 1/P_B times q; its deviation is that of P_B's odds.
		if mean := off / float64(pairs); !(math.Abs(mean) <= sigmas*l.oddsDeviation(t)/math.Sqrt(float64(pairs*orders))) {
			t.Errorf("%d trees of two pairs: q is off by %v on average, at a deviation of %v", pairs, mean, l.oddsDeviation(t))
		}
	}
}

// oddsDeviation is the greatest standard deviation of P_F/P_B/q over the two orders of a tree of two pairs.
func (l listed) oddsDeviation(t *testing.T) (most float64) {
	q := l.q()
	for i, z := range l.trees {
		if z.Words() != 4 || z.Left[2] < 4 || z.Right[2] < 4 {
			continue
		}
		swapped := &grammar.Tree{
			Left: []int{2, 0, 5}, Right: []int{3, 1, 4}, Label: []int{z.Label[1], z.Label[0], z.Label[2]},
		}
		variance := 0.0
		for _, order := range []*grammar.Tree{z, swapped} {
			logPF, logPB := l.replay(t, order)
			variance += math.Exp(logPB) * math.Pow(math.Exp(logPF-logPB)/q[i]-1, 2)
		}
		most = max(most, math.Sqrt(variance))
	}
	return most
}

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{-5, 0, 1, 900}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 0.8}, // 1 - 6*4/(5*24)
		{[]float64{1, 1, 2}, []float64{1, 2, 3}, math.Sqrt(0.75)}, // ranks 0.5, 0.5, 2
	} {
		if got := spearman(c.x, c.y); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("%v and %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
	if !math.IsNaN(spearman([]float64{1, 2}, []float64{3, 3})) {
		t.Error("a constant has a correlation")
	}
}
