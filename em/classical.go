package em

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
)

// Posterior is what a classical learner puts in the place of the GFlowNet.
type Posterior int

const (
	// Exact enumerates the posterior: every update follows the gradient of log p(x), which is that of the expected
	// log-joint under p(z|x).
	Exact Posterior = iota
	// MeanField restricts it to a product of independent choices, fitted to each observation by coordinate ascent.
	MeanField
)

// Classical learns a model whose latents are sequences few enough to list, by EM without a GFlowNet: the reference that
// GFlowNet-EM is compared with.
type Classical struct {
	Model     lvm.Model
	Env       envs.Sequence
	Data      Data
	Posterior Posterior
	// Sweeps of coordinate ascent for MeanField; 0 means 10.
	Sweeps int
	// Optimizer of Theta; no groups means Adam with rate 1e-3.
	Optimizer optim.Optimizer
}

// Train makes a number of updates of the variables below Theta and returns the mean bound per datum of the last one:
// log p(x) for Exact, the evidence lower bound for MeanField.
func (c Classical) Train(b compute.Backend, store *model.Store, updates uint64) (float64, error) {
	opt := orAdam(c.Optimizer, Theta)
	exec, err := model.NewExec(b, store, func(_ *model.Scope, in []*Node) *Node {
		x := gfn.Batch(in[1:])
		loss := Neg(ReduceAllMean(c.bound(store.Scope(Theta), x)))
		return numbers(loss, opt.Minimize(store, loss, in[0]), nil)
	})
	if err != nil {
		return 0, fmt.Errorf("build classical EM: %w", err)
	}
	defer exec.Finalize()
	var bound float64
	for step := range updates {
		args := []any{opt.Rates(step)}
		for _, t := range c.Data(step) {
			args = append(args, t)
		}
		out, err := exec.Call(args...)
		if err != nil {
			return 0, fmt.Errorf("classical EM, update %d: %w", step, err)
		}
		bound = -tensors.MustCopyFlatData[float64](out[0])[0]
	}
	return bound, nil
}

// LogLikelihood returns the mean of log p(x) over observations, by enumeration.
func (c Classical) LogLikelihood(b compute.Backend, store *model.Store, x ...*tensors.Tensor) (float64, error) {
	args := make([]any, len(x))
	for i := range x {
		args[i] = x[i]
	}
	exact := c
	exact.Posterior = Exact
	out, err := model.CallOnce(b, store, func(_ *model.Scope, in []*Node) *Node {
		return ConvertDType(ReduceAllMean(exact.bound(store.Scope(Theta), gfn.Batch(in))), dtypes.Float64)
	}, args...)
	if err != nil {
		return 0, fmt.Errorf("exact log-likelihood: %w", err)
	}
	return tensors.ToScalar[float64](out), nil
}

// bound returns log p(x), or the best factorised bound of it, [B].
func (c Classical) bound(theta *model.Scope, x gfn.Batch) *Node {
	z := c.all(x[0].Graph())
	logP := lvm.Table(c.Model, theta, x, gfn.State{z}) // [B,Z]
	if c.Posterior == Exact {
		top := StopGradient(ReduceAndKeep(logP, ReduceMax, 1))
		return Add(Squeeze(top, 1), Log(ReduceSum(Exp(Sub(logP, top)), 1)))
	}
	q, entropy := c.factorised(StopGradient(logP), z)
	return Add(ReduceSum(Mul(q, logP), 1), entropy)
}

// factorised fits q(z) = prod_t q_t(z_t) to each row of logP by coordinate ascent from the uniform distribution, and
// returns q(z), [B,Z], and its entropy, [B].
func (c Classical) factorised(logP, z *Node) (q, entropy *Node) {
	g, dtype := logP.Graph(), logP.DType()
	b, count := logP.Shape().Dim(0), logP.Shape().Dim(1)
	members := make([]*Node, len(c.Env.Sizes)) // [Z,size]: which latents have value v at position t
	factors := make([]*Node, len(c.Env.Sizes)) // [B,size]
	at := make([]*Node, len(c.Env.Sizes))      // [B,Z]: q_t at each latent's value
	for t, size := range c.Env.Sizes {
		shape := shapes.Make(z.DType(), count, size)
		token := BroadcastToShape(SliceAxis(z, 1, AxisElem(t)), shape)
		members[t] = ConvertDType(Equal(Iota(g, shape, 1), token), dtype)
		factors[t] = AddScalar(Zeros(g, shapes.Make(dtype, b, size)), 1/float64(size))
		at[t] = AddScalar(ZerosLike(logP), 1/float64(size))
	}
	sweeps := c.Sweeps
	if sweeps == 0 {
		sweeps = 10
	}
	for range sweeps {
		for t := range members {
			rest := OnesLike(logP)
			for u := range at {
				if u != t {
					rest = Mul(rest, at[u])
				}
			}
			factors[t] = Softmax(Dot(Mul(rest, logP), members[t]).Product())
			at[t] = DotGeneral(factors[t], []int{1}, nil, members[t], []int{1}, nil)
		}
	}
	q, entropy = OnesLike(logP), Zeros(g, shapes.Make(dtype, b))
	for t := range at {
		q = Mul(q, at[t])
		safe := MaxScalar(factors[t], 1e-30)
		entropy = Sub(entropy, ReduceSum(Mul(factors[t], Log(safe)), 1))
	}
	return q, entropy
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
