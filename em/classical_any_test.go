package em

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// toySet is a toy whose bits are those of a set.
type toySet struct{ toy }

func (m toySet) LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *graph.Node {
	return m.toy.LogJoint(scope, x, z[:1])
}

func (m toySet) Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	x, z := m.toy.Sample(scope, r, n)
	return x, m.set().Of(z[0])
}

func (m toySet) set() envs.Set { return envs.Set{Items: len(m.sizes)} }

// newToySet has three causes and three bits.
func newToySet(seed uint64) toySet {
	m := deepToy(seed, dtypes.Float64)
	m.sizes, m.prior, m.emit = []int{2, 2, 2}, m.prior[:8], m.emit[:24]
	return toySet{m}
}

// step is one update by SGD, and what it tells of the gradient of the variables at some paths.
func gradientOf(t *testing.T, b compute.Backend, c Classical, start map[string][]float64) (bound float64, grad []float64) {
	t.Helper()
	const rate = 1.0 / 8
	store := model.NewStore()
	c.Optimizer = optim.Optimizer{Groups: []optim.Group{{Scope: Theta, Rule: optim.SGD{}, Rate: optim.Rate{Base: rate}}}}
	bound, err := c.Train(b, store, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prior", "emit", "cut", "one"} {
		for i, v := range start[name] {
			grad = append(grad, (numbersOf(t, store, Theta+"/"+name)[i]-v)/rate)
		}
	}
	return bound, grad
}

// Latents that are sets are the same as sequences of bits, for either posterior. A bound leaves some out.
func TestClassicalSets(t *testing.T) {
	b := newBackend(t)
	for seed := range uint64(3) {
		t.Logf("seed %d", seed)
		m := newToySet(seed)
		start := map[string][]float64{"prior": m.prior, "emit": m.emit}
		for _, p := range []ClassicalPosterior{Exact, MeanField} {
			c := Classical{Model: m, Env: m.set(), Data: Full(m.rows(0, 3, 1, 1)), Posterior: p, Sweeps: 2}
			bound, grad := gradientOf(t, b, c, start)
			c.Model, c.Env = m.toy, m.env()
			want, wantGrad := gradientOf(t, b, c, start)
			near(t, "bound", []float64{bound}, []float64{want}, 1e-12)
			near(t, "gradient", grad, wantGrad, 1e-11)
		}
		got, err := (Classical{Model: m, Env: envs.Set{Items: 3, Most: 2}}).LogLikelihood(b, model.NewStore(), m.rows(5))
		if err != nil {
			t.Fatal(err)
		}
		logP := m.table(m.prior, m.emit)[5][:7] // the last one is the whole set
		near(t, "bounded sets", []float64{got}, []float64{gfn.LogSumExp(logP)}, 1e-12)
	}
}

// strings are observations of words, by number.
func (m words) strings(numbers ...int) (x []*tensors.Tensor, letters [][]float32, lengths []int) {
	all := m.all()
	var n []int32
	for _, i := range numbers {
		letters = append(letters, all[0].Value().([][]float32)[i])
		n = append(n, all[1].Value().([]int32)[i])
		lengths = append(lengths, int(n[len(n)-1]))
	}
	return []*tensors.Tensor{tensors.FromValue(letters), tensors.FromValue(n)}, letters, lengths
}

// Where the observation says what is legal, each one has its own latents: the bounds and their gradients are those of the
// host, and the posteriors too.
func TestClassicalByObservation(t *testing.T) {
	b := newBackend(t)
	numbers := []int{29, 0, 3, 17, 8, 4, 1, 29}
	for _, longest := range []int{0, 2} {
		m := words{longest: longest}
		x, letters, lengths := m.strings(numbers...)
		exact := func(logits []float64) (sum float64) {
			for i, n := range lengths {
				sum += gfn.LogSumExp(m.scores(logits, letters[i], n)) / float64(len(numbers))
			}
			return sum
		}
		start := map[string][]float64{"cut": wordLogits[:1], "one": wordLogits[1:]}
		c := Classical{Model: m, Env: m.env(), Data: Full(x...)}
		bound, grad := gradientOf(t, b, c, start)
		near(t, "bound", []float64{bound}, []float64{exact(wordLogits)}, 1e-12)
		near(t, "gradient", grad, slopes(exact), 1e-8)

		all, err := c.Posteriors(b, model.NewStore(), x...)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range all {
			var logP []float64
			for _, cut := range l.Z[0].Value().([][]int32) {
				logP = append(logP, m.score(wordLogits, letters[i], lengths[i], cut))
			}
			if want := len(m.scores(wordLogits, letters[i], lengths[i])); len(logP) != want || l.Z[1].Shape().Dim(0) != want {
				t.Fatalf("string %d has %d latents, want %d", i, len(logP), want)
			}
			near(t, "log p(x,z)", l.LogJoint, logP, 1e-12)
			near(t, "p(z|x)", l.P, gfn.Normalise(logP), 1e-12)
			near(t, "log p(x)", []float64{l.LogP}, []float64{gfn.LogSumExp(logP)}, 1e-12)
		}
	}
}

