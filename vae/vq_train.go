package vae

import (
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/optim"
)

// vqStep makes the updates of a VQ-VAE, as M-steps without latents.
type vqStep struct {
	optimizer optim.Optimizer
	update    *program.Program[vqIn, vqOut]
}

type vqIn struct {
	Rates []float32
	X     []*tensors.Tensor
}

type vqNodes struct {
	Rates *Node
	X     []*Node
}

type vqOut struct {
	Update                                 em.Update
	Reconstruction, Commitment, Perplexity float64
}

type vqResult struct {
	Update                                 struct{ Loss, GradNorm, OK *Node }
	Reconstruction, Commitment, Perplexity *Node
}

func newVQStep(s *program.Set, size Size, o optim.Optimizer) vqStep {
	return vqStep{o, program.New[vqIn, vqOut](s, "VQ-VAE", func(in vqNodes) vqResult {
		l := VQ{size}.loss(s.Store.Scope(em.Theta), pick(in.X)[0])
		r := o.Minimize(s.Store, l.total, in.Rates, l.changes...)
		out := vqResult{Reconstruction: l.reconstruction, Commitment: l.commitment, Perplexity: l.perplexity}
		out.Update.Loss, out.Update.GradNorm, out.Update.OK = l.total, r.GradNorm, r.OK
		return out
	})}
}

// Maximize implements em.MStepper.
func (v vqStep) Maximize(at em.Moment, x, _ []*tensors.Tensor) (em.Maximization, error) {
	out, err := v.update.Call(vqIn{v.optimizer.Rates(at.M), x})
	if err != nil {
		return em.Maximization{}, fmt.Errorf("update %d: %w", at.M, err)
	}
	return em.Maximization{Update: out.Update, Accepted: math.NaN(), Metrics: map[string]float64{
		"loss": out.Update.Loss, "grad_norm": out.Update.GradNorm,
		"reconstruction": out.Reconstruction, "commitment": out.Commitment, "perplexity": out.Perplexity,
	}}, nil
}
