package gfn

import "math"

// Estimate is an importance-sampled log Z(x), with what tells whether to trust it.
type Estimate struct {
	LogZ float64
	// StdErr is the standard error of LogZ to first order: the relative standard error of the mean weight.
	StdErr float64
	// ESS is the effective sample size (sum w)^2 / sum w^2, between 1 and the number of samples.
	ESS float64
	// ELBO is the mean log-weight, a lower bound of log Z in expectation.
	ELBO float64
}

// EstimateLogZ summarises the log-weights of independent trajectories of one observation.
func EstimateLogZ(logW []float64) Estimate {
	n := float64(len(logW))
	logSum := LogSumExp(logW)
	var squares, elbo float64
	for _, l := range logW {
		w := math.Exp(l - logSum) // sums to 1
		squares += w * w
		elbo += l / n
	}
	e := Estimate{LogZ: logSum - math.Log(n), ESS: 1 / squares, ELBO: elbo}
	if n > 1 {
		// The weights n*w have mean 1 and sample variance n^2/(n-1) (squares - 1/n).
		e.StdErr = math.Sqrt(math.Max(0, n*n/(n-1)*(squares-1/n)) / n)
	}
	return e
}
