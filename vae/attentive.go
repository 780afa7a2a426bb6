package vae

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// Attentive is an encoder q(z|x) that sees what an image has at each position of the grid, where Policy sees one list of
// numbers for all of it, and the codes chosen before by attention.
//
// The t-th of its tokens, from 0 on, stands for the t-th position to be filled: it has that position's features, those
// of the whole image, and the code chosen just before. Causal attention mixes it with the tokens before, so that all
// codes chosen before are seen, and it becomes the logits of the codes of its position. So one pass says what the
// policy does at all steps of a trajectory.
type Attentive struct {
	Size
	Conditional   bool // as Policy's
	Width, Layers int  // of the transformer; the width is a multiple of attentiveHeads
}

var (
	_ gfn.Policy    = Attentive{}
	_ gfn.Causal    = Attentive{}
	_ gfn.Partition = Attentive{}
	_ em.Encoder    = Attentive{}
)

const attentiveHeads = 4

// Encode implements em.Encoder. Features are [B,n,width], by step.
func (p Attentive) Encode(scope *model.Scope, x gfn.Batch) gfn.Batch {
	at := scope.At("image")
	y := p.shrink(at, x[0], plain)
	b, n := y.Shape().Dim(0), p.Positions()
	flat := Reshape(y, b, -1)
	own := nn.Linear(at.At("position"), Reshape(y, b, n, p.Channels), p.Width)
	if order := p.order(); order != nil {
		own = permuted(own, order)
	}
	whole := nn.Linear(at.At("features"), flat, p.Width)
	out := gfn.Batch{Add(own, BroadcastToShape(InsertAxes(whole, 1), own.Shape()))}
	if p.Conditional {
		out = append(out, Squeeze(nn.Linear(at.At("log z"), flat, 1), 1))
	}
	return out
}

// permuted takes positions along axis 1 in an order.
func permuted(x *Node, order []int) *Node {
	parts := make([]*Node, len(order))
	for i, at := range order {
		parts[i] = SliceAxis(x, 1, AxisElem(at))
	}
	return Concatenate(parts, 1)
}

// logits are those of all steps, [N,n,K], given features [N,n,width] and codes [N,n], of which step t sees those of
// steps before.
func (p Attentive) logits(scope *model.Scope, u, z *Node) *Node {
	g, dims := z.Graph(), u.Shape().Dimensions
	if order := p.order(); order != nil {
		z = permuted(z, order)
	}
	code := OneHot(z, p.Codes, p.float()) // [N,n,K], a position without a code being all zero
	first := SliceAxis(code, 1, AxisRange(0, 1))
	before := Concatenate([]*Node{ZerosLike(first), SliceAxis(code, 1, AxisRange(0, dims[1]-1))}, 1)
	at := scope.At("attention")
	place := nn.Normal(at, g, p.float(), "place", 1/float64(attentiveHeads), dims[1], p.Width)
	x := Add(Add(u, nn.Linear(at.At("code"), before, p.Width)), BroadcastToShape(ExpandLeftToRank(place, 3), u.Shape()))
	mixer := nn.Transformer{Layers: p.Layers, Heads: attentiveHeads, FeedForward: 2 * p.Width, Causal: true}
	x = nn.LayerNorm(at.At("norm"), mixer.Apply(at, x, nil))
	return nn.Linear(at.At("out"), x, p.Codes)
}

// at takes the logits of the step at which each of k states of each observation is, [N*k,K], of logits [N,n,K]; those
// of full grids are all equal.
func (p Attentive) at(logits, states *Node, k int) *Node {
	n := p.Positions()
	filled := ReduceSum(ConvertDType(GreaterOrEqual(states, ZerosLike(states)), states.DType()), 1) // [N*k]
	here := Reshape(OneHot(filled, n, p.float()), -1, k, n)
	own := DotGeneral(here, []int{2}, []int{0}, logits, []int{1}, []int{0}) // [N,k,K]
	return Reshape(own, -1, p.Codes)
}

// Heads implements gfn.Policy on features.
func (p Attentive) Heads(scope *model.Scope, u gfn.Batch, s gfn.State, k int) gfn.Heads {
	zeta(scope, u[0].Graph(), p.float())
	return gfn.Heads{Forward: p.at(p.logits(scope, u.Repeat(k)[0], s[0]), s[0], 1)}
}

// HeadsAlong implements gfn.Causal: the last state has all codes that the others have.
func (p Attentive) HeadsAlong(scope *model.Scope, u gfn.Batch, states []gfn.State) gfn.Heads {
	zeta(scope, u[0].Graph(), p.float())
	all := make([]*Node, len(states))
	for t, s := range states {
		all[t] = s[0]
	}
	logits := p.logits(scope, u[0], all[len(all)-1])
	return gfn.Heads{Forward: p.at(logits, Reshape(Stack(all, 1), -1, p.Positions()), len(states))}
}

// LogZ implements gfn.Partition on features.
func (p Attentive) LogZ(scope *model.Scope, u gfn.Batch) *Node {
	z := BroadcastToDims(zeta(scope, u[0].Graph(), p.float()), u.Size())
	if p.Conditional {
		z = Add(z, u[1])
	}
	return MulScalar(z, p.Positions())
}
