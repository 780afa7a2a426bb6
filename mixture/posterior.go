package mixture

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// DefaultClip is the floor of the log-reward in the published code: a component further than 1.58 from a point
// (at sigma 0.25) is as good as any other such component. The paper does not mention it, yet it decides the outcome:
// a point that far from every centre has a uniform target and pulls abandoned means back to the data.
const DefaultClip = -20

// Posterior is a distribution over pairs for each of N points.
type Posterior struct {
	Super, Petals int
	Q             []float64 // [N,S,P]
	LogZ          []float64 // [N], log of the sum over pairs of the (clipped) reward
}

// Posterior returns the target of a sampler whose reward is [Problem.LogReward] with the same clip: p(i,j|x) for -Inf.
func (p Problem) Posterior(x []Point, mu Means, clip float64) *Posterior {
	p = p.filled()
	pairs := len(mu) * p.Petals
	t := &Posterior{
		Super:  len(mu),
		Petals: p.Petals,
		Q:      make([]float64, len(x)*pairs),
		LogZ:   make([]float64, len(x)),
	}
	p.eachPosterior(x, mu, clip, func(n int, q []float64, logZ float64) {
		copy(t.Q[n*pairs:], q)
		t.LogZ[n] = logZ
	})
	return t
}

// LogReward returns the table [N,S,P] of log R(i,j|x) = max(-|x - mu_i - o_j|² / (2 sigma²), clip).
// The clip is 0 for [DefaultClip] and -Inf for none.
func (p Problem) LogReward(x []Point, mu Means, clip float64) []float64 {
	centres := p.Centres(mu)
	scale, floor := p.precision()/2, filledClip(clip)
	logR := make([]float64, len(x)*len(centres))
	for n, xn := range x {
		logReward(logR[n*len(centres):], xn, centres, scale, floor)
	}
	return logR
}

// Row returns the distribution over pairs of point n, (i, j) at i*P + j.
func (t *Posterior) Row(n int) []float64 {
	pairs := t.Super * t.Petals
	return t.Q[n*pairs : (n+1)*pairs : (n+1)*pairs]
}

// Argmax returns the most probable pair of each point, the first one in case of a tie.
func (t *Posterior) Argmax() []Pair {
	z := make([]Pair, len(t.LogZ))
	for n := range z {
		k := floats.MaxIdx(t.Row(n))
		z[n] = Pair{k / t.Petals, k % t.Petals}
	}
	return z
}

// Factorised returns the separate argmaxes of q(i) and q(j) after some mean-field sweeps at fixed means, from random
// q(j). The paper's Figure 2 shows one sweep.
func (p Problem) Factorised(x []Point, mu Means, sweeps int, r *rand.Rand) []Pair {
	f := p.newFactors(len(x), len(mu), r)
	for range sweeps {
		f.sweep(x, mu)
	}
	z := make([]Pair, len(x))
	for n := range z {
		z[n] = Pair{floats.MaxIdx(f.super[n]), floats.MaxIdx(f.petal[n])}
	}
	return z
}

// eachPosterior visits every point with its (clipped) posterior, valid until the visit ends, and log Z.
func (p Problem) eachPosterior(x []Point, mu Means, clip float64, visit func(n int, q []float64, logZ float64)) {
	centres := p.Centres(mu)
	scale, floor := p.precision()/2, filledClip(clip)
	q := make([]float64, len(centres))
	for n, xn := range x {
		logReward(q, xn, centres, scale, floor)
		top, sum := softmax(q)
		visit(n, q, top+math.Log(sum))
	}
}

// precision returns 1/sigma².
func (p Problem) precision() float64 {
	sigma := p.filled().Sigma
	return 1 / (sigma * sigma)
}

// filledClip takes 0 for the default: a log-reward is never positive, so that a clip at 0 would erase it.
func filledClip(clip float64) float64 { return cmp.Or(clip, DefaultClip) }

// logReward fills row with max(-scale |x - c|², floor) for each centre c.
func logReward(row []float64, x Point, centres []Point, scale, floor float64) {
	row = row[:len(centres)]
	for k, c := range centres {
		d0, d1 := x[0]-c[0], x[1]-c[1]
		row[k] = max(-scale*(d0*d0+d1*d1), floor)
	}
}

// softmax replaces logits by their softmax. The sum of their exponentials is exp(top) * sum.
//
// A term 100 nats below the largest, under 4e-44 of the sum, becomes 0: no sum of probabilities or M-step can tell.
func softmax(v []float64) (top, sum float64) {
	const negligible = -100
	top = slices.Max(v)
	for k, a := range v {
		if a -= top; a > negligible {
			v[k] = math.Exp(a)
			sum += v[k]
		} else {
			v[k] = 0
		}
	}
	norm := 1 / sum
	for k := range v {
		v[k] *= norm
	}
	return top, sum
}

// draw returns k with probability q[k].
func draw(q []float64, r *rand.Rand) int {
	u, last := r.Float64(), 0
	for k, qk := range q {
		if qk == 0 {
			continue
		}
		if u -= qk; u < 0 {
			return k
		}
		last = k
	}
	return last // the probabilities add up to a little less than one
}
