package gfn

import "math"

// Estimate is an importance-sampled log Z(x), with what tells whether to trust it.
type Estimate struct {
	LogZ float64
	// StdErr is the standard error of LogZ to first order: the relative standard error of the mean weight. It is 0 for a
	// single sample, which says nothing about it.
	StdErr float64
	// ESS is the effective sample size (sum w)^2 / sum w^2, between 1 and the number of samples; 0 if all weights are 0.
	ESS float64
	// ELBO is the mean log-weight, a lower bound of log Z in expectation.
	ELBO float64
}

// EstimateLogZ summarises the log-weights of independent trajectories of one observation.
func EstimateLogZ(logW []float64) Estimate {
	var w Weights
	w.Add(logW...)
	return w.Estimate()
}

// Weights adds up the log-weights of one observation, part by part, without keeping them.
type Weights struct {
	n       float64
	logSum  float64 // of the weights
	squares float64 // of the weights, each by their sum
	mean    float64 // of the log-weights
}

// Add counts more log-weights.
func (w *Weights) Add(logW ...float64) {
	if len(logW) == 0 {
		return
	}
	part := Weights{n: float64(len(logW)), logSum: LogSumExp(logW)}
	for _, l := range logW {
		part.mean += l / part.n
		if !math.IsInf(part.logSum, -1) {
			share := math.Exp(l - part.logSum)
			part.squares += share * share
		}
	}
	if w.n == 0 {
		*w = part
		return
	}
	all := Weights{n: w.n + part.n, logSum: logAddExp(w.logSum, part.logSum)}
	all.mean = w.mean*(w.n/all.n) + part.mean*(part.n/all.n)
	if !math.IsInf(all.logSum, -1) {
		a, b := math.Exp(w.logSum-all.logSum), math.Exp(part.logSum-all.logSum)
		all.squares = w.squares*a*a + part.squares*b*b
	}
	*w = all
}

// Estimate is what the weights so far say.
func (w *Weights) Estimate() Estimate {
	n := w.n
	e := Estimate{LogZ: w.logSum - math.Log(n), ESS: 1 / w.squares, ELBO: w.mean}
	switch {
	case w.squares == 0: // all weights are 0
		e.ESS, e.StdErr = 0, math.NaN()
	case n > 1:
		// The weights n*w have mean 1, if they are divided by their sum, and sample variance n^2/(n-1) (squares - 1/n).
		e.StdErr = math.Sqrt(math.Max(0, n*n/(n-1)*(w.squares-1/n)) / n)
	}
	return e
}
