package vae

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
)

// Policy is the published encoder q(z|x): an image network whose features are computed once per image, a network that reads the codes
// chosen so far, and one that reads both and gives logits for all (code, position) pairs, of which the next position's are
// used.
//
// The state that networks see is [K*n], one-hot with the code major: code k at position t is entry k*n+t, and positions
// without a code are zero. So are the logits ordered.
type Policy struct {
	Size
	// Conditional adds a head of the image network to log Z. Without it log Z is one number for all images, as published:
	// right for on-policy samples only, where it is a baseline that lowers the variance of the gradient.
	Conditional bool
	// Floor is added to the softmax over all pairs before it is normalised over those of the next position; the published
	// code has 1e-9. With 0 probabilities are the softmax of the next position's logits.
	Floor float64
}

var (
	_ gfn.Policy    = Policy{}
	_ gfn.Partition = Policy{}
	_ em.Encoder    = Policy{}
)

// Widths of the published networks.
const (
	featureWidth = 64
	hiddenWidth  = 128
)

// zetaScope is where log Z is kept, so that it can have a learning rate of its own.
const zetaScope = "log z"

// features are what the policy reads of images: [B,64] and, if log Z depends on the image, its part of log Z/n, [B].
type features struct{ Image, LogZ *Node }

func (p Policy) features(u gfn.Batch) (f features) {
	if p.Conditional {
		return program.Of[features](u)
	}
	f.Image = program.Of[struct{ Image *Node }](u).Image
	return f
}

// Encode implements em.Encoder.
func (p Policy) Encode(scope *model.Scope, x gfn.Batch) gfn.Batch {
	at := scope.At("image")
	y := p.shrink(at, x[0], plain)
	y = Reshape(y, y.Shape().Dim(0), -1)
	f := features{Image: nn.Linear(at.At("features"), y, featureWidth)}
	if p.Conditional {
		f.LogZ = Squeeze(nn.Linear(at.At("log z"), y, 1), 1)
	}
	return program.Nodes(f)
}

// Heads implements gfn.Policy on features.
func (p Policy) Heads(scope *model.Scope, u gfn.Batch, s gfn.State, k int) gfn.Heads {
	zeta(scope, u[0].Graph(), p.float()) // so that updates without log Z move it by its momentum, as published
	return gfn.Heads{Forward: p.next(p.logits(scope, p.features(u.Repeat(k)).Image, s[0]), s[0])}
}

// logits are those of all pairs, [N,K*n], given features [N,64] and states [N,n].
func (p Policy) logits(scope *model.Scope, u, z *Node) *Node {
	v := nn.MLP{Widths: []int{hiddenWidth, hiddenWidth, featureWidth}}.Apply(scope.At("state"), p.flatten(z))
	width := p.Codes * p.Positions()
	return nn.MLP{Widths: []int{hiddenWidth, width}}.Apply(scope.At("prediction"), Concatenate([]*Node{u, v}, 1))
}

// flatten returns states [N,n] as networks see them, [N,K*n].
func (p Policy) flatten(z *Node) *Node {
	hot := OneHot(z, p.Codes, p.float()) // [N,n,K], a position without a code being all zero
	return Reshape(TransposeAllAxes(hot, 0, 2, 1), z.Shape().Dim(0), -1)
}

// next returns the logits of the next position's codes, [N,K]; of full grids, which have none, they are all equal.
func (p Policy) next(logits, z *Node) *Node {
	if p.Floor > 0 {
		logits = Softmax(logits, -1)
	}
	rows, n := z.Shape().Dim(0), p.Positions()
	filled := ReduceSum(ConvertDType(GreaterOrEqual(z, ZerosLike(z)), z.DType()), 1) // [N]
	if order := p.order(); order != nil {
		filled = p.place(filled, order)
	}
	here := OneHot(filled, n, p.float()) // [N,n]
	table := Reshape(logits, rows, p.Codes, n)
	own := ReduceSum(Mul(table, BroadcastToShape(InsertAxes(here, 1), table.Shape())), 2)
	if p.Floor > 0 {
		own = Log(AddScalar(own, p.Floor))
	}
	return own
}

// place is the position that is next when so many are filled; of full grids there is none.
func (p Policy) place(filled *Node, order []int) *Node {
	var table []int32
	for _, at := range append(slices.Clone(order), len(order)) {
		table = append(table, int32(at))
	}
	return Gather(Const(filled.Graph(), table), InsertAxes(filled, 1))
}

// zeta is log Z/n, or its part that is the same for all images.
func zeta(scope *model.Scope, g *Graph, dtype dtypes.DType) *Node {
	return constant(scope.At(zetaScope), dtype, "zeta", 1).NodeValue(g)
}

// LogZ implements gfn.Partition on features.
func (p Policy) LogZ(scope *model.Scope, u gfn.Batch) *Node {
	z := BroadcastToDims(zeta(scope, u[0].Graph(), p.float()), u.Size())
	if p.Conditional {
		z = Add(z, p.features(u).LogZ)
	}
	return MulScalar(z, p.Positions())
}

// perPosition is trajectory balance in units of a position, ((log Z + log q - log R)/n)^2, as published. The factor matters
// although Adam is free of scale, because sleep shares its moments.
type perPosition struct {
	gfn.Objective
	positions int
}

var _ gfn.Objective = perPosition{}

// Loss implements gfn.Objective.
func (o perPosition) Loss(p gfn.Path) *Node {
	return DivScalar(o.Objective.Loss(p), o.positions*o.positions)
}
