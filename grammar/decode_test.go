package grammar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
)

// parseTensors are Parses on the host.
type parseTensors struct {
	Trees           TreeTensors
	Tags, LogWeight *tensors.Tensor
}

// derive writes a tree with tags as an enumerated derivation is written.
func derive(g *Grammar, t *Tree) *derivation {
	n := t.Words()
	nodes := make([]*derivation, 2*n-1)
	for i := range n {
		nodes[i] = &derivation{symbol: len(g.Nonterminals) + t.Tags[i], start: i, width: 1}
	}
	for m := range n - 1 {
		l, r := nodes[t.Left[m]], nodes[t.Right[m]]
		nodes[n+m] = &derivation{t.Label[m], l.start, l.width + r.width, l, r, 0}
	}
	return nodes[2*n-2]
}

func TestViterbiAgainstEnumeration(t *testing.T) {
	forRandomGrammars(t, func(t *testing.T, r *rand.Rand, g *Grammar, n int, lengths []int32, p compiled[parseTensors]) {
		flat, words, lens := sentences(r, n, 3, lengths)
		out := p.run(t, g, words, lens)
		trees, weights := UnpackTrees(out.Trees, out.Tags, lengths), floats(out.LogWeight)
		for b, l := range lengths {
			all := enumerate(g, flat[b*n:][:l])
			best, byName := math.Inf(-1), map[string]float64{}
			for _, d := range all {
				best = max(best, d.logp)
			}
			for _, d := range all {
				if near(d.logp, best) {
					byName[d.full()] = d.logp
				}
			}
			got := weights[b]
			if len(all) == 0 {
				if !math.IsInf(got, -1) {
					t.Errorf("a sentence without derivations weighs %v", got)
				}
				continue
			}
			if err := trees[b].Check(); err != nil {
				t.Error(err)
				continue
			}
			name := derive(g, trees[b]).full()
			logp, ok := byName[name]
			if !ok || !near(got, best) || !near(logp, best) {
				t.Errorf("found %s of %v (in truth %v), best is %v", name, got, logp, best)
			}
		}
	}, Potentials.Viterbi)
}

func TestMBRAgainstEnumeration(t *testing.T) {
	forRandomGrammars(t, func(t *testing.T, r *rand.Rand, g *Grammar, n int, lengths []int32, p compiled[parseTensors]) {
		flat, words, lens := sentences(r, n, 3, lengths)
		out := p.run(t, g, words, lens)
		trees, weights := UnpackTrees(out.Trees, out.Tags, lengths), floats(out.LogWeight)
		for b, l := range lengths {
			all := enumerate(g, flat[b*n:][:l])
			total := logTotal(all)
			posterior := map[[2]int]float64{}
			for _, d := range all {
				d.walk(func(x *derivation) {
					if x.width > 1 {
						posterior[[2]int{x.start, x.width}] += math.Exp(d.logp - total)
					}
				})
			}
			best := 0.0
			for _, s := range allShapes(0, int(l)) {
				best = max(best, expected(s, posterior))
			}
			if err := trees[b].Check(); err != nil {
				t.Error(err)
				continue
			}
			own := expected(derive(g, trees[b]), posterior)
			if !near(weights[b], best) || !near(own, best) {
				t.Errorf("found %s of %v (in truth %v), best is %v", trees[b].Shape(), weights[b], own, best)
			}
		}
	}, Potentials.MBR)
}

// allShapes lists all binary trees over words.
func allShapes(start, width int) []*derivation {
	if width == 1 {
		return []*derivation{{start: start, width: 1}}
	}
	var out []*derivation
	for k := 1; k < width; k++ {
		for _, l := range allShapes(start, k) {
			for _, r := range allShapes(start+k, width-k) {
				out = append(out, &derivation{0, start, width, l, r, 0})
			}
		}
	}
	return out
}

func expected(d *derivation, posterior map[[2]int]float64) (sum float64) {
	d.walk(func(x *derivation) {
		if x.width > 1 {
			sum += posterior[[2]int{x.start, x.width}]
		}
	})
	return sum
}
