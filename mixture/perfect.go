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
}

// Fit runs EM on samples drawn from r.
func (m PerfectSampler) Fit(x []Point, start Means, r *rand.Rand) Fit {
	p := m.Problem.filled()
	offsets, s := p.Offsets(), newStats(len(start))
	return iterate(start, m.Iterations, func(mu Means, report bool) (logLik float64) {
		s.reset()
		p.eachPosterior(x, mu, m.Clip, func(n int, q []float64, _ float64) {
			k := draw(q, r)
			s.add(k/p.Petals, 1, x[n].Sub(offsets[k%p.Petals]))
		})
		if m.ClosedForm {
			s.maximise(mu)
		} else {
			s.descend(mu, cmp.Or(m.Rate, DefaultRate), p.precision(), len(x))
		}
		if report {
			logLik = p.LogLikelihood(x, mu)
		}
		return logLik
	})
}
