package mixture

import (
	"math"
	"math/rand/v2"
	"slices"
)

var _ Method = MeanField{}

// MeanField is variational EM with the factorised posterior q(i) q(j): one coordinate sweep per iteration, from the
// q(j) of the iteration before and first from random ones.
type MeanField struct {
	Problem    Problem
	Iterations int // 0 means 60
}

// Fit runs mean-field EM. It draws the initial q(j) from r.
func (m MeanField) Fit(x []Point, start Means, r *rand.Rand) Fit {
	f := m.Problem.newFactors(len(x), len(start), r)
	s := newStats(len(start))
	return iterate(start, m.Iterations, func(mu Means, report bool) (logLik float64) {
		if report {
			logLik = m.Problem.LogLikelihood(x, mu)
		}
		f.sweep(x, mu)
		f.maximise(x, mu, s)
		return logLik
	})
}

// factors is a factorised posterior q(i) q(j) for each of N points.
type factors struct {
	problem Problem
	offsets []Point     // [P]
	super   [][]float64 // [N,S], q(i)
	petal   [][]float64 // [N,P], q(j)
}

// newFactors returns factors with q(j) the softmax of uniform noise, as in the published code, and uniform q(i),
// which the first sweep overwrites.
func (p Problem) newFactors(points, super int, r *rand.Rand) *factors {
	p = p.filled()
	f := &factors{
		problem: p,
		offsets: p.Offsets(),
		super:   slices.Collect(slices.Chunk(slices.Repeat([]float64{1 / float64(super)}, points*super), super)),
		petal:   slices.Collect(slices.Chunk(make([]float64, points*p.Petals), p.Petals)),
	}
	for _, q := range f.petal {
		for j := range q {
			q[j] = r.Float64()
		}
		softmax(q)
	}
	return f
}

// updateSuper sets q(i) of point n to its optimum given q(j), softmax_i of -|x - E[o_j] - mu_i|² / (2 sigma²): the
// variance of o_j under q(j), left out, is the same for every i.
func (f *factors) updateSuper(n int, x Point, mu Means) {
	logReward(f.super[n], x.Sub(expected(f.petal[n], f.offsets)), mu, f.problem.precision()/2, math.Inf(-1))
	softmax(f.super[n])
}

// updatePetal sets q(j) of point n to its optimum given q(i), softmax_j of -|x - E[mu_i] - o_j|² / (2 sigma²).
func (f *factors) updatePetal(n int, x Point, mu Means) {
	logReward(f.petal[n], x.Sub(expected(f.super[n], mu)), f.offsets, f.problem.precision()/2, math.Inf(-1))
	softmax(f.petal[n])
}

// sweep updates q(i), then q(j), of every point.
func (f *factors) sweep(x []Point, mu Means) {
	for n, xn := range x {
		f.updateSuper(n, xn, mu)
		f.updatePetal(n, xn, mu)
	}
}

// maximise is the M-step under the factorised posterior.
func (f *factors) maximise(x []Point, mu Means, s *stats) {
	s.reset()
	for n, xn := range x {
		residual := xn.Sub(expected(f.petal[n], f.offsets))
		for i, qi := range f.super[n] {
			s.add(i, qi, residual)
		}
	}
	s.maximise(mu)
}

// expected returns sum_k q[k] v[k].
func expected(q []float64, v []Point) (e Point) {
	for k, qk := range q {
		e[0] += qk * v[k][0]
		e[1] += qk * v[k][1]
	}
	return e
}
