package grammar

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/nn"
)

// How a Neural is made of its variables, and where these start.
const (
	Published = "published" // as in the released code of GFlowNet-EM
	Xavier    = "xavier"    // as neural PCFGs are usually made: Kim, Dyer and Rush (2019), section 3.1
)

// xavier are the log-probabilities of a model with networks of their own for roots and words:
//
//	log p(l,r | x,p) = logsoftmax(W_b (E_x + U_p) + b_b)
//	log p(w | t,x)   = logsoftmax(W_w f_w(E_t + U_x) + b_w)
//	log p(x | ROOT)  = logsoftmax(W_r f_r(E_0 + U_0) + b_r)
//
// with U = 0 in a CFG, and f(e) = h_2(h_1(W e + b)) for two residual blocks h(x) = x + g(x) of two rectified layers
// each. All matrices, embeddings too, are uniform within sqrt(6/(rows+columns)) at the start (Glorot and Bengio, 2010),
// those of parents times ParentScale; biases within 1/sqrt(inputs).
func (m Neural) xavier(scope *model.Scope, g *Graph) LogProbs {
	n, s := m.Nonterminals, m.Nonterminals+m.Preterminals
	root, binary, words := scope.At("root"), scope.At("binary"), scope.At("words")
	top := m.embedding(root, g, "symbol", 1, 1)
	inner := m.embedding(binary, g, "symbols", 1, n)
	tags := m.embedding(words, g, "symbols", 1, m.Preterminals)

	rules := m.linear(binary.At("out"), inner, s*s) // [N,S*S]
	if m.Kind == NCFG {
		parents := m.embedding(scope, g, "parents", m.ParentScale, 1+n)
		top = Add(top, SliceAxis(parents, 0, AxisElem(0)))
		tags = Add(InsertAxes(tags, 1), InsertAxes(SliceAxis(parents, 0, AxisRangeToEnd(1)), 0))    // [T,N,D]
		rules = Add(InsertAxes(rules, 1), InsertAxes(m.product(binary.At("out"), parents, s*s), 0)) // [N,P,S*S]
	}
	return m.normalised(
		m.linear(root.At("out"), m.residual(root, top), n),
		rules,
		m.linear(words.At("out"), m.residual(words, tags), m.Words-m.Specials),
	)
}

// glorot is the bound of a matrix at its start.
func glorot(rows, columns int) float64 { return math.Sqrt(6 / float64(rows+columns)) }

// embedding is a matrix with a row for each symbol.
func (m Neural) embedding(scope *model.Scope, g *Graph, name string, scale float64, rows int) *Node {
	return nn.Param(scope, g, m.DType, name, scale*glorot(rows, m.Width), rows, m.Width)
}

// product is x W, from the width of the model.
func (m Neural) product(scope *model.Scope, x *Node, to int) *Node {
	w := nn.Param(scope, x.Graph(), m.DType, "weights", glorot(m.Width, to), m.Width, to)
	return DotGeneral(x, []int{-1}, nil, w, []int{0}, nil)
}

// linear is x W + b.
func (m Neural) linear(scope *model.Scope, x *Node, to int) *Node {
	y := m.product(scope, x, to)
	b := nn.Param(scope, x.Graph(), m.DType, "bias", 1/math.Sqrt(float64(m.Width)), to)
	return Add(y, ExpandLeftToRank(b, y.Rank()))
}

// residual is f of xavier.
func (m Neural) residual(scope *model.Scope, e *Node) *Node {
	x := m.linear(scope.At("in"), e, m.Width)
	for _, block := range []string{"0", "1"} {
		y := x
		for _, layer := range []string{"0", "1"} {
			y = nn.ReLU(m.linear(scope.At("%s", block).At("%s", layer), y, m.Width))
		}
		x = Add(x, y)
	}
	return x
}
