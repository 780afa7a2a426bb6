package main

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

// setting is how a model is learned.
type setting struct {
	Seed               uint64
	Batch, Samples     int
	Dreams             int
	First, E           int
	Updates            uint64
	RatePhi, RateTheta float64
}

// adam trains the variables below a scope, at a rate that falls in the second half.
func adam(scope string, rate float64, updates uint64) optim.Optimizer {
	fall := optim.Fall{From: updates / 2, To: updates, End: 0.03}
	return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: rate, Fall: fall}}}}
}

func (s setting) spec(m RNA, data em.Data) em.Spec {
	steps := uint64(s.First) + s.Updates*uint64(max(s.E, 1))
	return em.Spec{
		Model: m, Env: m.Folding, Policy: policy{m}, Data: data, Seed: s.Seed,
		Wake:  em.Wake{Objective: gfn.VarGrad{}, Samples: s.Samples, Rescore: true, Optimizer: adam(em.Phi, s.RatePhi, steps)},
		Sleep: em.Sleep{Weight: 1, Batch: s.Dreams},
		Gate:  em.Blocks{First: s.First, E: s.E},
		MStep: em.MStep{Latents: em.Weighted{}, Optimizer: adam(em.Theta, s.RateTheta, s.Updates)},
	}
}

// variation is the mean total variation of q from the exact posterior over sequences, by enumeration.
func variation(b compute.Backend, store *model.Store, m RNA, x []*tensors.Tensor) (mean float64, structures int, err error) {
	exact, err := em.Classical{Model: m, Env: m.Folding}.Posteriors(b, store, x...)
	if err != nil {
		return 0, 0, err
	}
	dags, of, err := gfn.EnumerateEach(b, m.Folding, x, 1<<17)
	if err != nil {
		return 0, 0, err
	}
	for i, l := range exact {
		dag := dags[of[i]]
		tables, err := dag.Tabulate(b, store, em.Phi, policy{m}, row(x, i))
		if err != nil {
			return 0, 0, err
		}
		mean += gfn.TotalVariation(l.P, dag.Terminating(tables[0])) / float64(len(exact))
		structures += len(l.P)
	}
	return mean, structures / len(exact), nil
}

// row is one observation.
func row(x []*tensors.Tensor, i int) (out []*tensors.Tensor) {
	for _, t := range x {
		w := t.Shape().Dim(1)
		out = append(out, tensors.FromFlatDataAndDimensions(tensors.MustCopyFlatData[int32](t)[i*w:(i+1)*w], 1, w))
	}
	return out
}
