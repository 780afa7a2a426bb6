package mixture

import (
	"cmp"
	"math/rand/v2"
)

// DefaultRate is the learning rate of the gradient M-step in the paper's experiment.
const DefaultRate = 0.1

var _ Method = PerfectSampler{}

// PerfectSampler is GFlowNet-EM without its GFlowNet: every iteration draws one pair per point from the very target
// of the policy, the clipped posterior, and makes an M-step on the sample. It is what GFlowNet-EM tends to as its
// E-steps are trained longer, and what the paper's figure for GFlowNet-EM amounts to.
type PerfectSampler struct {
	Problem    Problem
	Iterations int     // 0 means 60
	Clip       float64 // floor of the log-reward; 0 means DefaultClip, math.Inf(-1) none
	ClosedForm bool    // M-step to the mean of the sample, as in ExactEM, instead of one gradient step
	Rate       float64 // of the gradient step; 0 means DefaultRate
	Trace      bool    // whether to keep the means of every iteration
}

// Fit runs EM on samples drawn from r.
func (m PerfectSampler) Fit(x []Point, start Means, r *rand.Rand) Fit {
	p := m.Problem.filled()
	z := make([]Pair, len(x))
	return iterate(start, m.Iterations, m.Trace, func(mu Means, report bool) (logLik float64) {
		p.eachPosterior(x, mu, m.Clip, func(n int, q []float64, _ float64) {
			k := draw(q, r)
			z[n] = Pair{k / p.Petals, k % p.Petals}
		})
		if m.ClosedForm {
			p.Maximise(mu, x, z)
		} else {
			p.Descend(mu, x, z, m.Rate)
		}
		if report {
			logLik = p.LogLikelihood(x, mu)
		}
		return logLik
	})
}

// Maximise sets each mean to that of x - o_j over the points assigned to it by z, and a mean without any to (1, 1).
func (p Problem) Maximise(mu Means, x []Point, z []Pair) {
	p.assigned(x, z, len(mu)).maximise(mu)
}

// Descend makes one step of gradient descent on the mean over points of |x - mu_i - o_j|² / (2 sigma²), with (i, j)
// given by z. A rate of 0 means [DefaultRate]. In closed form
//
//	mu_i += rate/sigma² (N_i/N) (mean of x - o_j over the N_i points assigned to i  -  mu_i)
//
// which for the paper's sigma relaxes balanced clusters by 0.4, none by more than 1.6, and leaves an empty one.
func (p Problem) Descend(mu Means, x []Point, z []Pair, rate float64) {
	p.assigned(x, z, len(mu)).descend(mu, cmp.Or(rate, DefaultRate), p.precision(), len(x))
}

// assigned returns the statistics of an assignment of points to pairs.
func (p Problem) assigned(x []Point, z []Pair, super int) *stats {
	offsets := p.Offsets()
	s := newStats(super)
	for n, zn := range z {
		s.add(zn.I, 1, x[n].Sub(offsets[zn.J]))
	}
	return s
}
