// Large learns a noisy-OR network of 200 hidden causes and 1,000 visible effects by GFlowNet-EM, where no posterior can
// be enumerated, and compares it with mean-field EM. The folder above has the same model with ten causes.
//
//	go run ./examples/noisyor/large -seed 1
//
// Model.go has the model and the policy, this file the loop and the comparison. Mean-field EM is in meanfield.go, two
// estimates of what a model has learned in likelihood.go and annealing.go, what mean field and annealing share in
// tables.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/floats"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// # The loop

const (
	batch   = 32   // observations of an update
	phiRate = 3e-3 // of the policy
)

// The rates of the model that both ways of learning choose from, by validation data.
var thetaRates = []float64{0.003, 0.01, 0.03}

// learner alternates E- and M-steps; with the gate em.Never the model stays as it is.
func (m network) learner(b compute.Backend, store *model.Store, data em.Data, rate float64, updates uint64, gate em.Gate) (
	*em.Learner, error,
) {
	return em.New(b, store, em.Spec{
		Model: m, Env: m.env(), Policy: policy{m}, Data: data,
		// E-steps compare four samples of each observation, and learn from as many dreams as there are observations.
		Wake:  em.Wake{Objective: gfn.VarGrad{}, Samples: 4, Optimizer: adam(em.Phi, phiRate, updates)},
		Sleep: em.Sleep{Weight: 1, Batch: batch},
		Gate:  gate,
		// M-steps learn from the samples of wake, each with its importance weight.
		MStep: em.MStep{Latents: em.Weighted{}, Optimizer: adam(em.Theta, rate, updates)},
	})
}

// adam trains the variables below a scope at a rate that falls in the second half.
func adam(scope string, rate float64, updates uint64) optim.Optimizer {
	fall := optim.Fall{From: updates / 2, To: updates, End: 0.05}
	return optim.Optimizer{ClipNorm: 10, Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: rate, Fall: fall}}}}
}

// # The comparison

// experiment is the data of a seed, drawn from a model whose parameters are random.
type experiment struct {
	network
	b                       compute.Backend
	seed, updates           uint64
	care                    care // of the estimates
	train, validation, test *tensors.Tensor
	began                   time.Time
}

func (e experiment) data() em.Data { return must(em.Shuffled(e.seed, batch, e.train)) }

// start is where all models start from.
func (e experiment) start() *model.Store { return nn.NewStore(e.seed + 1) }

// say prints a line of progress.
func (e experiment) say(format string, args ...any) {
	fmt.Printf("%4.0f s  %s\n", time.Since(e.began).Seconds(), fmt.Sprintf(format, args...))
}

// byGFlowNet learns the model by GFlowNet-EM, and returns log p(x) of validation data, as q estimates it.
func (e experiment) byGFlowNet(rate float64) (*model.Store, float64) {
	store, logP := e.start(), 0.0
	l := must(e.learner(e.b, store, e.data(), rate, e.updates, em.Blocks{First: 50}))
	defer l.Close()
	q := must(l.Posterior())
	defer q.Close()
	each := func(r em.Report) error {
		if r.M == nil || r.State.M%(e.updates/4) != 0 {
			return nil
		}
		v := em.Summarise(must(q.LogLikelihood(32, e.validation)))
		e.say("GFlowNet-EM, rate %g, update %d: log p(x) of validation data %.3f, bound %.3f", rate, r.State.M, v.LogP, v.ELBO)
		logP = v.LogP
		return nil
	}
	must(0, l.Train(context.Background(), func(s em.State) bool { return s.M == e.updates }, each))
	return store, logP
}

// best learns at all rates, and returns the model with the best mark on validation data.
func best(rates []float64, learn func(rate float64) (*model.Store, float64)) *model.Store {
	stores, marks := make([]*model.Store, len(rates)), make([]float64, len(rates))
	var wg sync.WaitGroup
	for i, rate := range rates {
		wg.Go(func() { stores[i], marks[i] = learn(rate) })
	}
	wg.Wait()
	return stores[floats.MaxIdx(marks)]
}

func main() {
	e := experiment{network: network{causes: 200, most: 12}, began: time.Now()}
	flag.Uint64Var(&e.seed, "seed", 1, "of everything random")
	flag.Uint64Var(&e.updates, "updates", 800, "of each model")
	rate := flag.Float64("rate", 0, "of the model; 0: the best of three by validation data, for each way of learning")
	hasty := flag.Bool("quick", false, "judge models by 100 observations instead of 200, and by fewer samples")
	figure := flag.String("figure", "", "also draw learned beside true weights, as PATH.png and PATH.svg")
	flag.Parse()
	if e.updates < 4 {
		log.Fatal("-updates must be 4 or more")
	}
	e.b = must(backend.Open(""))
	truth := nn.NewStore(e.seed)
	draw := func(name string, n int) *tensors.Tensor {
		return must(lvm.Draw(e.b, truth.Scope(em.Theta), e.network, rng.Key(e.seed, name), n)).X[0]
	}
	held := 200 // observations for validation, and for tests
	if e.care = careful; *hasty {
		e.care, held = quick, 100
	}
	e.train, e.validation, e.test = draw("train", 4000), draw("validation", held), draw("test", held)

	tried := thetaRates
	if *rate > 0 {
		tried = []float64{*rate}
	}
	var byGFlowNet, byMeanField *model.Store
	var wg sync.WaitGroup
	wg.Go(func() { byMeanField = best(tried, e.byMeanField) })
	wg.Go(func() { byGFlowNet = best(tried, e.byGFlowNet) })
	wg.Wait()

	models := e.judge(truth, byGFlowNet, byMeanField)
	fmt.Print(e.table(models))
	if *figure != "" {
		must(0, e.draw(*figure, models))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
