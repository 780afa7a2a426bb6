package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
)

// # Beside other estimators
//
// Every method below makes as many updates, and in each of them evaluates seven trajectories for every observation of
// the batch: those of wake, those that are dreamt, and those that the M-step draws for itself, of which a
// Metropolis-Hastings move has two, the one that it undoes and the one that it proposes. All choose from the same
// learning rates, by the log-likelihood of the first seed's validation data.

// way is how q is trained, and what M-steps learn from.
type way struct {
	name      string
	objective gfn.Objective
	wake      int // trajectories of an observation; 0: sleep alone
	dreams    int // for each observation of the batch
	latents   em.Latents
	drawn     int // trajectories that the M-step draws of an observation
	moves     int
	persist   bool
}

var ways = []way{
	{name: "GFlowNet-EM, as above", objective: gfn.VarGrad{}, wake: 4, dreams: 1, latents: em.Drawn{Samples: 2}, drawn: 2},
	{name: "GFlowNet-EM, weighted", objective: gfn.VarGrad{}, wake: 6, dreams: 1, latents: em.Weighted{}},
	{name: "GFlowNet-EM, weighted, no sleep", objective: gfn.VarGrad{}, wake: 7, latents: em.Weighted{}},
	{name: "GFlowNet-EM, a move", objective: gfn.VarGrad{}, wake: 3, dreams: 1, drawn: 3, moves: 1},
	{name: "GFlowNet-EM, a move of chains that persist", objective: gfn.VarGrad{}, wake: 3, dreams: 1, drawn: 3, moves: 1,
		persist: true},
	{name: "RWS, wake-phi", objective: gfn.RWS{}, wake: 7, latents: em.Weighted{}},
	{name: "RWS, wake- and sleep-phi", objective: gfn.RWS{}, wake: 6, dreams: 1, latents: em.Weighted{}},
	{name: "RWS, sleep-phi", dreams: 3, latents: em.Weighted{Samples: 4}, drawn: 4},
	{name: "VIMCO", objective: gfn.VIMCO{}, wake: 7, latents: em.Weighted{}},
	{name: "HVI", objective: gfn.HVI{Samples: 5}, wake: 5, latents: em.Drawn{Samples: 2}, drawn: 2},
}

// The rates that every method chooses from.
var (
	phiRates   = []float64{0.005, 0.01, 0.02, 0.05}
	thetaRates = []float64{0.02, 0.05, 0.1}
)

// rates are a choice of them. Exact and mean-field EM have no phi.
type rates struct{ phi, theta float64 }

// outcome is how a training ended: log p(x) per observation, and the total variation of q from the exact posterior.
type outcome struct{ train, validation, test, tv float64 }

// compared is the data of a seed: 2,000 observations to train on, and 1,000 each to choose rates and to test.
type compared struct {
	b                       compute.Backend
	seed, updates           uint64
	train, validation, test lvm.Pairs
	dag                     *gfn.DAG
}

const comparedBatch = 50

func newCompared(b compute.Backend, seed, updates uint64) compared {
	truth := nn.NewStore(seed)
	draw := func(name string, n int) lvm.Pairs {
		return must(lvm.Draw(b, truth.Scope(em.Theta), noisyOR{}, rng.Key(seed, name), n))
	}
	d := compared{b: b, seed: seed, updates: updates}
	d.train, d.validation, d.test = draw("train", 2000), draw("validation", 1000), draw("test", 1000)
	d.dag = must(gfn.Enumerate(b, env, d.test.X, 1<<12))
	return d
}

// batches are the numbers of the observations of every update.
func (d compared) batches() func(step uint64) []int {
	return must(em.Batches(d.seed, comparedBatch, d.train.X[0].Shape().Dim(0)))
}

func (d compared) data() em.Data { return em.Rows(d.batches(), d.train.X...) }

