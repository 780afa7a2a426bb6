package gfn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestSolve checks the exact answer against its definition: a forward policy whose objects come in proportion to R, whose
// every path has the flow that it should, and whose flows add up.
func TestSolve(t *testing.T) {
	for _, c := range smallEnvs {
		t.Run(c.name, func(t *testing.T) {
			p := newProblem(t, c.env, testkit.Seed(t))
			logZ := gfn.LogSumExp(p.logR)
			if d := math.Abs(p.logF[0] - logZ); !(d < 1e-12) {
				t.Errorf("log F(0) is off by %g", d)
			}
			got, want := p.dag.Terminating(p.exact()), gfn.Normalise(p.logR)
			if d := farthest(got, want); !(d < 1e-12) {
				t.Errorf("objects are off by %g", d)
			}
			out := make([]float64, p.dag.Len())
			for i, e := range p.dag.Edges {
				out[e.From] += math.Exp(p.logPF[i])
				flow := p.logF[e.From] + p.logPF[i] - p.logF[e.To] - p.logPB[i]
				if !(math.Abs(flow) < 1e-12) {
					t.Errorf("edge %d: detailed balance is off by %g", i, flow)
				}
			}
			for s, sum := range out {
				if !slices.Contains(p.dag.Objects, s) && !(math.Abs(sum-1) < 1e-12) {
					t.Errorf("P_F of state %d sums to %g", s, sum)
				}
			}
			if tv := gfn.TotalVariation(got, want); !(tv < 1e-12) {
				t.Errorf("total variation %g", tv)
			}
		})
	}
}

// TestBruteForce compares sums over states with sums over all paths.
func TestBruteForce(t *testing.T) {
	for _, c := range smallEnvs {
		t.Run(c.name, func(t *testing.T) {
			seed := testkit.Seed(t)
			p := newProblem(t, c.env, seed)
			p.randomise(seed)
			now := p.current()
			paths := allPaths(p.dag)
			w, v := forwardWeights(paths, now), backwardWeights(p.dag, paths, now, p.logR)
			objects := make([]float64, len(p.dag.Objects))
			var elbo, eubo, sumV float64
			for i, path := range paths {
				k := object(p.dag, path)
				objects[k] += w[i]
				log := p.logR[k] + total(now.LogPB, path) - total(now.LogPF, path)
				elbo += w[i] * log
				eubo += v[i] * log
				sumV += v[i]
			}
			if d := math.Abs(sumV - 1); !(d < 1e-12) {
				t.Errorf("R/Z P_B sums to 1 + %g", d)
			}
			if d := farthest(p.dag.Terminating(now), objects); !(d < 1e-12) {
				t.Errorf("Terminating is off by %g", d)
			}
			if d := math.Abs(p.dag.ELBO(now, p.logR) - elbo); !(d < 1e-11) {
				t.Errorf("ELBO is off by %g", d)
			}
			if d := math.Abs(p.dag.EUBO(now, p.logR) - eubo); !(d < 1e-11) {
				t.Errorf("EUBO is off by %g", d)
			}
			if logZ := p.logF[0]; !(elbo < logZ && logZ < eubo) {
				t.Errorf("ELBO %g, log Z %g, EUBO %g", elbo, logZ, eubo)
			}
			// The divergence of objects is less than that of their paths.
			if kl := stat.KullbackLeibler(objects, gfn.Normalise(p.logR)); !(kl > 0 && kl <= p.logF[0]-elbo+1e-12) {
				t.Errorf("KL %g, by path %g", kl, p.logF[0]-elbo)
			}
		})
	}
}

// TestTabulate compares a policy's tables with its logits, normalised on the host.
func TestTabulate(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 4, Dims: 2}, seed)
	p.randomise(seed)
	for _, learn := range []bool{true, false} {
		p.table.LearnBackward = learn
		tables, err := p.dag.Tabulate(backend(), p.store, "policy", p.table, []*tensors.Tensor{blank(2)})
		if err != nil {
			t.Fatal(err)
		}
		want := p.current()
		if !learn {
			want.LogPB = p.dag.UniformBack()
		}
		for i, got := range tables {
			for _, d := range []float64{farthest(got.LogPF, want.LogPF), farthest(got.LogPB, want.LogPB), farthest(got.Flow, want.Flow)} {
				if !(d < 1e-12) {
					t.Errorf("row %d, learned backward %t: off by %g", i, learn, d)
				}
			}
		}
		if len(tables) != 2 {
			t.Errorf("%d tables for two observations", len(tables))
		}
	}
	if _, err := p.dag.Tabulate(backend(), p.store, "policy", broken{}, []*tensors.Tensor{blank(1)}); err == nil {
		t.Error("no error from a policy that panics")
	}
}

// broken is a policy that panics, with something that is not an error.
type broken struct{ gfn.Policy }

// TestImpossible checks objects without reward, and a state that leads to no other: they make nothing undefined.
func TestImpossible(t *testing.T) {
	p := newProblem(t, envs.Sequence{Sizes: []int{3, 2}}, testkit.Seed(t))
	p.logR[1], p.logR[2], p.logR[3] = math.Inf(-1), math.Inf(-1), math.Inf(-1)
	_, logPF := p.dag.Solve(p.logR, p.logPB)
	exact := gfn.Table{LogPF: logPF, LogPB: p.logPB}
	logZ := gfn.LogSumExp(p.logR)
	if d := math.Abs(logPF[slices.IndexFunc(p.dag.Edges, func(e gfn.Edge) bool { return e.From == 2 })] + math.Ln2); !(d < 1e-15) {
		t.Errorf("P_F where nothing flows is off by %g", d)
	}
	if d := farthest(p.dag.Terminating(exact), gfn.Normalise(p.logR)); !(d < 1e-12) {
		t.Errorf("objects are off by %g", d)
	}
	if d := math.Abs(p.dag.ELBO(exact, p.logR) - logZ); !(d < 1e-12) {
		t.Errorf("ELBO is off by %g", d)
	}
	if d := math.Abs(p.dag.EUBO(exact, p.logR) - logZ); !(d < 1e-12) {
		t.Errorf("EUBO is off by %g", d)
	}
}

