package mixture

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gfnem/gfnem/rng"
)

// energy is the loss of the gradient M-step, the mean of |x - mu_i - o_j|² / (2 sigma²).
func energy(p Problem, mu Means, x []Point, z []Pair) (e float64) {
	p = p.filled()
	for n, zn := range z {
		d := x[n].Sub(mu[zn.I]).Sub(p.Offsets()[zn.J])
		e += (d[0]*d[0] + d[1]*d[1]) / (2 * p.Sigma * p.Sigma) / float64(len(z))
	}
	return e
}

// assigned returns the statistics of an assignment of points to pairs.
func assigned(p Problem, x []Point, z []Pair, super int) *stats {
	s := newStats(super)
	for n, zn := range z {
		s.add(zn.I, 1, x[n].Sub(p.Offsets()[zn.J]))
	}
	return s
}

// descend moves the means by a step with the pairs given.
func descend(p Problem, mu Means, x []Point, z []Pair, rate float64) {
	assigned(p, x, z, len(mu)).descend(mu, rate, p.precision(), len(x))
}

func TestMSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, x, start := small(t)
		z := p.Posterior(x, start, math.Inf(-1)).Argmax()
		rate := rapid.Float64Range(0.01, 0.5).Draw(t, "rate")

		// descend follows the gradient, here by central differences, exact on a quadratic.
		got, want := slices.Clone(start), slices.Clone(start)
		descend(p, got, x, z, rate)
		for i := range start {
			for c := range 2 {
				const h = 1e-2
				up, down := slices.Clone(start), slices.Clone(start)
				up[i][c] += h
				down[i][c] -= h
				want[i][c] -= rate * (energy(p, up, x, z) - energy(p, down, x, z)) / (2 * h)
			}
		}
		if d := cmp.Diff(want, got, near(1e-8)); d != "" {
			t.Fatalf("gradient step (-finite differences +got):\n%s", d)
		}

		// The closed form is its minimum where a supercluster has points, (1,1) where it has none.
		best := slices.Clone(start)
		assigned(p, x, z, len(best)).maximise(best)
		rest := slices.Clone(best)
		descend(p, rest, x, z, rate)
		if d := cmp.Diff(best, rest, near(1e-6)); d != "" {
			t.Fatalf("the closed form still has a gradient (-before +after):\n%s", d)
		}
		for i := range best {
			if !slices.ContainsFunc(z, func(z Pair) bool { return z.I == i }) && (best[i] != Point{1, 1} || got[i] != start[i]) {
				t.Errorf("empty supercluster: %v in closed form, from %v to %v by gradient", best[i], start[i], got[i])
			}
		}
	})
}

// Balanced clusters relax by 0.4 at the paper's rate.
func TestDescendRelaxation(t *testing.T) {
	p := Problem{}
	var x []Point
	var z []Pair
	for k, c := range p.Centres(p.TrueMeans()) {
		x, z = append(x, c), append(z, Pair{k / 4, k % 4})
	}
	mu := make(Means, 4)
	descend(p, mu, x, z, DefaultRate)
	for i, m := range p.TrueMeans() {
		if want := (Point{0.4 * m[0], 0.4 * m[1]}); cmp.Diff(want, mu[i], near(1e-12)) != "" {
			t.Errorf("mean %d moves from the origin to %v, want %v", i, mu[i], want)
		}
	}
}

func TestPerfectReport(t *testing.T) {
	d, start := Experiment{Points: 200}.Draw(0)
	m := PerfectSampler{Iterations: 3}
	fit := m.Fit(d.X, start, rng.New(1, "fit"))
	if want := (Problem{}).LogLikelihood(d.X, fit.Means); fit.LogLikelihood != want || len(fit.Trace) != 4 {
		t.Errorf("reported %v, want %v, the value at the final means", fit.LogLikelihood, want)
	}
	if diff := cmp.Diff(fit, m.Fit(d.X, start, rng.New(1, "fit"))); diff != "" {
		t.Errorf("the same random numbers give another fit:\n%s", diff)
	}
	if cmp.Equal(fit, m.Fit(d.X, start, rng.New(2, "fit"))) {
		t.Error("other random numbers give the same fit")
	}
}

// The clip brings back a mean that no point wants; without it the mean stays exactly where it is.
func TestClipRecoversLostMean(t *testing.T) {
	p := Problem{}
	d, _ := Experiment{Points: 1000}.Draw(0)
	start := p.TrueMeans()
	start[3] = Point{12, 12}
	logLikTrue := p.LogLikelihood(d.X, p.TrueMeans())

	clipped := PerfectSampler{Iterations: 200}.Fit(d.X, start, rng.New(1, "fit"))
	if !Reached(clipped.LogLikelihood, logLikTrue) {
		t.Errorf("with the clip: means %v, log-likelihood %v, true %v", clipped.Means, clipped.LogLikelihood, logLikTrue)
	}
	unclipped := PerfectSampler{Iterations: 200, Clip: math.Inf(-1)}.Fit(d.X, start, rng.New(1, "fit"))
	if unclipped.Means[3] != start[3] || Reached(unclipped.LogLikelihood, logLikTrue) {
		t.Errorf("without the clip: means %v, log-likelihood %v", unclipped.Means, unclipped.LogLikelihood)
	}
}
