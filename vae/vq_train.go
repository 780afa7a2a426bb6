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

// updateIn is what updates of our own take: images to pick, the learning rates and, if they draw, a key.
type updateIn[R, T any] struct {
	Key   T
	Rates R
	X     []T
}

type (
	hostIn  = updateIn[[]float32, host]
	nodesIn = updateIn[*Node, *Node]
)

// vqOut is what an update of a VQ-VAE returns.
type vqOut[U, T any] struct {
	Update                                 U
	Reconstruction, Commitment, Perplexity T
}

// vqStep makes the updates of a VQ-VAE, as M-steps without latents.
type vqStep struct {
	optimizer optim.Optimizer
	update    *program.Program[hostIn, vqOut[em.Update, float64]]
}

func newVQStep(s *program.Set, size Size, o optim.Optimizer) vqStep {
	update := func(in nodesIn) vqOut[em.UpdateNodes, *Node] {
		l := VQ{size}.loss(s.Store.Scope(em.Theta), pick(in.X)[0])
		r := o.Minimize(s.Store, l.total, in.Rates, l.changes...)
		return vqOut[em.UpdateNodes, *Node]{em.Updated(l.total, r), l.reconstruction, l.commitment, l.perplexity}
	}
	return vqStep{o, program.New[hostIn, vqOut[em.Update, float64]](s, "VQ-VAE", update)}
}

// Maximize implements em.MStepper.
func (v vqStep) Maximize(at em.Moment, x []*tensors.Tensor, _ em.Inferred) (em.Maximization, error) {
	out, err := v.update.Call(hostIn{Rates: v.optimizer.Rates(at.M), X: x})
	if err != nil {
		return em.Maximization{}, fmt.Errorf("update %d: %w", at.M, err)
	}
	return em.Maximization{Update: out.Update, Accepted: math.NaN(), Metrics: map[string]float64{
		"loss": out.Update.Loss, "grad_norm": out.Update.GradNorm,
		"reconstruction": out.Reconstruction, "commitment": out.Commitment, "perplexity": out.Perplexity,
	}}, nil
}
