package mixture_test

import (
	"fmt"
	"math"

	"github.com/gfnem/gfnem/mixture"
)

// Exact and mean-field EM on the same data sets and initial means: only the first finds the superclusters.
func ExampleExperiment() {
	e := mixture.Experiment{Points: 1000, Runs: 5}
	for _, m := range []mixture.Method{mixture.ExactEM{}, mixture.MeanField{}} {
		s := e.Summarise(e.Fit(m))
		fmt.Printf("%T: %d of %d reach the optimum, mean log-likelihood %.2f (as published %.2f)\n",
			m, s.Success.Successes, s.Success.Trials, s.Mean, s.Published)
	}
	// Output:
	// mixture.ExactEM: 5 of 5 reach the optimum, mean log-likelihood -2.79 (as published -5.60)
	// mixture.MeanField: 0 of 5 reach the optimum, mean log-likelihood -4.36 (as published -7.16)
}

// The pair that best explains a point, and how sure that is.
func ExampleProblem_Posterior() {
	var p mixture.Problem
	x := []mixture.Point{{0.75, 0.65}, {0.1, 0.7}}
	posterior := p.Posterior(x, p.TrueMeans(), math.Inf(-1))
	for n, z := range posterior.Argmax() {
		fmt.Printf("%v: supercluster %d, petal %d, with probability %.3f\n",
			x[n], z.I, z.J, posterior.Row(n)[z.I*posterior.Petals+z.J])
	}
	// Output:
	// [0.75 0.65]: supercluster 1, petal 2, with probability 1.000
	// [0.1 0.7]: supercluster 1, petal 2, with probability 0.906
}
