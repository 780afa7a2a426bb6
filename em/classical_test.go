package em

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
)

// deepToy has three choices of different sizes.
func deepToy(seed uint64, dtype dtypes.DType) toy {
	m := toy{dtype: dtype, sizes: []int{2, 3, 2}, bits: 3}
	r := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		m.prior = append(m.prior, r.NormFloat64())
	}
	for range 12 * 3 {
		m.emit = append(m.emit, 2*r.NormFloat64())
	}
	return m
}

// boundOf returns a classical learner's bound for given observations at the initial values of a toy, which it leaves as
// they are, and the gradient of theta: prior, then emit.
func boundOf(t *testing.T, b compute.Backend, m toy, p ClassicalPosterior, sweeps int, x ...int) (bound float64, grad []float64) {
	t.Helper()
	const rate = 1.0 / 8
	store := model.NewStore()
	c := Classical{
		Model: m, Env: m.env(), Data: Full(m.rows(x...)), Posterior: p, Sweeps: sweeps,
		Optimizer: optim.Optimizer{Groups: []optim.Group{{Scope: Theta, Rule: optim.SGD{}, Rate: optim.Rate{Base: rate}}}},
	}
	bound, err := c.Train(b, store, 1)
	if err != nil {
		t.Fatal(err)
	}
	start := slices.Concat(m.prior, m.emit)
	for i, v := range slices.Concat(numbersOf(t, store, Theta+"/prior"), numbersOf(t, store, Theta+"/emit")) {
		grad = append(grad, (v-start[i])/rate)
	}
	return bound, grad
}

// differences returns the gradient of a function of a toy's theta by central differences.
func differences(m toy, f func(toy) float64) (grad []float64) {
	const h = 1e-5
	theta := slices.Concat(m.prior, m.emit)
	at := func(i int, by float64) float64 {
		moved := slices.Clone(theta)
		moved[i] += by
		m.prior, m.emit = moved[:m.latents()], moved[m.latents():]
		return f(m)
	}
	for i := range theta {
		grad = append(grad, (at(i, h)-at(i, -h))/(2*h))
	}
	return grad
}

func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol) {
			t.Errorf("%s: number %d is %.12g, want %.12g", what, i, got[i], want[i])
		}
	}
}

func TestExactBound(t *testing.T) {
	b := newBackend(t)
	for seed := range uint64(3) {
		t.Logf("seed %d", seed)
		for _, m := range []toy{newToy(seed, dtypes.Float64), deepToy(seed, dtypes.Float64), tiny()} {
			x := []int{0, 3, 1, 1}
			bound, grad := boundOf(t, b, m, Exact, 0, x...)
			value := func(m toy) float64 { return logLikelihood(m.table(m.prior, m.emit), x) }
			near(t, "bound", []float64{bound}, []float64{value(m)}, 1e-12)
			near(t, "gradient", grad, differences(m, value), 1e-8)
		}
	}
}

// Observations that no latent explains well, and latents of probability almost 0, do not overflow.
func TestExactBoundExtremes(t *testing.T) {
	m := newToy(1, dtypes.Float32)
	m.prior[2] = -300
	for i := range m.emit {
		m.emit[i] = 60
	}
	bound, _ := boundOf(t, newBackend(t), m, Exact, 0, 0)
	near(t, "bound", []float64{bound}, []float64{-180}, 1e-3)
}

// slowMeanField fits a factorised posterior to log p(x,z), a row by latents, by coordinate ascent from uniform factors, and
// returns q(z) and the bound.
func slowMeanField(m toy, logP []float64, sweeps int) (q []float64, bound float64) {
	digits := func(k int) (z []int) {
		for _, s := range m.sizes {
			z = append(z, k%s)
			k /= s
		}
		return z
	}
	factors := make([][]float64, len(m.sizes))
	for t, s := range m.sizes {
		factors[t] = slices.Repeat([]float64{1 / float64(s)}, s)
	}
	weight := func(k, but int) float64 {
		w := 1.0
		for t, v := range digits(k) {
			if t != but {
				w *= factors[t][v]
			}
		}
		return w
	}
	for range sweeps {
		for t, s := range m.sizes {
			expected := make([]float64, s)
			for k, l := range logP {
				expected[digits(k)[t]] += weight(k, t) * l
			}
			factors[t] = gfn.Normalise(expected)
		}
	}
	for k, l := range logP {
		w := weight(k, -1)
		q = append(q, w)
		bound += w * (l - math.Log(w))
	}
	return q, bound
}

func TestMeanFieldBound(t *testing.T) {
	b := newBackend(t)
	for seed := range uint64(2) {
		t.Logf("seed %d", seed)
		for _, m := range []toy{newToy(seed, dtypes.Float64), deepToy(seed, dtypes.Float64)} {
			logP := m.table(m.prior, m.emit)
			gap := 0.0
			for x := range logP {
				last := math.Inf(-1)
				for _, sweeps := range []int{1, 2, 3, 10} {
					bound, _ := boundOf(t, b, m, MeanField, sweeps, x)
					_, slow := slowMeanField(m, logP[x], sweeps)
					near(t, "bound", []float64{bound}, []float64{slow}, 1e-10)
					if bound < last-1e-12 {
						t.Errorf("x=%d: %d sweeps take the bound from %.12g to %.12g", x, sweeps, last, bound)
					}
					last = bound
				}
				most := gfn.LogSumExp(logP[x])
				if last > most+1e-12 {
					t.Errorf("x=%d: bound %.12g above log p(x) = %.12g", x, last, most)
				}
				gap = max(gap, most-last)
				if bound, _ := boundOf(t, b, m, MeanField, 0, x); bound != last {
					t.Errorf("x=%d: the default gives %g, ten sweeps %g", x, bound, last)
				}
			}
			if gap < 0.01 {
				t.Errorf("the bound is tight, within %g: the posterior factorises and tests nothing", gap)
			}
			// The gradient is that of the expected log-joint at the fitted q.
			const x, sweeps = 5, 3
			_, grad := boundOf(t, b, m, MeanField, sweeps, x)
			q, _ := slowMeanField(m, logP[x], sweeps)
			near(t, "gradient", grad, differences(m, func(m toy) (sum float64) {
				for z, l := range m.table(m.prior, m.emit)[x] {
					sum += q[z] * l
				}
				return sum
			}), 1e-8)
		}
	}
}

