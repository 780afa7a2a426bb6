package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
)

// Env builds labelled trees over sentences of at most Words words. Action g*Labels+y closes gap g under label y;
// backward action g opens it again. An observation is Sentences.
type Env struct{ Words, Labels int }

var _ gfn.Env = Env{}

// Steps implements gfn.Env.
func (e Env) Steps() int { return e.Words - 1 }

// Actions implements gfn.Env.
func (e Env) Actions() int { return (e.Words - 1) * e.Labels }

// BackActions implements gfn.Env.
func (e Env) BackActions() int { return e.Words - 1 }

// Initial implements gfn.Env.
func (e Env) Initial(x gfn.Batch) gfn.State { return Start(e.Words, Observed(x).Lengths).State() }

// Legal implements gfn.Env.
func (e Env) Legal(s gfn.State) *Node {
	open := FromState(s).Open()
	b, k := open.Shape().Dim(0), open.Shape().Dim(1)
	return Reshape(BroadcastToDims(InsertAxes(open, -1), b, k, e.Labels), b, k*e.Labels)
}

// Step implements gfn.Env.
func (e Env) Step(s gfn.State, a *Node) gfn.State {
	gap := e.gap(a)
	return FromState(s).Merge(gap, Sub(a, MulScalar(gap, e.Labels)), always(a)).State()
}

// LegalBack implements gfn.Env.
func (e Env) LegalBack(s gfn.State) *Node { return FromState(s).Tops() }

// Undo implements gfn.Env.
func (e Env) Undo(s gfn.State, b *Node) gfn.State { return FromState(s).Split(b, always(b)).State() }

// Back implements gfn.Env.
func (e Env) Back(_ gfn.State, a *Node) *Node { return e.gap(a) }

// Redo implements gfn.Env.
func (e Env) Redo(s gfn.State, b *Node) *Node {
	label := MaxScalar(SubScalar(rows(FromState(s).Label, b), 1), 0)
	return Add(MulScalar(b, e.Labels), label)
}

func (e Env) gap(a *Node) *Node { return Div(a, Scalar(a.Graph(), a.DType(), e.Labels)) }

func always(like *Node) *Node {
	return BroadcastToShape(Const(like.Graph(), true), shapes.Make(dtypes.Bool, like.Shape().Dimensions...))
}

// State lists the nodes of a forest.
func (f Forest) State() gfn.State { return program.Nodes(f) }

// FromState undoes State.
func FromState(s gfn.State) Forest { return program.Of[Forest](s) }

// Sentences are an observation: words [B,n] and lengths [B].
type Sentences struct{ Words, Lengths *Node }

// Observed undoes Batch.
func Observed(x gfn.Batch) Sentences { return program.Of[Sentences](x) }

// Batch is what an Env and its policy observe.
func (s Sentences) Batch() gfn.Batch { return program.Nodes(s) }
