package mixture

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// slowEM is one iteration of exact EM, written out.
func slowEM(p Problem, x []Point, mu Means) Means {
	next := make(Means, len(mu))
	for i := range mu {
		num, den := Point{1e-8, 1e-8}, 1e-8
		for _, xn := range x {
			var px float64
			for _, m := range mu {
				for _, o := range p.Offsets() {
					px += p.density(xn, m, o, 1)
				}
			}
			for _, o := range p.Offsets() {
				q := p.density(xn, mu[i], o, 1) / px
				den += q
				num[0] += q * (xn[0] - o[0])
				num[1] += q * (xn[1] - o[1])
			}
		}
		next[i] = Point{num[0] / den, num[1] / den}
	}
	return next
}

func TestExactBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, x, mu := small(t)
		want := mu
		fit := ExactEM{Problem: p, Iterations: 3}.Fit(x, mu, nil)
		for step, got := range fit.Trace {
			if d := cmp.Diff(want, got, near(1e-9)); d != "" {
				t.Fatalf("means after %d M-steps (-slow +fast):\n%s", step, d)
			}
			want = slowEM(p, x, want)
		}
	})
}

func TestExactReport(t *testing.T) {
	d, start := Experiment{Points: 200}.Draw(0)
	first := slices.Clone(start)
	fit := ExactEM{Iterations: 4}.Fit(d.X, start, nil)
	if !slices.Equal(first, start) {
		t.Error("Fit changed the initial means")
	}
	if len(fit.Trace) != 5 || !slices.Equal(fit.Trace[0], start) || !slices.Equal(fit.Trace[4], fit.Means) {
		t.Errorf("the trace does not go from the initial to the final means: %v", fit.Trace)
	}
	want := Problem{}.LogLikelihood(d.X, fit.Trace[3])
	if math.Abs(fit.LogLikelihood-want) > 1e-12 {
		t.Errorf("reported %v, want %v, the value before the last M-step", fit.LogLikelihood, want)
	}
}

// decreases returns the largest fall of the log-likelihood along a trace.
func decreases(x []Point, trace []Means) (fall float64) {
	last := math.Inf(-1)
	for _, mu := range trace {
		logLik := Problem{}.LogLikelihood(x, mu)
		fall = max(fall, last-logLik)
		last = logLik
	}
	return fall
}

func TestExactMonotone(t *testing.T) {
	var wrong float64
	for k := range 5 {
		d, start := Experiment{Points: 1000, Seed: 3}.Draw(k)
		if fall := decreases(d.X, ExactEM{}.Fit(d.X, start, nil).Trace); fall > 1e-10 {
			t.Errorf("run %d: the log-likelihood falls by %g", k, fall)
		}

		// An M-step that takes the petals for one another is no EM.
		trace := []Means{start}
		for range 10 {
			z := Problem{}.Posterior(d.X, trace[len(trace)-1], math.Inf(-1)).Argmax()
			for n := range z {
				z[n].J = 3 - z[n].J
			}
			mu := make(Means, 4)
			assigned(Problem{}, d.X, z, len(mu)).maximise(mu)
			trace = append(trace, mu)
		}
		wrong = max(wrong, decreases(d.X, trace))
	}
	if wrong < 1e-3 {
		t.Errorf("a wrong M-step lets the log-likelihood fall by no more than %g", wrong)
	}
}

func TestExactFixedPoint(t *testing.T) {
	// Points at the very centres leave the true means in place, up to the overlap of the components, exp(-16).
	p := Problem{}
	centres := p.Centres(p.TrueMeans())
	fit := ExactEM{}.Fit(centres, p.TrueMeans(), nil)
	if d := cmp.Diff(p.TrueMeans(), fit.Means, near(2e-6)); d != "" {
		t.Errorf("noise-free points move the true means (-true +fit):\n%s", d)
	}

	// A sample moves them by its own error, about sigma/sqrt(N/4) = 0.008 per coordinate, and there EM rests.
	d, _ := Experiment{}.Draw(0)
	fit = ExactEM{}.Fit(d.X, p.TrueMeans(), nil)
	if d := cmp.Diff(p.TrueMeans(), fit.Means, near(0.04)); d != "" {
		t.Errorf("a sample moves the true means (-true +fit):\n%s", d)
	}
	again := ExactEM{Iterations: 1}.Fit(d.X, fit.Means, nil)
	if d := cmp.Diff(fit.Means, again.Means, near(1e-12)); d != "" {
		t.Errorf("EM does not rest (-before +after):\n%s", d)
	}
}

// A supercluster no point wants goes to (1,1).
func TestExactEmptyCluster(t *testing.T) {
	d := Problem{}.TrueMeans()
	fit := ExactEM{Iterations: 1}.Fit(Problem{}.Centres(d[:1]), Means{d[0], {50, 50}}, nil)
	if want := (Means{d[0], {1, 1}}); cmp.Diff(want, fit.Means, near(1e-8)) != "" {
		t.Errorf("means %v, want %v", fit.Means, want)
	}
}