// learner is what a method learns by.
func (d compared) learner(store *model.Store, w way, r rates) *em.Learner {
	mstep := em.MStep{Latents: w.latents, Moves: w.moves, Optimizer: adam(em.Theta, r.theta, d.updates)}
	if w.persist {
		mstep.Persist = em.Persistent{Data: d.train.X[0].Shape().Dim(0), Rows: d.batches()}
	}
	return must(em.New(d.b, store, em.Spec{
		Model: noisyOR{}, Env: env, Policy: policy{}, Data: d.data(), Seed: d.seed + 1,
		Wake:  em.Wake{Objective: w.objective, Samples: w.wake, Optimizer: adam(em.Phi, r.phi, d.updates)},
		Sleep: em.Sleep{Weight: float64(min(w.dreams, 1)), Batch: w.dreams * comparedBatch, Alone: w.wake == 0},
		Gate:  em.Blocks{First: int(d.updates / 5)},
		MStep: mstep,
	}))
}

func (d compared) classical(p em.ClassicalPosterior, r rates) em.Classical {
	return em.Classical{
		Model: noisyOR{}, Env: env, Data: d.data(), Posterior: p, Optimizer: adam(em.Theta, r.theta, d.updates),
	}
}

// learn trains q and p.
func (d compared) learn(w way, r rates) outcome {
	store := nn.NewStore(d.seed + 1)
	l := d.learner(store, w, r)
	defer l.Close()
	if err := l.Train(context.Background(), func(s em.State) bool { return s.M == d.updates }, nil); err != nil {
		fmt.Printf("%s, rates %v, seed %d: %v\n", w.name, r, d.seed, err) // what it has learned until then counts
	}
	out := d.outcome(store)
	out.tv = d.variation(store)
	return out
}

func (d compared) outcome(store *model.Store) (out outcome) {
	exact := em.Classical{Model: noisyOR{}, Env: env}
	out.train = must(exact.LogLikelihood(d.b, store, d.train.X...))
	out.validation = must(exact.LogLikelihood(d.b, store, d.validation.X...))
	out.test = must(exact.LogLikelihood(d.b, store, d.test.X...))
	return out
}

// variation is the mean total variation of q from the exact posterior of the learned model, over 50 test observations.
func (d compared) variation(store *model.Store) (mean float64) {
	const n = 50
	x := xslices.Map(d.test.X, func(t *tensors.Tensor) *tensors.Tensor { return firstRows(t, n) })
	objects := latents(d.dag.ObjectStates())
	tables := must(d.dag.Tabulate(d.b, store, em.Phi, policy{}, x))
	for i, l := range must(em.Classical{Model: noisyOR{}, Env: env}.Posteriors(d.b, store, x...)) {
		p := map[[causes]int32]float64{}
		for j, z := range latents(l.Z) {
			p[z] = l.P[j]
		}
		exact := xslices.Map(objects, func(z [causes]int32) float64 { return p[z] })
		mean += gfn.TotalVariation(exact, d.dag.Terminating(tables[i])) / n
	}
	return mean
}

func firstRows(t *tensors.Tensor, n int) *tensors.Tensor {
	flat := tensors.MustCopyFlatData[float32](t)
	return tensors.FromFlatDataAndDimensions(flat[:n*effects], n, effects)
}

// contender is a method with what its trainings ended with, by rates and seed.
type contender struct {
	name  string
	tries []rates
	ends  [][]outcome
	learn func(d compared, r rates) outcome
	time  func(d compared, r rates) time.Duration // of an update
}

func contenders() (all []*contender) {
	for _, c := range []struct {
		name string
		p    em.ClassicalPosterior
	}{{"exact EM", em.Exact}, {"mean-field EM", em.MeanField}} {
		all = append(all, &contender{
			name: c.name, tries: xslices.Map(thetaRates, func(theta float64) rates { return rates{theta: theta} }),
			learn: func(d compared, r rates) outcome {
				store := nn.NewStore(d.seed + 1)
				must(d.classical(c.p, r).Train(d.b, store, d.updates))
				return d.outcome(store)
			},
			time: func(d compared, r rates) time.Duration {
				run := func(n uint64) time.Duration {
					began := time.Now()
					must(d.classical(c.p, r).Train(d.b, nn.NewStore(d.seed+1), n))
					return time.Since(began)
				}
				short := run(20) // compiling included, and the scoring at the end
				return (run(220) - short) / 200
			},
		})
	}
	var grid []rates
	for _, phi := range phiRates {
		for _, theta := range thetaRates {
			grid = append(grid, rates{phi, theta})
		}
	}
	for _, w := range ways {
		all = append(all, &contender{
			name: w.name, tries: grid,
			learn: func(d compared, r rates) outcome { return d.learn(w, r) },
			time: func(d compared, r rates) time.Duration {
				l := d.learner(nn.NewStore(d.seed+1), w, r)
				defer l.Close()
				l.Gate = em.Blocks{}
				var began time.Time
				for i := range 220 {
					if i == 20 { // compiled
						began = time.Now()
					}
					must(l.Step())
				}
				return time.Since(began) / 200
			},
		})
	}
	return all
}

