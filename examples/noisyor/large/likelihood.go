package main

import (
	"fmt"
	"math"
	"sync"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/report"
)

// # The likelihood of a model
//
// Whoever has learned a model, its log p(x) is estimated in the same two ways: by importance sampling, where samples
// come from a GFlowNet that is trained from scratch for this model, which stays as it is; and by annealing.

// care is how much work goes into an estimate.
type care struct{ updates, samples, chains, temperatures int }

var (
	careful = care{updates: 100, samples: 100, chains: 8, temperatures: 300}
	quick   = care{updates: 60, samples: 50, chains: 8, temperatures: 200}
)

// learnt is a model and what is found out about it.
type learnt struct {
	name              string
	store             *model.Store
	sampled, annealed []gfn.Estimate // by test observation
	chances           []float64      // p(effect | cause) without leaks, of all links
}

// judge finds out about the true model and those that were learned by GFlowNet-EM and by mean-field EM.
func (e experiment) judge(truth, byGFlowNet, byMeanField *model.Store) []*learnt {
	models := []*learnt{
		{name: "truth", store: truth}, {name: "GFlowNet-EM", store: byGFlowNet}, {name: "mean-field EM", store: byMeanField},
	}
	var wg sync.WaitGroup
	for _, l := range models {
		wg.Go(func() {
			l.sampled = must(e.sample(l.store, e.care))
			all := newTabler(e.b, l.store, e.network).of(e.test)
			l.annealed = anneal(all, e.seed, e.care.chains, e.care.temperatures)
			l.chances = must(e.chances(l.store))
			s, a := em.Summarise(l.sampled), em.Summarise(l.annealed)
			e.say("%s: log p(x) of test data %.3f, by annealing %.3f", l.name, s.LogP, a.LogP)
		})
	}
	wg.Wait()
	return models
}

// sample estimates log p(x) of test observations by importance sampling.
func (e experiment) sample(theta *model.Store, c care) ([]gfn.Estimate, error) {
	store := nn.NewStore(e.seed + 2)
	l, err := e.learner(e.b, store, e.data(), thetaRates[0], uint64(c.updates), em.Never)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for v := range theta.Scope(em.Theta).IterVariables() {
		if err := store.GetVariable(v.Path()).SetValue(must(v.MustValue().LocalClone())); err != nil {
			return nil, err
		}
	}
	for range c.updates {
		if _, err := l.Step(); err != nil {
			return nil, err
		}
	}
	q, err := l.Posterior()
	if err != nil {
		return nil, err
	}
	defer q.Close()
	return q.LogLikelihood(c.samples, e.test)
}

// chances are the probabilities of effects if a cause is present and nothing else, of all links.
func (e experiment) chances(store *model.Store) ([]float64, error) {
	t, err := model.CallOnce(e.b, store, func(_ *model.Scope, g *Graph) *Node {
		return OneMinus(Exp(Neg(e.rates(store.Scope(em.Theta), g).weights)))
	})
	if err != nil {
		return nil, err
	}
	return xslices.Map(tensors.MustCopyFlatData[float32](t), func(p float32) float64 { return float64(p) }), nil
}

// table compares models; the first one is the truth, the last one that of mean field.
func (e experiment) table(models []*learnt) *report.Table {
	t := &report.Table{
		Title: fmt.Sprintf("seed %d: log p(x) of %d test observations, after %d updates", e.seed, len(models[0].sampled),
			e.updates),
		Columns: report.Columns("model", "log p(x)", "effective samples", "by annealing", "effective chains",
			"above mean field", "by annealing", "error of p(effect | cause)"),
		Notes: []string{
			fmt.Sprintf("%d samples of a GFlowNet trained for each model; %d chains of %d temperatures", e.care.samples,
				e.care.chains, e.care.temperatures),
			"± of log p(x): standard error by sampling latents; of differences: standard error over test observations",
		},
	}
	truth, field := models[0], models[len(models)-1]
	for _, l := range models {
		s, a := em.Summarise(l.sampled), em.Summarise(l.annealed)
		t.Add(report.Text(l.name),
			report.MeanStd(s.LogP, s.SampleErr, 3), report.Number(s.ESS, 1),
			report.MeanStd(a.LogP, a.SampleErr, 3), report.Number(a.ESS, 1),
			above(l.sampled, field.sampled), above(l.annealed, field.annealed),
			report.Number(math.Sqrt(squared(l.chances, truth.chances)), 4))
	}
	return t
}

// above is the mean difference of log p(x), observation by observation.
func above(a, b []gfn.Estimate) report.Cell {
	diff := make([]float64, len(a))
	for i := range diff {
		diff[i] = a[i].LogZ - b[i].LogZ
	}
	mean, std := stat.MeanStdDev(diff, nil)
	return report.MeanStd(mean, std/math.Sqrt(float64(len(diff))), 3)
}

// squared is the mean squared difference.
func squared(a, b []float64) (mean float64) {
	for i := range a {
		mean += (a[i] - b[i]) * (a[i] - b[i]) / float64(len(a))
	}
	return mean
}
