package vae

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
)

// exactPolicy is the posterior p(z|x) of a model, by enumeration. Its features are log p(x,z) of all latents, [B,Z].
type exactPolicy struct {
	Model
	theta *model.Scope
}

var _ encoder = exactPolicy{}

func (p exactPolicy) Encode(_ *model.Scope, x gfn.Batch) gfn.Batch {
	z := Const(x[0].Graph(), p.latents())
	xs, zs := pairs(x[0], z)
	return gfn.Batch{StopGradient(Reshape(p.LogJoint(p.theta, gfn.Batch{xs}, gfn.State{zs}), x.Size(), -1))}
}

// Heads adds up the probabilities of the latents that continue a state by each code.
func (p exactPolicy) Heads(_ *model.Scope, u gfn.Batch, s gfn.State, k int) gfn.Heads {
	g := s[0].Graph()
	logP := u.Repeat(k)[0] // [N,Z]
	rows, count, n := s[0].Shape().Dim(0), logP.Shape().Dim(1), p.Positions()
	wide := []int{rows, count, n}
	z := BroadcastToDims(InsertAxes(Const(g, p.latents()), 0), wide...)
	state := BroadcastToDims(InsertAxes(s[0], 1), wide...)
	unset := LessThan(state, ZerosLike(state))
	match := LogicalAll(LogicalOr(unset, Equal(z, state)), 2) // [N,Z]
	filled := ReduceSum(ConvertDType(LogicalNot(unset), dtypes.Int32), 2)
	next := Equal(Iota(g, shapes.Make(dtypes.Int32, wide...), 2), BroadcastToDims(InsertAxes(filled, 2), wide...))
	code := ReduceSum(Where(next, z, ZerosLike(z)), 2) // [N,Z]
	top := ReduceAndKeep(logP, ReduceMax, 1)
	mass := Where(match, Exp(Sub(logP, BroadcastToShape(top, logP.Shape()))), ZerosLike(logP)) // [N,Z]
	hot := OneHot(code, p.Codes, p.float())                                                    // [N,Z,K]
	each := ReduceSum(Mul(hot, BroadcastToShape(InsertAxes(mass, 2), hot.Shape())), 1)
	return gfn.Heads{Forward: Log(MaxScalar(each, 1e-300))}
}

// estimated returns an estimator on the tiny instance and the exact log-joints.
func estimated(t *testing.T, learned bool) (*Likelihood, [][]float64) {
	t.Helper()
	seed := testkit.Seed(t)
	b := open(t)
	m := Model{Size: tiny(2), Learned: learned}
	p := Policy{Size: m.Size}
	store := newStore(seed)
	joints(t, b, store, m, m.images())
	sharpen(t, store, em.Theta, 3)
	posteriors(t, b, store, p, m.images())
	sharpen(t, store, em.Phi, 1.5)
	l := &Likelihood{Backend: b, Store: store, Model: m, Proposal: p, Seed: seed, Draws: 40, Decodes: 7}
	t.Cleanup(l.Close)
	return l, joints(t, b, store, m, m.images())
}

func (s Size) take(indices []int) *tensors.Tensor { return s.images(indices...) }

// With the exact posterior every weight is p(x): one sample gives the exact likelihood, and there is nothing to estimate.
func TestExactProposal(t *testing.T) {
	for _, learned := range []bool{false, true} {
		l, logP := estimated(t, learned)
		l.Proposal = exactPolicy{l.Model, l.Store.Scope(em.Theta)}
		var logX []float64
		for _, row := range logP {
			logX = append(logX, gfn.LogSumExp(row))
		}
		mean, deviation := stat.MeanStdDev(logX, nil)
		want := -mean
		for _, samples := range []int{1, 50} { // 50 is more than a call draws
			l.Samples = samples
			l.Close()
			got, err := l.Estimate(16, l.Model.take)
			if err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("%d samples: NLL", samples), got.NLL, want, 1e-9)
			near(t, "standard error", got.StdErr, deviation/4, 1e-9) // of 16 images
			near(t, "ELBO", got.ELBO, -want, 1e-9)
			near(t, "effective sample size", got.ESS, float64(samples), 1e-6)
			near(t, "error of sampling", got.SampleErr, 0, 1e-7) // a root of rounding errors
			if samples == 50 && !(got.Distinct > 1.5 && got.Distinct < 16) {
				t.Errorf("%g distinct latents", got.Distinct)
			}
		}
	}
}

