package em

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
)

// newPosterior returns the posterior of a toy's learner after a few steps, and what it is by brute force.
func newPosterior(t *testing.T, m toy, n int) (*Posterior, *Learner) {
	t.Helper()
	l := newLearner(t, newBackend(t), toySpec(m))
	steps(t, l, n)
	p, err := l.Posterior()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, l
}

// Samples are distributed as q(z|x) says, which brute force computes from the policy's table: a chi-square test for each of
// eight observations at 1e-5, so false alarms are 8e-5. Samples of an observation are not those of another, which the same
// test would find.
func TestPosteriorSample(t *testing.T) {
	seed := testkit.Seed(t)
	m := newToy(seed, dtypes.Float64)
	p, l := newPosterior(t, m, 20)
	q, logP := tablePolicy{m}.posterior(t, l.Store()), m.learned(t, l.Store())
	const n = 3000
	p.Rows = 500 // so that there are several batches and several calls
	s, err := p.Sample(n, m.all())
	if err != nil {
		t.Fatal(err)
	}
	tokens := tensors.MustCopyFlatData[int32](s.Z[0])
	least := 1.0
	for x := range q {
		counts, probabilities, of := map[string]int{}, map[string]float64{}, map[string]float64{}
		for z, pz := range q[x] {
			probabilities[fmt.Sprint(z)], of[fmt.Sprint((z+1)%len(q[x]))] = pz, pz
		}
		for i := range n {
			at := (x*n + i) * 2
			z := int(tokens[at] + 2*tokens[at+1])
			counts[fmt.Sprint(z)]++
			if d := math.Abs(s.LogJoint[x][i] - logP[x][z]); !(d < 1e-12) {
				t.Fatalf("log p(x,z) is off by %g", d)
			}
			if d := math.Abs(s.LogWeights[x][i] - logP[x][z] + math.Log(q[x][z])); !(d < 1e-12) {
				t.Fatalf("a log-weight is off by %g", d)
			}
		}
		if p := testkit.ChiSquare(counts, probabilities); !(p > 1e-5) {
			t.Errorf("observation %d: so great a distance from q has probability %g", x, p)
		}
		least = min(least, testkit.ChiSquare(counts, of))
	}
	if least > 1e-5 {
		t.Errorf("latents that are all taken for the next one would pass: %g", least)
	}
	estimates, err := p.LogLikelihood(n, m.all())
	if err != nil {
		t.Fatal(err)
	}
	for x, e := range estimates {
		want := gfn.EstimateLogZ(s.LogWeights[x])
		if d := math.Abs(e.LogZ-want.LogZ) + math.Abs(e.ELBO-want.ELBO) + math.Abs(e.StdErr-want.StdErr) + math.Abs(e.ESS/want.ESS-1); !(d < 1e-9) {
			t.Errorf("observation %d: %+v part by part, %+v at once", x, e, want)
		}
	}
}