func TestMeasures(t *testing.T) {
	p, q := []float64{0.5, 0.5, 0}, []float64{0.25, 0.25, 0.5}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"TotalVariation", gfn.TotalVariation(p, q), 0.5},
		{"TotalVariation of itself", gfn.TotalVariation(q, q), 0},
		{"KL", stat.KullbackLeibler(p, q), math.Ln2},
		{"KL of itself", stat.KullbackLeibler(q, q), 0},
		{"KL to a smaller support", stat.KullbackLeibler(q, p), math.Inf(1)},
		{"LogSumExp", gfn.LogSumExp([]float64{1000, 1000}), 1000 + math.Ln2},
		{"LogSumExp of small", gfn.LogSumExp([]float64{-1000, -1000, math.Inf(-1)}), -1000 + math.Ln2},
		{"LogSumExp of nothing", gfn.LogSumExp(nil), math.Inf(-1)},
		{"Normalise", gfn.Normalise([]float64{700, 700 + math.Log(3)})[1], 0.75},
	} {
		if c.got != c.want && !(math.Abs(c.got-c.want) < 1e-12) {
			t.Errorf("%s = %g, want %g", c.name, c.got, c.want)
		}
	}
}

// TestUniformBack counts parents.
func TestUniformBack(t *testing.T) {
	d := enumerate(t, envs.Subset{Items: 4, Size: 3})
	sets := d.States()[0].Value().([][]int32)
	for i, l := range d.UniformBack() {
		parents := 0
		for _, in := range sets[d.Edges[i].To] {
			parents += int(in)
		}
		if !(math.Abs(l+math.Log(float64(parents))) < 1e-15) {
			t.Errorf("edge %d: log P_B is %g with %d parents", i, l, parents)
		}
	}
}

// TestEstimate compares hand values.
func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		logW []float64
		want gfn.Estimate
	}{
		{[]float64{math.Log(5), math.Log(5), math.Log(5), math.Log(5)}, gfn.Estimate{LogZ: math.Log(5), ESS: 4, ELBO: math.Log(5)}},
		// One weight has it all: mean 1/2, sample variance 1/2, relative standard error sqrt(1/4) / (1/2).
		{[]float64{0, math.Inf(-1)}, gfn.Estimate{LogZ: -math.Ln2, StdErr: 1, ESS: 1, ELBO: math.Inf(-1)}},
		// 1 and 3: mean 2, sample variance 2, standard error 1, relative 1/2; (1+3)^2 / (1+9).
		{[]float64{0, math.Log(3)}, gfn.Estimate{LogZ: math.Ln2, StdErr: 0.5, ESS: 1.6, ELBO: math.Log(3) / 2}},
		// The same far from 1.
		{[]float64{-900, math.Log(3) - 900}, gfn.Estimate{LogZ: math.Ln2 - 900, StdErr: 0.5, ESS: 1.6, ELBO: math.Log(3)/2 - 900}},
		{[]float64{7}, gfn.Estimate{LogZ: 7, ESS: 1, ELBO: 7}},
	} {
		got := gfn.EstimateLogZ(c.logW)
		a, b := []float64{got.LogZ, got.StdErr, got.ESS, got.ELBO}, []float64{c.want.LogZ, c.want.StdErr, c.want.ESS, c.want.ELBO}
		for i := range a {
			if a[i] != b[i] && !(math.Abs(a[i]-b[i]) < 1e-12) {
				t.Errorf("EstimateLogZ(%v) = %+v, want %+v", c.logW, got, c.want)
				break
			}
		}
	}
}

// TestCoverage checks that an estimate of log Z is within 1.96 standard errors as often as it says, and that half of the
// standard error would not do. The log-weights are those of trajectories, drawn on the host.
func TestCoverage(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 3, Dims: 2}, seed)
	p.shift("policy/forward", seed, 0.2)
	now := p.current()
	paths := allPaths(p.dag)
	w := forwardWeights(paths, now)
	r := rng.New(seed, "coverage")
	const repeats, n = 2000, 400
	within, tight, meanZ := 0, 0, 0.0
	for range repeats {
		logW := make([]float64, n)
		for i := range logW {
			u, k := r.Float64(), 0
			for k < len(w)-1 && u >= w[k] {
				u -= w[k]
				k++
			}
			logW[i] = p.logR[object(p.dag, paths[k])] + total(now.LogPB, paths[k]) - total(now.LogPF, paths[k])
		}
		e := gfn.EstimateLogZ(logW)
		off := math.Abs(e.LogZ - p.logF[0])
		if off < 1.96*e.StdErr {
			within++
		}
		if off < 1.96*e.StdErr/2 {
			tight++
		}
		meanZ += math.Exp(e.LogZ-p.logF[0]) / repeats
	}
	// 95% of 2000 have a standard deviation of 0.5%; the approximation is good to one or two percent.
	if c := float64(within) / repeats; !(math.Abs(c-0.95) < 0.03) {
		t.Errorf("coverage %g", c)
	}
	if c := float64(tight) / repeats; !(c < 0.85) {
		t.Errorf("coverage %g with half the standard error", c)
	}
	if !(math.Abs(meanZ-1) < 0.01) {
		t.Errorf("mean of Z is off by %g", meanZ-1)
	}
}