// The error of sampling falls with the root of the number of images: here 32 times the same one. That it is a quarter off
// happens less than once in 10,000 times, since the error of one image varies by a few per cent.
func TestSampleErr(t *testing.T) {
	l, _ := estimated(t, false)
	l.Samples = 2000
	same := func(indices []int) *tensors.Tensor { return l.Model.images(slices.Repeat([]int{11}, len(indices))...) }
	var errs []float64
	for _, count := range []int{1, 32} {
		got, err := l.Estimate(count, same)
		if err != nil {
			t.Fatal(err)
		}
		errs = append(errs, got.SampleErr)
	}
	near(t, "the error of sampling", errs[1]*math.Sqrt(32), errs[0], errs[0]/4)
	if errs[0] == 0 {
		t.Error("there is no error of sampling")
	}
}

// Weights are unbiased for p(x) whatever the encoder is; the estimate of log p(x) grows with the number of samples, stays
// below the truth, and with one sample it is the ELBO. Bands are 4.5 standard errors: false alarms 7e-6 each.
func TestImportanceWeights(t *testing.T) {
	l, logP := estimated(t, false)
	const image, draws = 11, 40_000
	l.Samples, l.Draws, l.Decodes = draws, draws, 64
	l.build()
	x := l.Model.images(image)
	drawn, err := l.draw(x, []int{image})
	if err != nil {
		t.Fatal(err)
	}
	drawn[0].merge(l.Model.Positions())
	if err := l.scores(x, drawn); err != nil {
		t.Fatal(err)
	}
	logW := drawn[0].logWeights()
	exact := gfn.LogSumExp(logP[image])
	logQ := posteriors(t, l.Backend, l.Store, l.Proposal.(Policy), x)[0]
	elbo := 0.0
	for z, q := range exps(logQ) {
		elbo += q * (logP[image][z] - logQ[z])
	}
	if exact-elbo < 0.05 {
		t.Fatalf("the bound is within %g: the encoder is too good to test anything", exact-elbo)
	}
	mean := func(values []float64) (mean, err float64) {
		for _, v := range values {
			mean += v / float64(len(values))
		}
		for _, v := range values {
			err += (v - mean) * (v - mean)
		}
		return mean, math.Sqrt(err) / float64(len(values))
	}
	w, e := mean(exps(logW))
	near(t, "mean weight", w, math.Exp(exact), 4.5*e)
	if !(math.Abs(w*1.05-math.Exp(exact)) > 4.5*e) {
		t.Error("a mean weight off by 5 % would pass")
	}
	last := math.Inf(-1)
	for _, size := range []int{1, 10, 100, 1000} {
		var estimates []float64
		for i := 0; i+size <= draws; i += size {
			estimates = append(estimates, gfn.EstimateLogZ(logW[i:i+size]).LogZ)
		}
		v, e := mean(estimates)
		if size == 1 {
			near(t, "one sample", v, elbo, 4.5*e)
		}
		if !(v > last) || !(v < exact+4.5*e) {
			t.Errorf("%d samples: %g, fewer gave %g, the truth is %g", size, v, last, exact)
		}
		last = v
	}
	// The effective sample size is that of the posterior under the encoder: 1/sum p^2/q, relative.
	inverse := 0.0
	for z, p := range gfn.Normalise(logP[image]) {
		inverse += p * p / math.Exp(logQ[z])
	}
	near(t, "relative effective sample size", gfn.EstimateLogZ(logW).ESS/draws, 1/inverse, 0.05/inverse)
}

// Latents that are drawn several times are scored once and count several times.
func TestMerge(t *testing.T) {
	l, _ := estimated(t, true)
	l.Samples = 60
	l.build()
	x := l.Model.images(3)
	drawn, err := l.draw(x, []int{3})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(drawn[0].codes[:20*4], drawn[0].codes[40*4:]) { // a call draws 40
		t.Error("the second call draws what the first one drew")
	}
	alone := samples{codes: drawn[0].codes, logQ: drawn[0].logQ}
	for i := range alone.logQ { // as if all were distinct
		alone.which = append(alone.which, i)
		alone.distinct = append(alone.distinct, alone.codes[i*4:i*4+4])
	}
	drawn[0].merge(4)
	both := []samples{drawn[0], alone}
	if err := l.scores(l.Model.images(3, 3), both); err != nil {
		t.Fatal(err)
	}
	if n := len(both[0].distinct); n >= 17 || n < 2 {
		t.Errorf("%d distinct latents of 16", n)
	}
	if a, b := both[0].logWeights(), both[1].logWeights(); !slices.Equal(a, b) {
		t.Errorf("merged weights differ:\n%v\n%v", a, b)
	}
	var want []float64
	for i := range 60 {
		z := both[1].distinct[i]
		if !slices.Equal(both[0].distinct[both[0].which[i]], z) {
			t.Fatalf("sample %d is taken for another", i)
		}
		want = append(want, both[1].logP[i])
	}
	exact := joints(t, l.Backend, l.Store, l.Model, x)[0]
	for i := range want {
		number := 0
		for _, c := range both[1].distinct[i] {
			number = number*2 + int(c)
		}
		near(t, "log p(x,z)", want[i], exact[number], 1e-10)
	}
}
