package grammar

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// Letters of axes: B sentences, n words of the longest sentence of a batch, m spans of one width, N nonterminals, T
// preterminals, S = N+T symbols of a right-hand side (nonterminals first), V words, P parents (0 is ROOT, then the
// nonterminals).

// LogProbs are the log-probabilities of a grammar, in a graph.
type LogProbs struct {
	Root  *Node // [N]
	Rules *Node // [N,S,S], or [N,P,S,S] when rules see the parent
	Emit  *Node // [V,T], or [V,T,N] when words see the nonterminal above their preterminal
}

// LogProbTensors are LogProbs on the host.
type LogProbTensors struct{ Root, Rules, Emit *tensors.Tensor }

// Keep puts tables into variables below a scope, where they are not trained, and returns how graphs read them.
func (t LogProbTensors) Keep(scope *model.Scope) func(*Graph) LogProbs {
	for name, value := range map[string]*tensors.Tensor{"root": t.Root, "rules": t.Rules, "emit": t.Emit} {
		scope.VariableWithValue(name, value).SetTrainable(false)
	}
	return func(g *Graph) LogProbs {
		value := func(name string) *Node { return scope.GetVariable(name).NodeValue(g) }
		return LogProbs{Root: value("root"), Rules: value("rules"), Emit: value("emit")}
	}
}

// Potentials are the log-weights of all derivations of a batch of sentences. They need not be normalised.
type Potentials struct {
	Root *Node // [N], or [B,N]
	// Rules is [N,S,S] for all sentences; [B,N,S,S] for each its own; [N,P,S,S] when rules see the parent, and then
	// Terms has four axes.
	Rules *Node
	Terms *Node // [B,n,T]; or [B,n,T,N] when words see the nonterminal above their preterminal
	// Spans, if not nil, are added to every derivation that has a span of two words or more: [B,n,n] by first word and
	// by number of words less one.
	Spans   *Node
	Lengths *Node // [B] int32: the number of words of each sentence, 2 to n; later words are padding
}

// PotentialParts are those parts of Potentials that come from a grammar, in a graph or on the host.
type PotentialParts[T any] struct{ Root, Rules, Terms T }

// PotentialTensors are PotentialParts on the host.
type PotentialTensors = PotentialParts[*tensors.Tensor]

// For returns the potentials of sentences, given by their words [B,n] (int32) and their lengths [B].
func (t LogProbs) For(words, lengths *Node) Potentials {
	return Potentials{Root: t.Root, Rules: t.Rules, Terms: Gather(t.Emit, InsertAxes(words, -1)), Lengths: lengths}
}

// layout says how a chart is cut into groups, so that one algorithm serves all grammars. Spans are kept per group of
// sentences: [A,B,m,...], A groups of B sentences each.
//
// In a context-free grammar a group is some sentences that share a table of rules: one group of all sentences, or a
// group for each sentence. Where the parent matters, group a of an inner symbol is its parent (the nonterminal a), and
// all sentences are in all groups: what a span weighs then depends on the group it is looked at from.
//
// A rule of group a is found by its outcome q. Context-free, q is the left-hand side. Otherwise a is the left-hand
// side, and q is the parent of that.
type layout struct {
	parents       bool
	a, b, n       int
	nt, pt, q     int
	sentences     int
	root, lengths *Node // [sentences,N] or [1,N]; [sentences]
	rules         *Node // [A,Q,S,S]
	terms         *Node // [A,B,n,T]
	spans         *Node // [sentences,n,n] or nil
}

func (p Potentials) layout() *layout {
	if err := p.check(); err != nil {
		panic(err)
	}
	s := p.Rules.Shape().Dim(-1)
	d := p.Terms.Shape().Dimensions
	l := &layout{
		sentences: d[0], n: d[1], pt: d[2], nt: s - d[2], root: p.Root, lengths: p.Lengths, rules: p.Rules, spans: p.Spans,
	}
	switch {
	case p.Terms.Rank() == 4:
		l.parents = true
		l.a, l.b, l.q = l.nt, l.sentences, l.nt+1
		l.terms = TransposeAllAxes(p.Terms, 3, 0, 1, 2)
	case p.Rules.Rank() == 4:
		l.a, l.b, l.q = l.sentences, 1, l.nt
		l.terms = InsertAxes(p.Terms, 1)
	default:
		l.a, l.b, l.q = 1, l.sentences, l.nt
		l.terms = InsertAxes(p.Terms, 0)
		l.rules = InsertAxes(p.Rules, 0)
	}
	if l.root.Rank() == 1 {
		l.root = InsertAxes(l.root, 0)
	}
	return l
}

