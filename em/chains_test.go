package em

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

// chainSpec is a spec whose M-steps make two moves of so many chains of each observation, four observations at a time,
// with a model and a policy that stay as they are; and its policy's logits.
func chainSpec(t *testing.T, chains int) (spec Spec, m toy, logits []float64) {
	t.Helper()
	m = newToy(3, dtypes.Float32)
	numbers, err := Batches(7, 4, m.observations())
	if err != nil {
		t.Fatal(err)
	}
	spec = toySpec(m)
	spec.Data = Rows(numbers, m.all())
	spec.Wake.Optimizer = adam(Phi, optim.Rate{})
	spec.MStep = MStep{
		Latents: Drawn{chains}, Moves: 2, Persist: Persistent{m.observations(), numbers}, Optimizer: adam(Theta, optim.Rate{}),
	}
	r := rand.New(rand.NewPCG(8, 0))
	_, states := tablePolicy{m}.radix()
	logits = make([]float64, m.observations()*states*3)
	for i := range logits {
		logits[i] = r.NormFloat64()
	}
	return spec, m, logits
}

// chainsOf are the latents at which the chains of each observation have arrived.
func chainsOf(l *Learner) [][][]int32 {
	return l.Store().GetVariable(Kept + "/chains/z0").MustValue().Value().([][][]int32)
}

// Two moves in every epoch lead the chains of each observation to its exact posterior, whatever the policy is; but not
// if they have just begun, nor if the chains of one observation become those of another one.
func TestChainsReachPosterior(t *testing.T) {
	const n = 250
	b := newBackend(t)
	worst := func(epochs int, set func(*Spec)) (most float64) {
		spec, m, logits := chainSpec(t, n)
		set(&spec)
		l := newLearner(t, b, spec)
		setVariable(t, l.Store(), Phi+"/logits", floats(m.dtype, logits, len(logits)/3, 3))
		steps(t, l, 2*epochs)
		logP := m.table(m.prior, m.emit)
		for x, chains := range chainsOf(l) {
			counts, expected := make([]float64, m.latents()), make([]float64, m.latents())
			for _, z := range chains {
				counts[z[0]+2*z[1]]++
			}
			for z, p := range gfn.Normalise(logP[x]) {
				expected[z] = n * p
			}
			most = max(most, stat.ChiSquare(counts, expected))
		}
		return most
	}
	bound := distuv.ChiSquared{K: 5}.Quantile(1 - falseAlarm/(8*2))
	for _, c := range []struct {
		name   string
		epochs int
		set    func(*Spec)
		off    bool
	}{
		{"plain", 30, func(*Spec) {}, false},
		{"exploring", 30, func(s *Spec) { s.Wake.Explore.Epsilon, s.Wake.Explore.Beta = Constant(0.2), Constant(0.5) }, false},
		{"just begun", 1, func(*Spec) {}, true},
		{"of others", 30, func(s *Spec) {
			numbers := s.MStep.Persist.Rows
			s.MStep.Persist.Rows = func(step uint64) (out []int) {
				for _, i := range numbers(step) {
					out = append(out, (i+int(step/2))%8)
				}
				return out
			}
		}, true},
	} {
		v := worst(c.epochs, c.set)
		t.Logf("%s: chi-square %.1f, bound %.1f", c.name, v, bound)
		if (v > bound) != c.off {
			t.Errorf("%s: chi-square %.1f, bound %.1f", c.name, v, bound)
		}
	}
}