// chosen is the choice of rates with the greatest log-likelihood of the first seed's validation data.
func (c *contender) chosen() (best int) {
	for i, ends := range c.ends {
		if ends[0].validation > c.ends[best][0].validation {
			best = i
		}
	}
	return best
}

// cell shows the mean of a number over seeds, and its standard deviation.
func cell(of []float64, decimals int) report.Cell {
	mean, std := stat.MeanStdDev(of, nil)
	return report.MeanStd(mean, std, decimals)
}

// compare trains all methods with all rates on the first seed, and with the best of them on the others. It returns how
// the best ones did, and what all had on the validation data of the first seed. Methods other than exact EM take part if
// their name matches.
func compare(b compute.Backend, first uint64, seeds int, updates uint64, name *regexp.Regexp) (best, choice *report.Table) {
	data := make([]compared, seeds)
	for i := range data {
		data[i] = newCompared(b, first+uint64(i), updates)
	}
	all := contenders()
	all = slices.Concat(all[:1], slices.DeleteFunc(all[1:], func(c *contender) bool { return !name.MatchString(c.name) }))
	for _, c := range all {
		for range c.tries {
			c.ends = append(c.ends, make([]outcome, seeds))
		}
		within(len(c.tries), func(i int) { c.ends[i][0] = c.learn(data[0], c.tries[i]) })
		best := c.chosen()
		within(seeds-1, func(j int) { c.ends[best][j+1] = c.learn(data[j+1], c.tries[best]) })
	}
	runtime.GOMAXPROCS(1) // from here on time is measured

	last := first + uint64(seeds) - 1
	best = &report.Table{
		Title: fmt.Sprintf("log p(x) per test observation after %d updates of seven trajectories an observation", updates),
		Columns: report.Columns("method", "rate of phi", "rate of theta", "log p(x)", "from exact EM", "from exact EM, training data",
			"total variation of q", "ms per update, one core"),
		Notes: []string{fmt.Sprintf("seeds %d to %d: mean ± standard deviation; rates chosen on validation data of seed %[1]d", first, last)},
	}
	choice = &report.Table{
		Title:   fmt.Sprintf("the same per validation observation of seed %d, for all rates (phi, theta)", first),
		Columns: report.Columns("method", "rates and log p(x)"),
	}
	exact := all[0].ends[all[0].chosen()]
	for _, c := range all {
		i := c.chosen()
		phi, tv := report.Cell{}, report.Cell{}
		if c.tries[i].phi > 0 {
			phi = report.Number(c.tries[i].phi, 3)
			tv = cell(xslices.Map(c.ends[i], func(o outcome) float64 { return o.tv }), 3)
		}
		var gaps, onTrain []float64
		for j, o := range c.ends[i] {
			gaps, onTrain = append(gaps, o.test-exact[j].test), append(onTrain, o.train-exact[j].train)
		}
		best.Add(report.Text(c.name), phi, report.Number(c.tries[i].theta, 2),
			cell(xslices.Map(c.ends[i], func(o outcome) float64 { return o.test }), 3), cell(gaps, 3), cell(onTrain, 3),
			tv, report.Number(c.time(data[0], c.tries[i]).Seconds()*1000, 2))
		var tried []string
		for k, r := range c.tries {
			tried = append(tried, fmt.Sprintf("(%g, %g) %.4f", r.phi, r.theta, c.ends[k][0].validation))
		}
		choice.Add(report.Text(c.name), report.Text(strings.Join(tried, "; ")))
	}
	return best, choice
}
