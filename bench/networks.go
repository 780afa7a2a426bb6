package bench

import (
	"errors"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// trained returns a step that follows the gradient of a loss by Adam. The inputs stay in the memory of the backend.
func trained(b compute.Backend, rate float64, loss func(scope *model.Scope, in []*Node) *Node, inputs ...*tensors.Tensor) (func() error, error) {
	store := nn.NewStore(0)
	opt := optim.Optimizer{Groups: []optim.Group{{Scope: "/net", Rate: optim.Rate{Base: rate}}}}
	return runs(b, store, func(in []*Node) []*Node {
		l := loss(store.Scope("/net"), in[1:])
		opt.Minimize(store, l, in[0])
		return []*Node{l}
	}, append([]*tensors.Tensor{tensors.FromValue(opt.Rates(0))}, inputs...)...)
}

// runs returns a step that runs a graph and reads its first result.
func runs(b compute.Backend, store *model.Store, build func(in []*Node) []*Node, inputs ...*tensors.Tensor) (func() error, error) {
	exec, err := model.NewExec(b, store, func(_ *model.Scope, in []*Node) []*Node { return build(in) })
	if err != nil {
		return nil, err
	}
	args := make([]any, len(inputs))
	for i, t := range inputs {
		if err := t.ToDevice(b, 0); err != nil {
			return nil, err
		}
		args[i] = t
	}
	return func() error {
		out, err := exec.Call(args...)
		if err != nil {
			return err
		}
		_, err = tensors.CopyFlatData[float32](out[0])
		for _, t := range out {
			err = errors.Join(err, t.FinalizeAll())
		}
		return err
	}, nil
}

// normal returns normally distributed numbers.
func normal(dims ...int) *tensors.Tensor {
	r := rng.New(0, "bench")
	x := make([]float32, shapes.Make(dtypes.Float32, dims...).Size())
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return tensors.FromFlatDataAndDimensions(x, dims...)
}

// mlpStep is one update of a 2-128-128-16 classifier on 1024 points.
func mlpStep(b compute.Backend) (func() error, error) {
	const batch, classes = 1024, 16
	r := rng.New(0, "bench labels")
	labels := make([]int32, batch)
	for i := range labels {
		labels[i] = int32(r.IntN(classes))
	}
	return trained(b, 1e-3, func(scope *model.Scope, in []*Node) *Node {
		logits := nn.MLP{Widths: []int{128, 128, classes}}.Apply(scope, in[0])
		hot := OneHot(in[1], classes, dtypes.Float32)
		return Neg(ReduceAllMean(ReduceSum(Mul(hot, LogSoftmax(logits, -1)), -1)))
	}, normal(batch, 2), tensors.FromFlatDataAndDimensions(labels, batch))
}

// encoder is the network of the transformer workloads, on sentences of 20 words, 32 at a time.
func encoder(scope *model.Scope, x *Node) *Node {
	return nn.Encoder{Layers: 2, Heads: 4, FeedForward: 2048}.Apply(scope, x, nil)
}

func transformerStep(b compute.Backend) (func() error, error) {
	return trained(b, 1e-4, func(scope *model.Scope, in []*Node) *Node {
		return ReduceAllMean(Square(encoder(scope, in[0])))
	}, normal(32, 20, 512))
}

func transformerForward(b compute.Backend) (func() error, error) {
	store := nn.NewStore(0)
	return runs(b, store, func(in []*Node) []*Node {
		return []*Node{encoder(store.Scope("/net"), in[0])}
	}, normal(32, 20, 512))
}