// A factorised posterior is found exactly, in one sweep.
func TestMeanFieldFactorised(t *testing.T) {
	b := newBackend(t)
	m := newToy(2, dtypes.Float64)
	for a := range 2 {
		for c := range 3 {
			m.prior[a+2*c] = 0.7*float64(a) - 0.4*float64(c)
			copy(m.emit[(a+2*c)*3:], []float64{1.5 * float64(a), -2 + 3*float64(a), 0.3}) // z_1 says nothing of x
		}
	}
	for x, row := range m.table(m.prior, m.emit) {
		bound, _ := boundOf(t, b, m, MeanField, 1, x)
		near(t, "bound", []float64{bound}, []float64{gfn.LogSumExp(row)}, 1e-12)
	}
}

func TestClassicalTrain(t *testing.T) {
	const seed = 12
	t.Logf("seed %d", seed)
	b := newBackend(t)
	truth, start := clumps(seed)
	x := truth.draw(rand.New(rand.NewPCG(seed, 1)), 64)
	before := logLikelihood(start.table(start.prior, start.emit), x)
	for _, p := range []ClassicalPosterior{Exact, MeanField} {
		store := model.NewStore()
		c := Classical{
			Model: start, Env: start.env(), Data: Full(start.rows(x...)), Posterior: p, Sweeps: 3,
			Optimizer: adam(Theta, optim.Rate{Base: 0.05}),
		}
		bound, err := c.Train(b, store, 200)
		if err != nil {
			t.Fatal(err)
		}
		after := logLikelihood(start.learned(t, store), x)
		t.Logf("posterior %d: from %.4f to %.4f, bound %.4f", p, before, after, bound)
		if after < before+0.2 {
			t.Errorf("posterior %d: log-likelihood %.4f, before training %.4f", p, after, before)
		}
		if bound > after+1e-3 || bound < before {
			t.Errorf("posterior %d: bound %.4f, log-likelihood %.4f", p, bound, after)
		}
		got, err := c.LogLikelihood(b, store, start.rows(x...))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "log-likelihood", []float64{got}, []float64{after}, 1e-5)
	}
}

// Train follows the data step by step, and by default with Adam at rate 1e-3.
func TestClassicalDefaults(t *testing.T) {
	b := newBackend(t)
	m := tiny()
	var asked []uint64
	store := model.NewStore()
	c := Classical{Model: m, Env: m.env(), Data: func(step uint64) []*tensors.Tensor {
		asked = append(asked, step)
		return []*tensors.Tensor{m.rows(3, 3)}
	}}
	if _, err := c.Train(b, store, 3); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(asked, []uint64{0, 1, 2}) {
		t.Errorf("asked for %v", asked)
	}
	// Adam's steps along a gradient that hardly changes have the size of the rate.
	near(t, "emit", numbersOf(t, store, Theta+"/emit"), []float64{m.emit[0] + 3e-3, m.emit[1] + 3e-3}, 1e-5)
}

// scorer is a model that can score lists, which it counts.
type scorer struct {
	toy
	calls *int
}

func (s scorer) LogJointTable(scope *model.Scope, x gfn.Batch, z gfn.State) *graph.Node {
	*s.calls++
	return lvm.Table(s.toy, scope, x, z)
}

func TestClassicalTable(t *testing.T) {
	b := newBackend(t)
	m := newToy(4, dtypes.Float64)
	calls := 0
	got, err := (Classical{Model: scorer{m, &calls}, Env: m.env()}).LogLikelihood(b, model.NewStore(), m.rows(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "log-likelihood", []float64{got}, []float64{logLikelihood(m.table(m.prior, m.emit), []int{1, 2})}, 1e-12)
	if calls != 1 {
		t.Errorf("the model's own table was used %d times", calls)
	}
}

func TestClassicalErrors(t *testing.T) {
	b := newBackend(t)
	m := newToy(4, dtypes.Float32)
	c := Classical{Model: m, Env: m.env(), Data: spoil(m, 0, 1, 2, 3, 5, 6, 7, 8)}
	store := model.NewStore()
	if _, err := c.Train(b, store, 10); err != nil {
		t.Errorf("four bad updates in a row: %v", err)
	}
	c.Data = spoil(m, 1, 2, 3, 4, 5)
	if _, err := c.Train(b, store, 10); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "update 5") {
		t.Errorf("five bad updates in a row: %v", err)
	}
	for v := range store.IterVariables() {
		for _, x := range numbersOf(t, store, v.Path()) {
			if math.IsNaN(x) {
				t.Fatalf("%s is NaN", v.Path())
			}
		}
	}
	c.Env.Sizes = []int{2} // not the model's
	if _, err := c.Train(b, store, 1); err == nil {
		t.Error("no error for latents of another model")
	}
	if _, err := c.LogLikelihood(b, store, m.all()); err == nil {
		t.Error("no error for latents of another model")
	}
}
