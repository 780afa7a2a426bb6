package em_test

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// What is in a parcel of a given weight: what has been learned is asked about observations that were not learned from.
func ExampleLearner_Posterior() {
	b, err := backend.Open("simd")
	if err != nil {
		panic(err)
	}
	adam := func(scope string, rate float64) optim.Optimizer {
		return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: rate}}}}
	}
	learner, err := em.New(b, nn.NewStore(1), em.Spec{
		Model: parcel{}, Env: envs.Uniform(2, 2), Policy: packer{},
		Data:  em.Full(tensors.FromValue([][]float32{{0}, {1}, {3}, {4}})),
		Wake:  em.Wake{Objective: gfn.VarGrad{}, Samples: 8, Optimizer: adam(em.Phi, 0.01)},
		Sleep: em.Sleep{Weight: 1, Batch: 32},
		MStep: em.MStep{Optimizer: adam(em.Theta, 0.02)},
	})
	if err != nil {
		panic(err)
	}
	defer learner.Close()
	if err := learner.Train(context.Background(), func(s em.State) bool { return s.M == 500 }, nil); err != nil {
		panic(err)
	}
	q, err := learner.Posterior()
	if err != nil {
		panic(err)
	}
	defer q.Close()
	x := tensors.FromValue([][]float32{{1.1}, {3.2}})
	z, err := q.Greedy(x)
	if err != nil {
		panic(err)
	}
	fmt.Println("in them:", z[0].Value())
	logQ, err := q.LogProb(z, x)
	if err != nil {
		panic(err)
	}
	logX, err := q.LogLikelihood(1000, x)
	if err != nil {
		panic(err)
	}
	for i := range logX {
		fmt.Printf("probability %.1f, log p(x) %.1f\n", math.Exp(logQ[i]), logX[i].LogZ)
	}
	c, err := q.Calibrate(em.Calibrate{})
	if err != nil {
		panic(err)
	}
	fmt.Println("calibrated:", c.OK())
	// Output:
	// in them: [[1 0] [0 1]]
	// probability 1.0, log p(x) -1.2
	// probability 0.9, log p(x) -1.3
	// calibrated: true
}
