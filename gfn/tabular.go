package gfn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
)

const float64Type = dtypes.Float64

// Tabular is a policy with free logits for every state of a DAG, for problems without observations: it can represent
// every GFlowNet on the environment, so what it cannot learn is the objective's fault.
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

// Heads implements Policy.
func (p Tabular) Heads(scope *model.Scope, x Batch, s State, k int) Heads {
	g, n, count := x[0].Graph(), s[0].Shape().Dim(0), p.DAG.Len()
	same := Ones(g, shapes.Make(dtypes.Int32, n, count)) // [N,S]: is row n state s?
	for i, t := range s {
		width := t.Shape().Size() / n
		rows := BroadcastToDims(Reshape(t, n, 1, width), n, count, width)
		known := BroadcastToDims(Reshape(ConstCachedTensor(g, p.DAG.states[i]), 1, count, width), n, count, width)
		same = Mul(same, ReduceMin(ConvertDType(Equal(rows, known), dtypes.Int32), 2))
	}
	hot := ConvertDType(same, p.dtype())
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
