package main

import (
	"math"
	"testing"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// surprise says by how many standard errors the mean of p(x) as it was estimated, in units of the exact one, is not 1.
func surprise(got []gfn.Estimate, exact []float64) float64 {
	off, variance := 0.0, 0.0
	for i, e := range got {
		ratio := math.Exp(e.LogZ - exact[i])
		off += ratio - 1
		variance += ratio * ratio * e.StdErr * e.StdErr
	}
	return math.Abs(off) / math.Sqrt(variance)
}

// Both estimates of p(x) are right in expectation. A right one is called wrong with a probability below 1e-5: the means
// of thousands of weights are nearly normal. Estimates for other models are caught.
func TestLikelihood(t *testing.T) {
	const limit = 4.5
	e, truth := smallExperiment(t)
	exact := e.exactly(t, truth)
	sampled, err := e.sample(truth, care{updates: 30, samples: 200})
	if err != nil {
		t.Fatal(err)
	}
	all := newTabler(e.b, truth, small).of(e.test)
	annealed := anneal(all, e.seed, 100, 50)
	for name, got := range map[string][]gfn.Estimate{"sampled": sampled, "annealed": annealed} {
		t.Logf("%s: %.2f standard errors", name, surprise(got, exact))
		if s := surprise(got, exact); !(s < limit) {
			t.Errorf("%s: p(x) is off by %g standard errors", name, s)
		}
	}

	for i := range all {
		all[i].group[0][0] += 0.3 // log p(effects of the first group | no cause)
	}
	if s := surprise(anneal(all, e.seed, 100, 50), exact); s < limit {
		t.Errorf("annealing of another model is off by %g standard errors only", s)
	}
	wrong, err := e.sample(nn.NewStore(e.seed), care{updates: 30, samples: 200})
	if err != nil {
		t.Fatal(err)
	}
	if s := surprise(wrong, exact); s < limit {
		t.Errorf("samples of another model are off by %g standard errors only", s)
	}
}
