package em

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

// clumps is a toy whose bits depend on each other strongly, and a poor start for learning it.
func clumps(seed uint64) (truth, start toy) {
	truth, start = newToy(seed, dtypes.Float32), newToy(seed+1, dtypes.Float32)
	for i := range truth.emit {
		truth.emit[i] = math.Copysign(2.5, truth.emit[i])
		start.emit[i] *= 0.3
	}
	return truth, start
}

// GFlowNet-EM ends near exact EM from the same start, by gradients and in closed form.
func TestNearExactEM(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	b := newBackend(t)
	truth, start := clumps(seed)
	x := truth.draw(rand.New(rand.NewPCG(seed, 1)), 64)
	data := Full(truth.rows(x...))
	rate := optim.Rate{Base: 0.05}

	exact := model.NewStore()
	_, err := Classical{Model: start, Env: start.env(), Data: data, Optimizer: adam(Theta, rate)}.Train(b, exact, 200)
	if err != nil {
		t.Fatal(err)
	}
	before, want := logLikelihood(start.table(start.prior, start.emit), x), logLikelihood(start.learned(t, exact), x)
	t.Logf("exact EM: from %.4f to %.4f", before, want)

	for _, c := range []struct {
		name  string
		rate  float64
		mstep MStep
		fails bool
	}{
		{name: "gradient", rate: 0.1, mstep: MStep{Optimizer: adam(Theta, rate)}},
		{name: "closed form", rate: 0.1, mstep: MStep{Latents: Drawn{4}, ClosedForm: true}},
		{name: "moves", rate: 0, mstep: MStep{Moves: 4, Optimizer: adam(Theta, rate)}},
		{name: "untrained", rate: 0, mstep: MStep{Optimizer: adam(Theta, rate)}, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := toySpec(start)
			spec.Data = data
			spec.Wake.Optimizer = adam(Phi, optim.Rate{Base: c.rate})
			spec.Gate = Blocks{First: 50}
			spec.MStep = c.mstep
			l := newLearner(t, b, spec)
			steps(t, l, 250)
			got := logLikelihood(start.learned(t, l.Store()), x)
			t.Logf("log-likelihood %.4f", got)
			if (got < want-0.02) != c.fails {
				t.Errorf("log-likelihood %.4f, that of exact EM is %.4f", got, want)
			}
		})
	}
}

// latentCounts makes one closed-form M-step with many latents of a single observation and returns how often each was
// drawn, with their exact posterior probabilities.
func latentCounts(t *testing.T, x, n int, set func(*Spec)) (counts, posterior []float64) {
	t.Helper()
	m := newToy(3, dtypes.Float32)
	spec := toySpec(m)
	spec.Data = Full(m.rows(x))
	spec.Wake.Optimizer = adam(Phi, optim.Rate{}) // never trained
	spec.MStep = MStep{Latents: Drawn{n}, ClosedForm: true}
	set(&spec)
	l := newLearner(t, newBackend(t), spec)
	r := steps(t, l, 1)
	if (spec.MStep.Moves > 0) == math.IsNaN(r.Accepted) || r.Accepted < 0 || r.Accepted > 1 {
		t.Errorf("%g of %d moves accepted", r.Accepted, spec.MStep.Moves)
	}
	var sum float64
	for _, logCount := range numbersOf(t, l.Store(), Theta+"/prior") {
		c := math.Round(math.Exp(logCount) - smoothing)
		counts = append(counts, c)
		sum += c
	}
	if sum != float64(n) {
		t.Fatalf("%g latents, want %d", sum, n)
	}
	return counts, gfn.Normalise(m.table(m.prior, m.emit)[x])
}

// Moves lead the M-step's latents to the exact posterior whatever the policy is.
func TestMovesReachPosterior(t *testing.T) {
	const n, x = 2000, 2
	statistic := func(set func(*Spec)) float64 {
		counts, posterior := latentCounts(t, x, n, set)
		expected := make([]float64, len(posterior))
		for z, p := range posterior {
			expected[z] = n * p
		}
		t.Logf("latents %v, expected %.0f", counts, expected)
		return stat.ChiSquare(counts, expected)
	}
	bound := distuv.ChiSquared{K: 5}.Quantile(1 - falseAlarm)
	for name, set := range map[string]func(*Spec){
		"plain": func(s *Spec) { s.MStep.Moves = 40 },
		"exploring": func(s *Spec) {
			s.MStep.Moves = 40
			s.Wake.Explore.Epsilon, s.Wake.Explore.Beta = Constant(0.2), Constant(0.5)
		},
	} {
		if v := statistic(set); v > bound {
			t.Errorf("%s moves: chi-square %.1f, bound %.1f", name, v, bound)
		}
	}
	for name, set := range map[string]func(*Spec){
		"no moves":        func(s *Spec) {},
		"one move":        func(s *Spec) { s.MStep.Moves = 1 },
		"moves too short": func(s *Spec) { s.MStep.Moves, s.MStep.Kernel.MaxSteps = 40, 1 }, // the first choice stays
	} {
		if v := statistic(set); v < bound {
			t.Errorf("%s: chi-square %.1f passes for the posterior, bound %.1f", name, v, bound)
		}
	}
}

// Greedy latents are the most probable actions, one after the other.
func TestGreedyLatents(t *testing.T) {
	const n, x = 50, 6
	m := newToy(3, dtypes.Float32)
	_, states := tablePolicy{m}.radix()
	r := rand.New(rand.NewPCG(4, 0))
	logits := make([]float64, m.observations()*states*3)
	for i := range logits {
		logits[i] = r.NormFloat64()
	}
	best := func(prefix []int, size int) (a int) {
		row := logits[tablePolicy{m}.row(x, prefix)*3:]
		for i := range size {
			if row[i] > row[a] {
				a = i
			}
		}
		return a
	}
	a := best(nil, 2)
	b := best([]int{a}, 3)
	for _, greedy := range []bool{true, false} {
		spec := toySpec(m)
		spec.Data = Full(m.rows(slices.Repeat([]int{x}, n)...))
		spec.MStep = MStep{ClosedForm: true}
		if greedy {
			spec.MStep.Latents = Greedy{}
		}
		spec.Wake.Optimizer = adam(Phi, optim.Rate{})
		l := newLearner(t, newBackend(t), spec)
		setVariable(t, l.Store(), Phi+"/logits", floats(m.dtype, logits, m.observations()*states, 3))
		steps(t, l, 1)
		count := math.Exp(numbersOf(t, l.Store(), Theta+"/prior")[a+2*b])
		if (math.Round(count) == n) != greedy {
			t.Errorf("greedy %v: %.0f of %d latents are (%d,%d)", greedy, count, n, a, b)
		}
	}
}

// Moves explore as the E-step of their iteration does.
func TestMovesExplore(t *testing.T) {
	spec := toySpec(newToy(3, dtypes.Float32))
	spec.Wake.Explore.Epsilon = Linear{To: 1, Over: 100}
	spec.MStep.Moves, spec.MStep.Optimizer = 3, adam(Theta, optim.Rate{})
	l := newLearner(t, newBackend(t), spec)
	loss := func(iteration uint64) float64 {
		m, err := l.M.Maximize(Moment{Iteration: iteration}, spec.Data(0), Inferred{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Loss
	}
	if first, last := loss(0), loss(100); first == last {
		t.Errorf("the same moves without exploration and with nothing else: loss %g", first)
	}
}
