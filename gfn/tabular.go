package gfn

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/rng"
)

const float64Type = dtypes.Float64

// Tabular is a policy with free logits for every state of a DAG, for problems without observations: it can represent
// every GFlowNet on the environment, so what it cannot learn is the objective's fault. States must be whole numbers or
// bools.
//
// Its variables are "forward" [S,A], "backward" [S,BackActions] and "flow" [S], all zero at the start, and "logz" [].
type Tabular struct {
	DAG *DAG
	// DType of the variables; the zero value means Float32.
	DType dtypes.DType
	// LearnBackward adds a learned P_B; without it P_B is uniform.
	LearnBackward bool
}

var (
	_ Policy    = Tabular{}
	_ Partition = Tabular{}
)

func (p Tabular) dtype() dtypes.DType {
	if p.DType == dtypes.InvalidDType {
		return dtypes.Float32
	}
	return p.DType
}

func (p Tabular) variable(scope *model.Scope, g *Graph, name string, dims ...int) *Node {
	return scope.WithInitializer(initializer.Zero).VariableWithShape(name, shapes.Make(p.dtype(), dims...)).NodeValue(g)
}

// code gives every state a number: the sum of its entries times random weights, modulo 2^64, which is the same for two
// states with probability 2^-64 or so.
func code(s State) *Node {
	r := rng.New(0, "tabular")
	n := s[0].Shape().Dim(0)
	sum := Zeros(s[0].Graph(), shapes.Make(dtypes.Int64, n))
	for _, t := range s {
		if dtype := t.DType(); !dtype.IsInt() && dtype != dtypes.Bool {
			fail("Tabular needs states of whole numbers, not %s", dtype)
		}
		weights := make([]int64, t.Shape().Size()/n)
		for i := range weights {
			weights[i] = int64(r.Uint64())
		}
		entries := ConvertDType(Reshape(t, n, len(weights)), dtypes.Int64)
		sum = Add(sum, ReduceSum(Mul(entries, Const(t.Graph(), [][]int64{weights})), 1))
	}
	return sum
}

// Heads implements Policy.
func (p Tabular) Heads(scope *model.Scope, x Batch, s State, k int) Heads {
	g, count := x[0].Graph(), p.DAG.Len()
	if len(s) != len(p.DAG.states) {
		fail("Tabular has states of %d tensors, and is asked about states of %d", len(p.DAG.states), len(s))
	}
	for i, t := range p.DAG.states {
		if !slices.Equal(t.Shape().Dimensions[1:], s[i].Shape().Dimensions[1:]) {
			fail("Tabular has states like %s as tensor %d, and is asked about %s", t.Shape(), i, s[i].Shape())
		}
	}
	all := xslices.Map(p.DAG.states, func(t *tensors.Tensor) *Node { return ConstCachedTensor(g, t) })
	rows, known := code(s), InsertAxes(code(all), 0)                                       // [N], [1,S]
	same := Equal(column(rows, count), BroadcastToDims(known, rows.Shape().Dim(0), count)) // [N,S]
	hot := StopGradient(ConvertDType(same, p.dtype()))
	h := Heads{
		Forward: Dot(hot, p.variable(scope, g, "forward", count, p.DAG.Env.Actions())).Product(),
		Flow:    Squeeze(Dot(hot, InsertAxes(p.variable(scope, g, "flow", count), 1)).Product(), 1),
	}
	if p.LearnBackward {
		h.Backward = Dot(hot, p.variable(scope, g, "backward", count, p.DAG.Env.BackActions())).Product()
	}
	return h
}

// LogZ implements Partition.
func (p Tabular) LogZ(scope *model.Scope, x Batch) *Node {
	return BroadcastToDims(p.variable(scope, x[0].Graph(), "logz"), x.Size())
}
