package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
)

// setting is how a model is learned.
type setting struct {
	Seed               uint64
	Updates            uint64 // M-steps
	First              int    // E-steps before the first M-step
	Batch, Samples     int    // sequences, and structures of each
	Dreams             int
	RatePhi, RateTheta float64
}

func defaults(seed, updates uint64) setting {
	return setting{
		Seed: seed + 1, Updates: updates, First: 200, Batch: 16, Samples: 8, Dreams: 16, RatePhi: 3e-3, RateTheta: 0.02,
	}
}

// adam trains the variables below a scope, at a rate that falls in the second half.
func adam(scope string, rate float64, updates uint64) optim.Optimizer {
	fall := optim.Fall{From: updates / 2, To: updates, End: 0.03}
	return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: rate, Fall: fall}}}}
}

func (s setting) spec(m RNA, data em.Data) em.Spec {
	return em.Spec{
		Model: m, Env: m.Folding, Policy: policy{m}, Data: data, Seed: s.Seed,
		Wake: em.Wake{
			Objective: gfn.VarGrad{}, Samples: s.Samples, Rescore: true,
			Optimizer: adam(em.Phi, s.RatePhi, uint64(s.First)+s.Updates),
		},
		Sleep: em.Sleep{Weight: 1, Batch: s.Dreams},
		Gate:  em.Blocks{First: s.First},
		MStep: em.MStep{Latents: em.Weighted{}, Optimizer: adam(em.Theta, s.RateTheta, s.Updates)},
	}
}

// learn trains by GFlowNet-EM.
func (s setting) learn(b compute.Backend, store *model.Store, m RNA, data em.Data) error {
	l, err := em.New(b, store, s.spec(m, data))
	if err != nil {
		return err
	}
	defer l.Close()
	began, ess, loss, bound := time.Now(), 0.0, 0.0, 0.0
	every := max(1, s.Updates/10)
	return l.Train(context.Background(), func(at em.State) bool { return at.M == s.Updates }, func(r em.Report) error {
		if r.M == nil {
			return nil
		}
		ess, loss, bound = ess+r.Metrics["m/ess"]/float64(every), loss+r.Wake.Loss/float64(every), bound-r.M.Loss/float64(every)
		if at := r.State.M; at%every == 0 {
			fmt.Printf("  update %5d of %d: loss of wake %.3f, effective samples %.2f of %d, log p(x,z) %.2f, %.0f s\n",
				at, s.Updates, loss, ess, s.Samples, bound, time.Since(began).Seconds())
			ess, loss, bound = 0, 0, 0
		}
		return nil
	})
}

// summed is the model whose structures the dynamic program adds up, so that nothing is hidden.
type summed struct{ RNA }

func (m summed) LogJoint(theta *model.Scope, x gfn.Batch, _ gfn.State) *Node {
	logP, _ := m.Inside(theta, sequencesOf(x).Bases)
	return ConvertDType(logP, float)
}

// told is the model whose structures are known.
type told struct{ RNA }

func (m told) LogJoint(theta *model.Scope, x gfn.Batch, _ gfn.State) *Node {
	in := sequencesOf(x)
	return m.RNA.LogJoint(theta, x, m.Of(in.Known, in.Code))
}

// classical trains a model that hides nothing: its only latent is one that says nothing.
func (s setting) classical(b compute.Backend, store *model.Store, m lvm.Model, data em.Data) error {
	began, every := time.Now(), max(1, s.Updates/10)
	c := em.Classical{Model: m, Env: envs.Sequence{Sizes: []int{1}}, Optimizer: adam(em.Theta, s.RateTheta, s.Updates)}
	c.Data = func(at uint64) []*tensors.Tensor {
		if at > 0 && at%every == 0 {
			fmt.Printf("  update %5d of %d, %.0f s\n", at, s.Updates, time.Since(began).Seconds())
		}
		return data(at)
	}
	last, err := c.Train(b, store, s.Updates)
	if err == nil {
		fmt.Printf("  update %5d of %[1]d: mean log-probability of the last batch %.2f, %.0f s\n", s.Updates, last, time.Since(began).Seconds())
	}
	return err
}
