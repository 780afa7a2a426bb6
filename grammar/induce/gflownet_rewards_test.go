package induce

import (
	"fmt"
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

func closeTo(t testing.TB, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within*(1+math.Abs(want))) {
		t.Errorf("%s is %.10g, want %.10g", what, got, want)
	}
}

// TestEnergiesInGraphs compares energies of random trees of random lengths, padded, with those of the host, in both precisions.
func TestEnergiesInGraphs(t *testing.T) {
	t.Parallel()
	const n, rows = 9, 40
	seed := testkit.Seed(t)
	r := rng.New(seed, "trees")
	trees, lengths := make([]*grammar.Tree, rows), make([]int32, rows)
	for i := range trees {
		all := shapesOf(2 + r.IntN(6))
		z := *all[r.IntN(len(all))]
		z.Label = make([]int, len(z.Left))
		for m := range z.Label {
			z.Label[m] = r.IntN(5) // energies do not see it
		}
		trees[i], lengths[i] = &z, int32(z.Words())
	}
	p := spreadEBM(rng.New(seed, "prior"), 5)
	type in struct {
		Parameters, Lengths *tensors.Tensor
		Trees               grammar.TreeTensors
	}
	type nodes struct {
		Parameters, Lengths *Node
		Trees               grammar.Trees
	}
	type energy[T any] struct{ Energy T }
	run := func(parameters *tensors.Tensor) *tensors.Tensor {
		out, err := program.Once[in, energy[*tensors.Tensor]](simd(), nil, "energies", func(in nodes) energy[*Node] {
			return energy[*Node]{energies(in.Parameters, in.Trees, in.Lengths)}
		}, in{parameters, tensors.FromValue(lengths), packByGap(trees, n)})
		if err != nil {
			t.Fatal(err)
		}
		return out.Energy
	}
	double, single := tensors.MustCopyFlatData[float64](run(tensors.FromValue(p))), widened(run(tensors.FromValue(float32s(p))))
	least, most := math.Inf(1), math.Inf(-1)
	for i, z := range trees {
		want := newEBMNet(p).energy(grammar.NewChainTree(z))
		closeTo(t, fmt.Sprintf("energy of %s", z.Shape()), double[i], want, 1e-12)
		closeTo(t, fmt.Sprintf("energy of %s in single precision", z.Shape()), single[i], want, 1e-5)
		least, most = min(least, want), max(most, want)
	}
	if !(most-least > 0.1) {
		t.Errorf("all energies are between %g and %g", least, most)
	}
}

// TestRewards compares the rewards that programs compute for all trees of two sentences with those of the parser, in double precision, with a
// prior on the host and without.
func TestRewards(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	parser, err := NewParser(simd(), referenceGrammar(t))
	if err != nil {
		t.Fatal(err)
	}
	defer parser.Close()
	prior := spreadEBM(rng.New(seed, "prior"), 4)
	for _, coldness := range []float32{0, 0.3} {
		config := smallGFN()
		config.EBM = coldness > 0
		c := newChain(t, tinySession(t, config), seed, 80, []int32{2, 0, 1, 1}, []int32{0, 1, 2})
		if config.EBM {
			c.prior, c.coldness = float32s(prior), coldness
		}
		for s, logR := range c.aim(t) {
			same := slices.Repeat([]treebank.Sentence{{Words: c.sentences[s]}}, len(c.trees[s]))
			scores, err := parser.LogTrees(same, c.trees[s])
			if err != nil {
				t.Fatal(err)
			}
			for i, z := range c.trees[s] {
				want := scores[i] - float64(coldness)*newEBMNet(prior).energy(grammar.NewChainTree(z))
				closeTo(t, fmt.Sprintf("log R of %s, with %g of the prior", z.Shape(), coldness), logR[i], want, 1e-5)
			}
		}
	}
}
