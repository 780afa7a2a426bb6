package em

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// ClassicalPosterior is what a classical learner puts in the place of the GFlowNet.
type ClassicalPosterior int

const (
	// Exact enumerates the posterior: every update follows the gradient of log p(x), which is that of the expected
	// log-joint under p(z|x).
	Exact ClassicalPosterior = iota
	// MeanField restricts it to a product of independent choices, fitted to each observation by coordinate ascent. The
	// environment must be a gfn.Product: an envs.Sequence (each token is a choice), an envs.Set (each element is in or out)
	// or an envs.Segmentation (each gap ends a segment or not), these two without an upper bound, or one of yours.
	MeanField
)

// Classical learns a model whose latents are few enough to list, by EM without a GFlowNet: the reference that GFlowNet-EM is
// compared with. An update scores all latents of all observations of a batch at once.
//
// An envs.Sequence is listed in the program itself. Of any other environment the objects are found by gfn.EnumerateEach,
// for MeanField by its Choose, once for each initial state that observations have: so what is legal may depend on x. More
// than 131,072 states, or combinations, of one observation are an error.
type Classical struct {
	Model     lvm.Model
	Env       gfn.Env
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
	latents   *lister
	update    *program.Program[classicalArgs, Update]
}

type classicalIn[R, T any] struct {
	Rates   R
	X       []T
	Latents latents[T]
}

type classicalArgs = classicalIn[[]float32, *tensors.Tensor]

func newClassicalStep(c Classical, s *program.Set) classicalStep {
	m := classicalStep{optimizer: orAdam(c.Optimizer, Theta), programs: s, latents: newLister(c, s)}
	m.update = program.New[classicalArgs, Update](s, "classical EM", func(in classicalIn[*Node, *Node]) UpdateNodes {
		bound := c.bound(s.Store.Scope(Theta), in.X, in.Latents)
		loss := Neg(ReduceAllMean(bound))
		out := Updated(loss, m.optimizer.Minimize(s.Store, loss, in.Rates))
		out.Scores = scoresOf(bound)
		return out
	})
	return m
}

// Maximize implements MStepper.
func (m classicalStep) Maximize(at Moment, x []*tensors.Tensor, _ struct{}) (Maximization, error) {
	z, err := m.latents.of(x)
	if err != nil {
		return Maximization{}, err
	}
	out, err := m.update.Call(classicalArgs{m.optimizer.Rates(at.M), x, z})
	return NewMaximization(out), err
}

// data are observations and their latents.
type data[T any] struct {
	X       []T
	Latents latents[T]
}

// LogLikelihood returns the mean of log p(x) over observations, by enumeration.
func (c Classical) LogLikelihood(b compute.Backend, store *model.Store, x ...*tensors.Tensor) (float64, error) {
	type mean[T any] struct{ LogP T }
	c.Posterior = Exact
	in, _, err := c.listed(b, x)
	if err != nil {
		return 0, fmt.Errorf("exact log-likelihood: %w", err)
	}
	out, err := program.Once[data[*tensors.Tensor], mean[float64]](b, store, "exact log-likelihood", func(in data[*Node]) mean[*Node] {
		return mean[*Node]{ReduceAllMean(c.bound(store.Scope(Theta), in.X, in.Latents))}
	}, in)
	return out.LogP, err
}

