package mixture

import "math"

// Tolerance is how far below the log-likelihood of the true means, in nats per point, a run may end and still count
// as having reached the optimum. Bad local optima lie about 1 to 4 nats below.
const Tolerance = 0.05

// LogLikelihood returns the mean over x of log p(x) at the means mu (L_true):
//
//	log sum_ij 1/(S P) (2 pi sigma²)^-1 exp(-|x - mu_i - o_j|² / (2 sigma²))
func (p Problem) LogLikelihood(x []Point, mu Means) float64 {
	var sum float64
	p.eachPosterior(x, mu, math.Inf(-1), func(_ int, _ []float64, logZ float64) { sum += logZ })
	return sum/float64(len(x)) + p.logNorm(len(mu))
}

// PublishedOffset is what the log-likelihoods that the paper reports have too much, about -2.804 for its sigma: the
// same for every data set and method.
//
// Per coordinate the published code adds 2 log sigma + log 2 pi to the exponent where a Gaussian has
// -log sigma - log(2 pi)/2. Differences and standard deviations are as they should be; levels are not.
func (p Problem) PublishedOffset() float64 {
	const coordinates = 2
	logSigma, log2Pi := math.Log(p.filled().Sigma), math.Log(2*math.Pi)
	published := 2*logSigma + log2Pi
	right := -logSigma - log2Pi/2
	return coordinates * (published - right)
}

// Reached reports whether a log-likelihood is within [Tolerance] of that of the true means on the same data.
func Reached(logLik, logLikTrue float64) bool { return logLik >= logLikTrue-Tolerance }

// logNorm returns what log p(x) adds to the log of the sum of exp(-|x - mu_i - o_j|² / (2 sigma²)): the log of the
// uniform prior over pairs and of the Gaussian's constant.
func (p Problem) logNorm(super int) float64 {
	p = p.filled()
	return -math.Log(float64(super*p.Petals)) - math.Log(2*math.Pi*p.Sigma*p.Sigma)
}
