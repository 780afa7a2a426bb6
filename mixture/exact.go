package mixture

import (
	"math"
	"math/rand/v2"
)

var _ Method = ExactEM{}

// ExactEM is expectation-maximisation with the posterior over all pairs. It never decreases the log-likelihood, but
// for the 1e-8 of its M-step.
type ExactEM struct {
	Problem    Problem
	Iterations int // 0 means 60
}

// Fit runs EM. It draws no random numbers; r may be nil.
func (m ExactEM) Fit(x []Point, start Means, _ *rand.Rand) Fit {
	p := m.Problem.filled()
	offsets := p.Offsets()
	s := newStats(len(start))
	return iterate(start, m.Iterations, func(mu Means, _ bool) (logLik float64) {
		s.reset()
		var sum float64
		p.eachPosterior(x, mu, math.Inf(-1), func(n int, q []float64, logZ float64) {
			sum += logZ
			for i := range s.mass {
				for j, qij := range q[i*p.Petals : (i+1)*p.Petals] {
					if qij != 0 {
						s.add(i, qij, x[n].Sub(offsets[j]))
					}
				}
			}
		})
		s.maximise(mu)
		return sum/float64(len(x)) + p.logNorm(len(mu))
	})
}

// stats are the sufficient statistics of the M-step, per supercluster: the sums of the weights given to it and of
// the weighted residuals x - o_j, of which mu_i is to be the mean.
type stats struct {
	mass []float64 // [S]
	sum  []Point   // [S]
}

func newStats(super int) *stats {
	return &stats{make([]float64, super), make([]Point, super)}
}

func (s *stats) reset() {
	clear(s.mass)
	clear(s.sum)
}

// add gives supercluster i a residual with weight w.
func (s *stats) add(i int, w float64, residual Point) {
	s.mass[i] += w
	s.sum[i][0] += w * residual[0]
	s.sum[i][1] += w * residual[1]
}

// maximise sets the means to the weighted means of the residuals. As in the published code 1e-8 is added to both
// numerator and denominator, which sends a supercluster without any mass to (1, 1).
func (s *stats) maximise(mu Means) {
	const tiny = 1e-8
	for i := range mu {
		d := s.mass[i] + tiny
		mu[i] = Point{(s.sum[i][0] + tiny) / d, (s.sum[i][1] + tiny) / d}
	}
}

// descend moves the means by one step of gradient descent on the mean over n points of the weighted
// |x - mu_i - o_j|² / (2 sigma²), with the given rate and precision 1/sigma². In closed form
//
//	mu_i += rate/sigma² (N_i/N) (mean of x - o_j over the N_i points assigned to i  -  mu_i)
//
// which for the paper's rate and sigma relaxes balanced clusters by 0.4, none by more than 1.6; an empty one stays.
func (s *stats) descend(mu Means, rate, precision float64, n int) {
	c := rate * precision / float64(n)
	for i := range mu {
		mu[i][0] += c * (s.sum[i][0] - s.mass[i]*mu[i][0])
		mu[i][1] += c * (s.sum[i][1] - s.mass[i]*mu[i][1])
	}
}