// Posteriors returns p(z|x) of every observation, exactly.
func (c Classical) Posteriors(b compute.Backend, store *model.Store, x ...*tensors.Tensor) ([]Listed, error) {
	type joint[T any] struct{ LogP T }
	c.Posterior = Exact
	in, lists, err := c.listed(b, x)
	if err != nil {
		return nil, fmt.Errorf("exact posterior: %w", err)
	}
	out, err := program.Once[data[*tensors.Tensor], joint[*tensors.Tensor]](b, store, "exact posterior", func(in data[*Node]) joint[*Node] {
		return joint[*Node]{ConvertDType(c.joint(store.Scope(Theta), in.X, in.Latents), dtypes.Float64)}
	}, in)
	if err != nil {
		return nil, err
	}
	logP, width := tensors.MustCopyFlatData[float64](out.LogP), out.LogP.Shape().Dim(1)
	all := make([]Listed, x[0].Shape().Dim(0))
	for i := range all {
		l := Listed{Z: lists(i)}
		l.LogJoint = logP[i*width:][:l.Z[0].Shape().Dim(0)]
		if l.LogP = gfn.LogSumExp(l.LogJoint); math.IsInf(l.LogP, 0) || math.IsNaN(l.LogP) {
			return nil, fmt.Errorf("exact posterior: log p(x) of observation %d is %g", i, l.LogP)
		}
		l.P = gfn.Normalise(l.LogJoint)
		all[i] = l
	}
	return all, nil
}

// Listed is the posterior of one observation, object by object.
type Listed struct {
	Z        []*tensors.Tensor // the objects, as terminal states [K,...], which observations may share
	P        []float64         // p(z|x), [K]
	LogJoint []float64         // log p(x,z), [K]
	LogP     float64           // log p(x)
}

// listed makes one batch of observations and their latents, which come for each observation, too.
func (c Classical) listed(b compute.Backend, x []*tensors.Tensor) (in data[*tensors.Tensor], lists func(i int) []*tensors.Tensor, err error) {
	if err := c.checkLatents(); err != nil {
		return in, nil, err
	}
	s := program.NewSet(b, nil)
	defer s.Close()
	l := newLister(c, s)
	in.X = x
	if in.Latents, err = l.of(x); err != nil {
		return in, nil, err
	}
	return in, l.list, nil
}

// joint returns log p(x,z) of every observation and its latents, [B,K]: -Inf where it has fewer.
func (c Classical) joint(theta *model.Scope, x gfn.Batch, l latents[*Node]) *Node {
	blame.Rows(blame.Argument("the batch of classical EM"), x, sizeOf(x))
	if e, ok := c.Env.(envs.Sequence); ok {
		return lvm.Table(c.Model, theta, x, gfn.State{Const(x[0].Graph(), combinations(e.Sizes))})
	}
	if l.Of == nil { // all observations have the same
		return lvm.Table(c.Model, theta, x, l.Z)
	}
	b, k := x.Size(), l.Z[0].Shape().Dim(0)/l.Count.Shape().Dim(0)
	shape := []int{b, k}
	position := Iota(l.Of.Graph(), withDims(l.Of, shape), 1)
	at := Add(MulScalar(BroadcastToDims(InsertAxes(l.Of, 1), shape...), k), position) // [B,K]
	z := make(gfn.State, len(l.Z))
	for i, t := range l.Z {
		z[i] = Gather(t, Reshape(at, b*k, 1))
	}
	logP := Reshape(blame.Method(c.Model, "LogJoint").Floats(c.Model.LogJoint(theta, x.Repeat(k), z), b*k), b, k)
	count := Gather(l.Count, InsertAxes(l.Of, 1)) // [B]
	there := LessThan(position, BroadcastToDims(InsertAxes(count, 1), shape...))
	return Where(there, logP, BroadcastToShape(Infinity(logP.Graph(), logP.DType(), -1), logP.Shape()))
}

// bound returns log p(x), or the best factorised bound of it, [B].
func (c Classical) bound(theta *model.Scope, x gfn.Batch, l latents[*Node]) *Node {
	logP := c.joint(theta, x, l)
	if c.Posterior == Exact {
		return nn.LogSumExp(logP, 1)
	}
	q, entropy := c.factorised(StopGradient(logP))
	bound := Add(ReduceSum(Mul(q, logP), 1), entropy)
	if l.Of != nil {
		bound = Sub(bound, Gather(ConvertDType(l.Excess, bound.DType()), InsertAxes(l.Of, 1)))
	}
	return bound
}