// slopes are the gradient of a function at the logits of words, by central differences.
func slopes(f func([]float64) float64) (grad []float64) {
	const h = 1e-5
	for i := range wordLogits {
		at := func(by float64) float64 {
			moved := slices.Clone(wordLogits)
			moved[i] += by
			return f(moved)
		}
		grad = append(grad, (at(h)-at(-h))/(2*h))
	}
	return grad
}

// The factorised posterior of a string has a bit for each of its gaps, and no others.
func TestMeanFieldByObservation(t *testing.T) {
	b := newBackend(t)
	m := words{}
	numbers := []int{29, 0, 3, 17, 8, 4, 1}
	for _, sweeps := range []int{1, 2, 5} {
		x, letters, lengths := m.strings(numbers...)
		fit := func(i int) (q []float64, bound float64) {
			sizes := slices.Repeat([]int{2}, lengths[i]-1)
			return slowMeanField(toy{sizes: sizes}, m.scores(wordLogits, letters[i], lengths[i]), sweeps)
		}
		c := Classical{Model: m, Env: m.env(), Data: Full(x...), Posterior: MeanField, Sweeps: sweeps}
		bound, grad := gradientOf(t, b, c, map[string][]float64{"cut": wordLogits[:1], "one": wordLogits[1:]})
		want, exact := 0.0, 0.0
		for i := range numbers {
			_, b := fit(i)
			want += b / float64(len(numbers))
			exact += gfn.LogSumExp(m.scores(wordLogits, letters[i], lengths[i])) / float64(len(numbers))
		}
		near(t, "bound", []float64{bound}, []float64{want}, 1e-12)
		near(t, "gradient", grad, slopes(func(logits []float64) (sum float64) {
			for i := range numbers {
				q, _ := fit(i)
				for k, l := range m.scores(logits, letters[i], lengths[i]) {
					sum += q[k] * l / float64(len(numbers))
				}
			}
			return sum
		}), 1e-8)
		if gap := exact - bound; gap < 1e-4 {
			t.Errorf("the bound is tight, within %g: the posterior factorises and tests nothing", gap)
		}
	}
}

// Batches bring new lists, of which some are longer than those before; the last one brings none.
func TestClassicalBatches(t *testing.T) {
	b := newBackend(t)
	m := words{}
	batches := [][]int{{0, 1}, {1, 2, 5}, {29, 0}, {7, 8}, {3, 17, 0, 29}, {0, 1}}
	for _, p := range []ClassicalPosterior{Exact, MeanField} {
		for last := range batches {
			c := Classical{Model: m, Env: m.env(), Posterior: p, Optimizer: adam(Theta, optim.Rate{}), Data: func(step uint64) []*tensors.Tensor {
				x, _, _ := m.strings(batches[step]...)
				return x
			}}
			got, err := c.Train(b, model.NewStore(), uint64(last+1))
			if err != nil {
				t.Fatal(err)
			}
			_, letters, lengths := m.strings(batches[last]...)
			want := 0.0
			for i, n := range lengths {
				bound := gfn.LogSumExp(m.scores(wordLogits, letters[i], n))
				if p == MeanField {
					_, bound = slowMeanField(toy{sizes: slices.Repeat([]int{2}, n-1)}, m.scores(wordLogits, letters[i], n), 10)
				}
				want += bound / float64(len(lengths))
			}
			near(t, fmt.Sprintf("posterior %d, batch %d", p, last), []float64{got}, []float64{want}, 1e-12)
		}
	}
}

// The posterior over sequences, and what cannot be one.
func TestPosteriors(t *testing.T) {
	b := newBackend(t)
	m := deepToy(3, dtypes.Float64)
	all, err := (Classical{Model: m, Env: m.env()}).Posteriors(b, model.NewStore(), m.rows(6, 2))
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range []int{6, 2} {
		logP := m.table(m.prior, m.emit)[x]
		near(t, "p(z|x)", all[i].P, gfn.Normalise(logP), 1e-12)
		for k, z := range all[i].Z[0].Value().([][]int32) {
			if n := int(z[0] + 2*z[1] + 6*z[2]); n != k {
				t.Errorf("latent %d is %v", k, z)
			}
		}
	}
	if _, err := (Classical{Model: m}).Posteriors(b, model.NewStore(), m.rows(6)); err == nil {
		t.Error("no error without an Env")
	}
	_, err = (Classical{Model: m, Env: envs.Set{Items: 17}}).Posteriors(b, model.NewStore(), m.rows(6))
	if err == nil || !strings.Contains(err.Error(), "classical_any_test.go:") || !strings.Contains(err.Error(), "envs.Set has too many latents") {
		t.Errorf("too many: error %v", err)
	}
}