func (p Potentials) check() error {
	bad := func(what string, x *Node) error {
		return fmt.Errorf("grammar: %s of shape %s do not fit: root %s, rules %s, terms %s, lengths %s",
			what, x.Shape(), p.Root.Shape(), p.Rules.Shape(), p.Terms.Shape(), p.Lengths.Shape())
	}
	if r := p.Terms.Rank(); r != 3 && r != 4 {
		return bad("terms", p.Terms)
	}
	d := p.Terms.Shape().Dimensions
	b, n, t := d[0], d[1], d[2]
	s := p.Rules.Shape().Dim(-1)
	nt := s - t
	var rules []int
	switch {
	case p.Terms.Rank() == 4:
		rules = []int{nt, nt + 1, s, s}
	case p.Rules.Rank() == 4:
		rules = []int{b, nt, s, s}
	default:
		rules = []int{nt, s, s}
	}
	switch {
	case n < 2:
		return fmt.Errorf("grammar: sentences of %d word: no nonterminal covers a single word", n)
	case nt < 1 || t < 1 || p.Rules.Shape().CheckDims(rules...) != nil:
		return bad("rules", p.Rules)
	case len(d) == 4 && d[3] != nt:
		return bad("terms", p.Terms)
	case p.Root.Shape().CheckDims(nt) != nil && p.Root.Shape().CheckDims(b, nt) != nil:
		return bad("root", p.Root)
	case p.Lengths.Shape().CheckDims(b) != nil || p.Lengths.DType() != dtypes.Int32:
		return bad("lengths", p.Lengths)
	case p.Spans != nil && p.Spans.Shape().CheckDims(b, n, n) != nil:
		return bad("spans", p.Spans)
	}
	return nil
}

// asChild turns what spans weigh by outcome, [A,B,m,Q], into what they weigh as symbols seen from a parent, [A,B,m,N].
func (l *layout) asChild(x *Node) *Node {
	if !l.parents {
		return x
	}
	return TransposeAllAxes(SliceAxis(x, 3, AxisRangeToEnd(1)), 3, 1, 2, 0)
}

// asOutcome is the transpose of asChild.
func (l *layout) asOutcome(x *Node) *Node {
	if !l.parents {
		return x
	}
	return grow(TransposeAllAxes(x, 3, 1, 2, 0), 3, 1, 0)
}

// top reads from [A,B,m,Q] what the spans that start at the first word weigh as whole sentences: [sentences,N].
func (l *layout) top(x *Node) *Node {
	x = Squeeze(SliceAxis(x, 2, AxisElem(0)), 2) // [A,B,Q]
	if l.parents {
		return TransposeAllAxes(Squeeze(SliceAxis(x, 2, AxisElem(0)), 2), 1, 0)
	}
	return Reshape(x, l.sentences, l.nt)
}

// fromTop is the transpose of top, for m spans.
func (l *layout) fromTop(x *Node, m int) *Node {
	if l.parents {
		x = grow(InsertAxes(TransposeAllAxes(x, 1, 0), 2), 2, 0, l.nt)
	} else {
		x = Reshape(x, l.a, l.b, l.q)
	}
	return grow(InsertAxes(x, 2), 2, 0, m-1)
}

// perSentence spreads [sentences,m] over groups: [A,B,m] or, where groups hold all sentences, [1,B,m].
func (l *layout) perSentence(x *Node) *Node {
	if l.parents {
		return InsertAxes(x, 0)
	}
	return Reshape(x, l.a, l.b, x.Shape().Dim(1))
}

// overGroups adds up what groups say of the same sentence: [A,B,...] to [sentences,...].
func (l *layout) overGroups(x *Node) *Node {
	if l.parents {
		return ReduceSum(x, 0)
	}
	return Reshape(x, append([]int{l.sentences}, x.Shape().Dimensions[2:]...)...)
}

// grow puts zeros before and after an axis.
func grow(x *Node, axis, before, after int) *Node {
	part := func(n int) *Node {
		s := x.Shape().Clone()
		s.Dimensions[axis] = n
		return Zeros(x.Graph(), s)
	}
	parts := []*Node{x}
	if before > 0 {
		parts = append([]*Node{part(before)}, parts...)
	}
	if after > 0 {
		parts = append(parts, part(after))
	}
	if len(parts) == 1 {
		return x
	}
	return Concatenate(parts, axis)
}
