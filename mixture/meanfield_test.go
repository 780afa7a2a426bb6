package mixture

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gfnem/gfnem/rng"
)

// slowMeanField is one iteration of mean-field EM on one q(j) per point, which it updates, written out.
func slowMeanField(p Problem, x []Point, mu Means, petal [][]float64) Means {
	o := p.Offsets()
	weights := func(x Point, at []Point) []float64 {
		w, sum := make([]float64, len(at)), 0.0
		for k := range at {
			w[k] = p.density(x, at[k], Point{}, 1)
			sum += w[k]
		}
		for k := range w {
			w[k] /= sum
		}
		return w
	}
	num, den := make(Means, len(mu)), make([]float64, len(mu))
	for n, xn := range x {
		super := weights(xn.Sub(expected(petal[n], o)), mu)
		petal[n] = weights(xn.Sub(expected(super, mu)), o)
		m := expected(petal[n], o)
		for i, q := range super {
			den[i] += q
			num[i] = num[i].Add(Point{q * (xn[0] - m[0]), q * (xn[1] - m[1])})
		}
	}
	for i := range num {
		num[i] = Point{(num[i][0] + 1e-8) / (den[i] + 1e-8), (num[i][1] + 1e-8) / (den[i] + 1e-8)}
	}
	return num
}

func TestMeanFieldBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, x, mu := small(t)
		seed := rapid.Uint64().Draw(t, "noise")
		r := rng.New(seed, "noise")
		petal := make([][]float64, len(x))
		for n := range petal {
			petal[n] = make([]float64, p.Petals)
			var sum float64
			for j := range petal[n] {
				petal[n][j] = math.Exp(r.Float64())
				sum += petal[n][j]
			}
			for j := range petal[n] {
				petal[n][j] /= sum
			}
		}
		want := mu
		fit := MeanField{Problem: p, Iterations: 3}.Fit(x, mu, rng.New(seed, "noise"))
		for step, got := range fit.Trace {
			if d := cmp.Diff(want, got, near(1e-9)); d != "" {
				t.Fatalf("means after %d M-steps (-slow +fast):\n%s", step, d)
			}
			want = slowMeanField(p, x, want, petal)
		}
		if want := p.LogLikelihood(x, fit.Trace[2]); fit.LogLikelihood != want {
			t.Errorf("reported %v, want %v, the value before the last M-step", fit.LogLikelihood, want)
		}
	})
}

// No half-update and no M-step decreases the bound, which stays below N times the log-likelihood.
func TestMeanFieldBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, x, mu := small(t)
		f := p.newFactors(len(x), len(mu), rng.New(rapid.Uint64().Draw(t, "noise"), "noise"))
		s := newStats(len(mu))
		last := f.elbo(x, mu)
		check := func(what string) {
			bound, logLik := f.elbo(x, mu), float64(len(x))*p.LogLikelihood(x, mu)
			slack := 1e-10 * (1 + math.Abs(bound))
			if bound < last-slack {
				t.Fatalf("%s: bound falls from %v to %v", what, last, bound)
			}
			if bound > logLik+slack {
				t.Fatalf("%s: bound %v above the log-likelihood %v", what, bound, logLik)
			}
			last = bound
		}
		for range 5 {
			for n := range x {
				f.updateSuper(n, x[n], mu)
			}
			check("update of q(i)")
			for n := range x {
				f.updatePetal(n, x[n], mu)
			}
			check("update of q(j)")
			f.maximise(x, mu, s)
			last -= 1e-6 // what the 1e-8 of the M-step may cost on a supercluster with hardly any mass
			check("M-step")
		}
	})
}

// A half-update is not only better but best: moving mass from it decreases the bound.
func TestMeanFieldHalfUpdateIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, x, mu := small(t)
		f := p.newFactors(len(x), len(mu), rng.New(rapid.Uint64().Draw(t, "noise"), "noise"))
		f.updateSuper(0, x[0], mu)
		best := f.elbo(x, mu)
		q := f.super[0]
		from, to := rapid.IntRange(0, len(q)-1).Draw(t, "from"), rapid.IntRange(0, len(q)-1).Draw(t, "to")
		moved := q[from] * rapid.Float64Range(0, 1).Draw(t, "share")
		q[from] -= moved
		q[to] += moved
		if got := f.elbo(x, mu); got > best+1e-10*(1+math.Abs(best)) {
			t.Errorf("bound %v after q(i), %v with mass moved", best, got)
		}
	})
}

// With one petal there is nothing to factorise.
func TestMeanFieldSinglePetal(t *testing.T) {
	p := Problem{Petals: 1}
	for k := range 3 {
		d, start := Experiment{Problem: p, Points: 500}.Draw(k)
		exact := ExactEM{Problem: p}.Fit(d.X, start, nil)
		field := MeanField{Problem: p}.Fit(d.X, start, rng.New(1, "noise"))
		if diff := cmp.Diff(exact, field, near(1e-9)); diff != "" {
			t.Errorf("run %d (-exact +mean-field):\n%s", k, diff)
		}
	}
}

// elbo returns the lower bound sum_n E_q[log p(x_n,i,j)] + H(q_n(i)) + H(q_n(j)) on N times the log-likelihood, which
// no update of a factor or of the means decreases.
func (f *factors) elbo(x []Point, mu Means) float64 {
	scale, logNorm := f.problem.precision()/2, f.problem.logNorm(len(mu))
	var sum float64
	for n, xn := range x {
		qs, qp := f.super[n], f.petal[n]
		for i, qi := range qs {
			for j, qj := range qp {
				d := xn.Sub(mu[i]).Sub(f.offsets[j])
				sum += qi * qj * (logNorm - scale*(d[0]*d[0]+d[1]*d[1]))
			}
		}
		sum += entropy(qs) + entropy(qp)
	}
	return sum
}

func entropy(q []float64) (h float64) {
	for _, qk := range q {
		if qk > 0 {
			h -= qk * math.Log(qk)
		}
	}
	return h
}
