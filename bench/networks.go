package bench

import (
	"errors"
	"math/rand/v2"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/mixture"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
)

// What programs are called with, as far as they need it, and a value that one returns.
type (
	inputs[T any] struct{ Key, Rates, X, Y T }
	value[T any]  struct{ Value T }
)

// update follows the gradient of a loss.
func update(
	s *program.Set, o optim.Optimizer, loss func(in inputs[*Node]) *Node,
) *program.Program[inputs[*tensors.Tensor], value[float64]] {
	return program.New[inputs[*tensors.Tensor], value[float64]](s, "update", func(in inputs[*Node]) value[*Node] {
		l := loss(in)
		o.Minimize(s.Store, l, in.Rates)
		return value[*Node]{l}
	})
}

// adam is a step that follows the gradient of a loss by Adam, always on the same batch.
func adam(
	b compute.Backend, rate float64, x, y *tensors.Tensor, loss func(scope *model.Scope, x, y *Node) *Node,
) (prepared, error) {
	s := program.NewSet(b, nn.NewStore(0))
	o := optim.Optimizer{Groups: []optim.Group{{Scope: "/net", Rate: optim.Rate{Base: rate}}}}
	p := update(s, o, func(in inputs[*Node]) *Node { return loss(s.Store.Scope("/net"), in.X, in.Y) })
	in := inputs[*tensors.Tensor]{Rates: tensors.FromValue(o.Rates(0)), X: x, Y: y}
	return prepared{func() error {
		_, err := p.Call(in)
		return err
	}, s.Close}, nil
}

// random returns a tensor of numbers drawn from a stream.
func random[T float32 | int32](stream string, draw func(*rand.Rand) T, dims ...int) *tensors.Tensor {
	memory.Must("an input of the workload", append([]int{4}, dims...)...)
	t := tensors.FromShape(shapes.Make(dtypes.FromGenericsType[T](), dims...))
	r := rng.New(0, stream)
	tensors.MustMutableFlatData(t, func(x []T) {
		for i := range x {
			x[i] = draw(r)
		}
	})
	return t
}

func normal(dims ...int) *tensors.Tensor {
	return random("bench", func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }, dims...)
}

// below returns numbers below n.
func below(n int, stream string, dims ...int) *tensors.Tensor {
	return random(stream, func(r *rand.Rand) int32 { return int32(r.IntN(n)) }, dims...)
}

func mlpStep(b compute.Backend, _ Options) (prepared, error) {
	const batch, classes = 1024, 16
	x, labels := normal(batch, 2), below(classes, "bench labels", batch)
	return adam(b, 1e-3, x, labels, func(scope *model.Scope, x, labels *Node) *Node {
		logits := nn.MLP{Widths: []int{128, 128, classes}}.Apply(scope, x)
		return Neg(ReduceAllMean(ReduceSum(Mul(OneHot(labels, classes, dtypes.Float32), LogSoftmax(logits, -1)), -1)))
	})
}

// encoder is the network of the transformer workloads.
func encoder(scope *model.Scope, x *Node) *Node {
	return nn.Transformer{Layers: 2, Heads: 4, FeedForward: 2048}.Apply(scope, x, nil)
}

func transformerStep(b compute.Backend, _ Options) (prepared, error) {
	return adam(b, 1e-4, normal(32, 20, 512), nil, func(scope *model.Scope, x, _ *Node) *Node {
		return ReduceAllMean(Square(encoder(scope, x)))
	})
}

func transformerForward(b compute.Backend, _ Options) (prepared, error) {
	s := program.NewSet(b, nn.NewStore(0))
	p := program.New[value[*tensors.Tensor], value[*tensors.Tensor]](s, "forward", func(x value[*Node]) value[*Node] {
		return value[*Node]{encoder(s.Store.Scope("/net"), x.Value)}
	})
	x := value[*tensors.Tensor]{normal(32, 20, 512)}
	return prepared{func() error {
		out, err := p.Call(x)
		if err != nil {
			return err
		}
		_, err = tensors.CopyFlatData[float32](out.Value)
		return errors.Join(err, out.Value.FinalizeAll())
	}, s.Close}, nil
}

func mixtureStep(b compute.Backend, _ Options) (prepared, error) {
	c := mixture.PaperConfig()
	c.Gate.ESteps = 1 << 30 // no M-step
	return learning[run.Tick](mixture.Task{}.Start(b, &c))
}
