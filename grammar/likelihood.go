package grammar

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/nn"
)

// LogLikelihood is log p(x) of each sentence, [B], all derivations added up: the inside algorithm, by matrix products
// in the domain of probabilities. It is -Inf for a sentence without derivations. Its gradient to all potentials is
// exact, and costs about twice as much again; it cannot be differentiated twice.
//
// The work is that of the published recursion (Neural PCFG; or with the parent as part of the symbol, for which the
// cost per sentence is n³NS² + n²N²S²), less all that concerns a nonterminal over one word or a preterminal over more.
func LogLikelihood(p Potentials) *Node {
	c := inside(p.stopped().layout(), sumProduct)
	return p.differentiable(c, c.outside)
}

// differentiable is the total of a chart, whose gradients are counts. All of them come from one pass, made when the
// first is asked for.
func (p Potentials) differentiable(c *chart, outside func(weight *Node) counts) *Node {
	operands := p.list()
	var weight *Node
	var answer []*Node
	grads := make([]func(*Node) *Node, len(operands))
	for i := range operands {
		grads[i] = func(v *Node) *Node {
			if v != weight {
				weight, answer = v, p.gradients(c, outside(v)).list()
			}
			return answer[i]
		}
	}
	return nn.WithGradients(c.logTotal(), operands, grads...)
}

// list names the potentials that can be differentiated.
func (p Potentials) list() []*Node {
	out := []*Node{p.Root, p.Rules, p.Terms}
	if p.Spans != nil {
		out = append(out, p.Spans)
	}
	return out
}

func (p Potentials) stopped() Potentials {
	p.Root, p.Rules, p.Terms = StopGradient(p.Root), StopGradient(p.Rules), StopGradient(p.Terms)
	if p.Spans != nil {
		p.Spans = StopGradient(p.Spans)
	}
	return p
}

// gradients brings counts into the shapes of the potentials.
func (p Potentials) gradients(c *chart, n counts) Potentials {
	root := n.root
	if p.Root.Rank() == 1 {
		root = ReduceSum(root, 0)
	}
	out := Potentials{Root: root, Rules: Reshape(n.rules, p.Rules.Shape().Dimensions...), Terms: c.termsBack(n.terms)}
	if p.Spans != nil {
		out.Spans = ReduceSum(c.labelCounts(n), -1)
	}
	return out
}

// termsBack undoes the grouping of terms.
func (l *layout) termsBack(x *Node) *Node {
	if l.parents {
		return TransposeAllAxes(x, 1, 2, 3, 0)
	}
	return Reshape(x, l.sentences, l.n, l.pt)
}

// labelCounts lays out counts of spans: [sentences,n,n,N] by first word, by number of words less one, and by label.
func (c *chart) labelCounts(n counts) *Node {
	shape := n.spans[0].Shape().Clone()
	shape.Dimensions[2] = c.n
	pieces := append([]*Node{Zeros(c.rules.Graph(), shape)}, n.spans...)
	all := stackWidths(pieces, c.n, 0, false) // [A,B,n,n,Q]
	if c.parents {
		return TransposeAllAxes(ReduceSum(all, -1), 1, 2, 3, 0)
	}
	return Reshape(all, c.sentences, c.n, c.n, c.nt)
}

// Marginals are what the posterior over derivations says of their parts.
type Marginals struct {
	LogLikelihood *Node // [B]
	Spans         *Node // [B,n,n]: the probability that these words are a constituent, by first word and number of words less one
	Labels        *Node // [B,n,n,N]: the same, by label
	Tags          *Node // [B,n,T]: of each word's preterminal
	// Expected numbers of uses, added up over sentences, in the shape of the potentials.
	Root, Rules *Node
}

// Marginals runs the inside and the outside algorithm.
func (p Potentials) Marginals() Marginals {
	p = p.stopped()
	c := inside(p.layout(), sumProduct)
	total := c.logTotal()
	n := c.outside(OnesLike(total))
	g := p.gradients(c, n)
	labels := c.labelCounts(n)
	return Marginals{
		LogLikelihood: total, Labels: labels, Spans: ReduceSum(labels, -1), Tags: c.overGroups(n.terms), Root: g.Root, Rules: g.Rules,
	}
}
