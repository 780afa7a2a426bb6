package em

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
)

// ClassicalPosterior is what a classical learner puts in the place of the GFlowNet.
type ClassicalPosterior int

const (
	// Exact enumerates the posterior: every update follows the gradient of log p(x), which is that of the expected
	// log-joint under p(z|x).
	Exact ClassicalPosterior = iota
	// MeanField restricts it to a product of independent choices, fitted to each observation by coordinate ascent.
	MeanField
)

// Classical learns a model whose latents are sequences few enough to list, by EM without a GFlowNet: the reference that
// GFlowNet-EM is compared with.
type Classical struct {
	Model     lvm.Model
	Env       envs.Sequence
	Data      Data
	Posterior ClassicalPosterior
	// Sweeps of coordinate ascent for MeanField; 0 means 10.
	Sweeps int
	// Optimizer of Theta; no groups means Adam with rate 1e-3.
	Optimizer optim.Optimizer
}

// Train makes a number of updates of the variables below Theta and returns the mean bound per datum of the last one:
// log p(x) for Exact, the evidence lower bound for MeanField. It fails with ErrDiverged if five updates in a row are
// not finite.
func (c Classical) Train(b compute.Backend, store *model.Store, updates uint64) (float64, error) {
	if err := c.check(); err != nil {
		return 0, blame.Caller(fmt.Errorf("classical EM: %w", err))
	}
	step := newClassicalStep(c, program.NewSet(b, store))
	defer step.programs.Close()
	l := Loop[[]*tensors.Tensor, struct{}]{Data: c.Data, M: step}
	var bound float64
	for i := range updates {
		r, err := l.Step()
		if err != nil {
			return 0, fmt.Errorf("classical EM, update %d: %w", i, err)
		}
		bound = -r.M.Loss
	}
	return bound, nil
}

// classicalStep is an M-step whose E-step is part of its loss.
type classicalStep struct {
	optimizer optim.Optimizer
	programs  *program.Set
	update    *program.Program[classicalArgs, Update]
}

type classicalIn[R, T any] struct {
	Rates R
	X     []T
}

type classicalArgs = classicalIn[[]float32, *tensors.Tensor]

func newClassicalStep(c Classical, s *program.Set) classicalStep {
	m := classicalStep{optimizer: orAdam(c.Optimizer, Theta), programs: s}
	m.update = program.New[classicalArgs, Update](s, "classical EM", func(in classicalIn[*Node, *Node]) UpdateNodes {
		bound := c.bound(s.Store.Scope(Theta), in.X)
		loss := Neg(ReduceAllMean(bound))
		out := Updated(loss, m.optimizer.Minimize(s.Store, loss, in.Rates))
		out.Scores = scoresOf(bound)
		return out
	})
	return m
}

// Maximize implements MStepper.
func (m classicalStep) Maximize(at Moment, x []*tensors.Tensor, _ struct{}) (Maximization, error) {
	out, err := m.update.Call(classicalArgs{m.optimizer.Rates(at.M), x})
	return NewMaximization(out), err
}

// LogLikelihood returns the mean of log p(x) over observations, by enumeration.
func (c Classical) LogLikelihood(b compute.Backend, store *model.Store, x ...*tensors.Tensor) (float64, error) {
	type data[T any] struct{ X []T }
	type mean[T any] struct{ LogP T }
	c.Posterior = Exact
	out, err := program.Once[data[*tensors.Tensor], mean[float64]](b, store, "exact log-likelihood", func(in data[*Node]) mean[*Node] {
		return mean[*Node]{ReduceAllMean(c.bound(store.Scope(Theta), in.X))}
	}, data[*tensors.Tensor]{x})
	return out.LogP, err
}

// bound returns log p(x), or the best factorised bound of it, [B].
func (c Classical) bound(theta *model.Scope, x gfn.Batch) *Node {
	blame.Rows(blame.Argument("the batch of classical EM"), x, sizeOf(x))
	z := c.all(x[0].Graph())
	logP := lvm.Table(c.Model, theta, x, gfn.State{z}) // [B,Z]
	if c.Posterior == Exact {
		top := StopGradient(ReduceAndKeep(logP, ReduceMax, 1))
		return Add(Squeeze(top, 1), Log(ReduceSum(Exp(Sub(logP, top)), 1)))
	}
	q, entropy := c.factorised(StopGradient(logP))
	return Add(ReduceSum(Mul(q, logP), 1), entropy)
}

// factorised fits q(z) = prod_t q_t(z_t) to each row of logP by coordinate ascent from the uniform distribution, and
// returns q(z), [B,Z], and its entropy, [B].
//
// Position t of latent number k is digit t of k, the first one changing fastest (see all). So a sweep is two passes
// over shrinking tables: one averages positions out from the last on, with the factors of the sweep before, and one
// brings them back from the first on, with new factors.
func (c Classical) factorised(logP *Node) (q, entropy *Node) {
	g, dtype, b := logP.Graph(), logP.DType(), logP.Shape().Dim(0)
	sizes := c.Env.Sizes
	factors := make([]*Node, len(sizes)) // [B,size]
	for t, size := range sizes {
		factors[t] = AddScalar(Zeros(g, shapes.Make(dtype, b, size)), 1/float64(size))
	}
	sweeps := c.Sweeps
	if sweeps == 0 {
		sweeps = 10
	}
	for range sweeps {
		rest := make([]*Node, len(sizes)) // [B,size,low]: logP by positions 0..t, averaged over the later ones
		mean := logP
		for t, size := range slices.Backward(sizes) {
			rest[t] = Reshape(mean, b, size, -1)
			mean = ReduceSum(Mul(rest[t], widen(factors[t], 2, rest[t])), 1)
		}
		q = Ones(g, shapes.Make(dtype, b, 1)) // [B,low]: the product of the new factors of earlier positions
		for t := range sizes {
			factors[t] = Softmax(ReduceSum(Mul(rest[t], widen(q, 1, rest[t])), 2))
			q = Reshape(Mul(widen(factors[t], 2, rest[t]), widen(q, 1, rest[t])), b, -1)
		}
	}
	entropy = Zeros(g, shapes.Make(dtype, b))
	for _, f := range factors {
		entropy = Sub(entropy, ReduceSum(Mul(f, Log(MaxScalar(f, 1e-30))), 1))
	}
	return q, entropy
}

// widen inserts an axis into x and repeats it along that axis to the shape of like.
func widen(x *Node, axis int, like *Node) *Node {
	return BroadcastToShape(InsertAxes(x, axis), like.Shape())
}

// all lists every sequence, [Z,T].
func (c Classical) all(g *Graph) *Node {
	count := 1
	for _, s := range c.Env.Sizes {
		count *= s
	}
	flat := make([]int32, 0, count*len(c.Env.Sizes))
	for k := range count {
		rest := k
		for _, s := range c.Env.Sizes {
			flat = append(flat, int32(rest%s))
			rest /= s
		}
	}
	return Const(g, tensors.FromFlatDataAndDimensions(flat, count, len(c.Env.Sizes)))
}
