package induce

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/grammar/prior"
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

// TestRewards compares the rewards that programs compute for all trees of two sentences with those of the parser, in
// double precision, with a prior on the host and without.
func TestRewards(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	parser := parse.NewExact(simd(), referenceGrammar(t))
	defer parser.Close()
	parameters := spreadPrior(rng.New(seed, "prior"), 4)
	for _, coldness := range []float32{0, 0.3} {
		config := smallGFN()
		config.Prior.On = coldness > 0
		c := newChain(t, tinySession(t, config), seed, 80, []int32{2, 0, 1, 1}, []int32{0, 1, 2})
		if config.Prior.On {
			c.prior, c.coldness = float32s(parameters), coldness
		}
		for s, logR := range c.aim(t) {
			same := slices.Repeat([]treebank.Sentence{{Words: c.sentences[s]}}, len(c.trees[s]))
			scores, err := parser.LogTrees(same, c.trees[s])
			if err != nil {
				t.Fatal(err)
			}
			for i, z := range c.trees[s] {
				want := scores[i] - float64(coldness)*prior.NewNet(parameters).Energy(chain.NewTree(z))
				closeTo(t, fmt.Sprintf("log R of %s, with %g of the prior", z.Shape(), coldness), logR[i], want, 1e-5)
			}
		}
	}
}
