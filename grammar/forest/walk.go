package forest

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/program"
)

// Route is where walks have been, as far as their trajectories depend on it.
type Route struct {
	Forest Forest // where the walks are
	Inside Inside // what its nodes are as symbols, if labels are summed out
	// Undone and Made [B,G] number the steps at which a gap was opened and closed; -1 if it was not.
	Undone, Made *Node
}

// Walk is a batch of walks through forests: so many steps back by P_B, then forward to whole trees by P_F.
type Walk struct {
	Route
	Nodes *Node // [B,n+G,d]: embeddings of all nodes of these forests

	// The behaviour's log-probabilities, [B]: log P_B and log P_F of the steps that were undone, log P_F and log P_B of
	// those that were made. What a step has the other way round is added by the pass after it. A walk that does not
	// rise must ask for one step back more than it can make, or UndoneForward may lack the last one.
	UndoneBack, UndoneForward, MadeForward, MadeBack *Node
}

// The same on the host, for programs that hand walks to each other.
type (
	ForestTensors struct{ Label, Left, Right, Root, First, Last, Length *tensors.Tensor }
	RouteTensors  struct {
		Forest       ForestTensors
		Inside       InsideTensors
		Undone, Made *tensors.Tensor
	}
	WalkTensors struct {
		RouteTensors
		Nodes                                            *tensors.Tensor
		UndoneBack, UndoneForward, MadeForward, MadeBack *tensors.Tensor
	}
)

// Rows is the number of forests.
func (f ForestTensors) Rows() int { return f.Root.Shape().Dim(0) }

// Words is the number of words that the tensors have room for.
func (f ForestTensors) Words() int { return f.Root.Shape().Dim(1) }

// Embed starts walks at given forests, which it reads bottom-up. Leaves are [B,n].
func (m Network) Embed(scope *model.Scope, f Forest, leaves *Node) Walk {
	w, z := m.weights(scope, leaves.Graph()), f.Trees()
	order := NewPlan(z, GreaterThan(f.Label, ZerosLike(f.Label)))
	var in Inside
	if m.Grammar != nil {
		in = program.Map(m.inside(order, leaves), func(x *Node) *Node { return rows(x, order.slot) })
	}
	return newWalk(f, in, rows(w.embed(order, leaves, z, in.Symbols), order.slot))
}

// Begin starts walks at bare words.
func (m Network) Begin(scope *model.Scope, x Sentences) Walk {
	leaves := m.weights(scope, x.Words.Graph()).token(x.Words) // [B,n,d]
	b, n := x.Words.Shape().Dim(0), x.Words.Shape().Dim(1)
	empty := Zeros(x.Words.Graph(), shapes.Make(m.DType, b, n-1, m.Width))
	var in Inside
	if m.Grammar != nil {
		in = program.Map(m.leafInside(m.Grammar(x.Words.Graph()), x.Words), func(x *Node) *Node {
			s := x.Shape().Clone()
			s.Dimensions[1] = n - 1
			return Concatenate([]*Node{x, Zeros(x.Graph(), s)}, 1)
		})
	}
	return newWalk(Start(n, x.Lengths), in, Concatenate([]*Node{leaves, empty}, 1))
}

func newWalk(f Forest, in Inside, nodes *Node) Walk {
	zero := Zeros(nodes.Graph(), shapes.Make(nodes.DType(), f.Length.Shape().Dim(0)))
	never := Neg(OnesLike(f.Label))
	return Walk{
		Route: Route{Forest: f, Inside: in, Undone: never, Made: never}, Nodes: nodes,
		UndoneBack: zero, UndoneForward: zero, MadeForward: zero, MadeBack: zero,
	}
}

// LogRatio is the walks' part of the Metropolis-Hastings ratio, [B]: the probability of each move back over that of the
// move itself.
func (w Walk) LogRatio() *Node {
	return Sub(Add(w.MadeBack, w.UndoneForward), Add(w.UndoneBack, w.MadeForward))
}