// A chain stays where it is while those of other observations are moved, or if an update is skipped.
func TestChainsStay(t *testing.T) {
	spec, m, _ := chainSpec(t, 2)
	data, numbers := spec.Data, spec.MStep.Persist.Rows
	spec.Data = func(step uint64) []*tensors.Tensor {
		extra := make([]float32, 4)
		if step == 3 {
			extra[0] = float32(math.NaN())
		}
		return []*tensors.Tensor{data(step)[0], tensors.FromValue(extra)}
	}
	l := newLearner(t, newBackend(t), spec)
	moved := 0
	for step := range uint64(12) {
		before := chainsOf(l)
		r := steps(t, l, 1)
		if r.M.OK != (step != 3) {
			t.Errorf("step %d: %+v", step, r.M)
		}
		for x, after := range chainsOf(l) {
			same := slices.EqualFunc(before[x], after, func(a, b []int32) bool { return slices.Equal(a, b) })
			if !same {
				moved++
			}
			if !same && (step == 3 || !slices.Contains(numbers(step), x)) {
				t.Errorf("step %d, on %v: the chains of %d have moved", step, numbers(step), x)
			}
		}
	}
	begun := l.Store().GetVariable(Kept + "/chains/begun").MustValue().Value().([]int32)
	if slices.Min(begun) != 1 || moved < 10 {
		t.Errorf("begun are %v, moved %d of %d times", begun, moved, 12*m.observations())
	}
}

// Chains go on in M-steps with data of their own, in closed form, and from the best of wake; what cannot be is an
// error.
func TestChainsWithAll(t *testing.T) {
	b := newBackend(t)
	for name, c := range map[string]struct {
		want string
		set  func(s *Spec)
	}{
		"own data":    {"", func(s *Spec) { s.MStep.Data = s.Data }},
		"closed form": {"", func(s *Spec) { s.MStep.ClosedForm = true }},
		"best":        {"", func(s *Spec) { s.MStep.Latents = BestOfWake{} }},
		"greedy":      {"", func(s *Spec) { s.MStep.Latents = Greedy{} }},
		"all": {"", func(s *Spec) {
			s.Data, s.MStep.Persist.Rows = Full(s.Model.(toy).all()), nil
		}},
		"no moves":   {"MStep.Persist lets moves go on", func(s *Spec) { s.MStep.Moves = 0 }},
		"no data":    {"chains that persist need MStep.Persist.Data", func(s *Spec) { s.MStep.Persist.Data = 0 }},
		"too few":    {"MStep.Persist.Rows has an observation", func(s *Spec) { s.MStep.Persist.Data = 2 }},
		"other size": {"MStep.Persist.Data is 8, and a batch has 4 observations", func(s *Spec) { s.MStep.Persist.Rows = nil }},
		"other batch": {"MStep.Persist.Rows has 4 numbers of 8 observations", func(s *Spec) {
			s.Data = Full(s.Model.(toy).all())
		}},
	} {
		spec, _, _ := chainSpec(t, 2)
		c.set(&spec)
		if c.want != "" {
			if err := begun(t, b, spec); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", name, err, c.want)
			}
			continue
		}
		l := newLearner(t, b, spec)
		steps(t, l, 2)
		if have := l.Store().GetVariable(Kept + "/chains/begun").MustValue().Value().([]int32); slices.Min(have) != 1 {
			t.Errorf("%s: after an epoch these chains have begun: %v", name, have)
		}
	}
}

// Chains of other observations, which begin in other initial states, are an error that names the numbers.
func TestDisplaced(t *testing.T) {
	m := words{}
	for _, wrong := range []bool{false, true} {
		x := m.all()
		in := func(step uint64) (out []int) { // each in its place, or the other way round from the second batch on
			for i := range x[0].Shape().Dim(0) {
				out = append(out, i)
			}
			if wrong && step > 0 {
				slices.Reverse(out)
			}
			return out
		}
		l := newLearner(t, newBackend(t), Spec{
			Model: m, Env: m.env(), Policy: reader{}, Data: Full(x...), Seed: 5, Wake: Wake{Objective: gfn.DB{}},
			MStep: MStep{Moves: 1, Persist: Persistent{x[0].Shape().Dim(0), in}},
		})
		steps(t, l, 1)
		_, err := l.Step()
		if !wrong && err != nil {
			t.Error(err)
		}
		want := "MStep.Persist.Rows numbers observations otherwise than before"
		if wrong && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v", err)
		}
	}
}
