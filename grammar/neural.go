package grammar

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/nn"
)

// Neural makes the tables of a grammar from embeddings of its symbols, as the released code of GFlowNet-EM does, or as
// neural PCFGs usually do. Paper returns one of the paper's size.
type Neural struct {
	Kind         Kind
	Nonterminals int // without ROOT
	Preterminals int
	Width        int // of embeddings
	Words        int // of the vocabulary
	Specials     int // words 0 to Specials-1 (padding and the like) are never emitted
	DType        dtypes.DType
	// ParentScale is the standard deviation of parents' embeddings at the start, 1 as published; of Xavier, a factor of
	// theirs. With 0 an NCFG starts as a CFG.
	ParentScale float64
	Init        string // Published or Xavier; "" means Published
}

// baseWidth is the width at which the released code's scaling of readouts is 1.
const baseWidth = 128

// Paper returns the model of the paper for a vocabulary.
func Paper(kind Kind, words, specials int) Neural {
	return Neural{
		Kind: kind, Nonterminals: 29, Preterminals: 60, Width: 256, Words: words, Specials: specials, DType: dtypes.Float32,
		ParentScale: 1,
	}
}

// Parameters is the number of trained values.
func (m Neural) Parameters() int {
	d, s := m.Width, m.Nonterminals+m.Preterminals
	symbols := (1 + s) * d
	if m.Kind == NCFG {
		symbols += (1 + m.Nonterminals) * d
	}
	if m.Init == Xavier {
		symbols += 2 * (d*d + d) // input layers
	}
	blocks := 4 * 2 * (d*d + d)
	return symbols + blocks + (m.Words-m.Specials+m.Nonterminals)*(d+1) + s*s*(d+1)
}

// LogProbs are the log-probabilities, from the variables below scope. As published:
//
//	log p(l,r | x,p) = logsoftmax(W_b (E_x + U_p)/m + b_b)
//	log p(w | t,x)   = logsoftmax(W_u f_t(E_t + U_x)/m + b_u)
//	log p(x | ROOT)  = logsoftmax(W_u f_r(E_0 + U_0)/m + b_u)
//
// with U = 0 in a CFG, m = Width/128, and f(e) = e + g_2(e + g_1(e)) for two blocks g of two rectified layers each.
// Roots and words have rows of their own in W_u. What cannot be (ROOT below a nonterminal, special words) has no row.
func (m Neural) LogProbs(scope *model.Scope, g *Graph) LogProbs {
	if err := m.check(); err != nil {
		panic(err)
	}
	if m.Init == Xavier {
		return m.xavier(scope, g)
	}
	n, t, d := m.Nonterminals, m.Preterminals, m.Width
	s := n + t
	symbols := nn.Normal(scope, g, m.DType, "symbols", 1, 1+s, d) // ROOT, nonterminals, preterminals
	top := SliceAxis(symbols, 0, AxisElem(0))
	inner := SliceAxis(symbols, 0, AxisRange(1, 1+n))
	tags := SliceAxis(symbols, 0, AxisRangeToEnd(1+n))
	unary := m.readout(scope.At("unary"), g, n+m.Words-m.Specials) // nonterminals below ROOT, then words
	binary := m.readout(scope.At("binary"), g, s*s)

	rules := binary.of(inner, nil) // [N,S*S]
	if m.Kind == NCFG {
		parents := nn.Normal(scope, g, m.DType, "parents", m.ParentScale, 1+n, d)
		top = Add(top, SliceAxis(parents, 0, AxisElem(0)))
		tags = Add(InsertAxes(tags, 1), InsertAxes(SliceAxis(parents, 0, AxisRangeToEnd(1)), 0)) // [T,N,D]
		rules = Add(InsertAxes(rules, 1), InsertAxes(binary.linear(parents, nil), 0))            // [N,P,S*S]
	}
	root := unary.of(m.features(scope.At("root"), top), []int{0, n})
	emit := unary.of(m.features(scope.At("tags"), tags), []int{n, n + m.Words - m.Specials})
	return m.normalised(root, rules, emit)
}

// normalised makes tables of logits, [1,N], [N,...,S*S] and [T,...,words].
func (m Neural) normalised(root, rules, emit *Node) LogProbs {
	s := m.Nonterminals + m.Preterminals
	return LogProbs{
		Root:  Squeeze(LogSoftmax(root), 0),
		Rules: Reshape(LogSoftmax(rules), append(rules.Shape().Clone().Dimensions[:rules.Rank()-1], s, s)...),
		Emit:  m.byWord(LogSoftmax(emit)),
	}
}

func (m Neural) check() error {
	switch {
	case m.Kind != CFG && m.Kind != NCFG:
		return fmt.Errorf("grammar: kind %q is neither cfg nor ncfg", m.Kind)
	case m.Init != "" && m.Init != Published && m.Init != Xavier:
		return fmt.Errorf("grammar: init %q is neither %s nor %s", m.Init, Published, Xavier)
	case m.Nonterminals < 1 || m.Preterminals < 1 || m.Width < 1:
		return fmt.Errorf("grammar: a model of %d nonterminals, %d preterminals and width %d: each must be positive",
			m.Nonterminals, m.Preterminals, m.Width)
	case m.Specials < 0 || m.Words <= m.Specials:
		return fmt.Errorf("grammar: a vocabulary of %d words, %d of them special, has nothing to emit", m.Words, m.Specials)
	}
	return nil
}

// multiplier is m of LogProbs.
func (m Neural) multiplier() float64 { return float64(m.Width) / baseWidth }

// byWord brings words to the front, [...,words] to [V,...], and adds the special words.
func (m Neural) byWord(emit *Node) *Node {
	order := []int{emit.Rank() - 1}
	for a := range emit.Rank() - 1 {
		order = append(order, a)
	}
	emit = TransposeAllAxes(emit, order...)
	if m.Specials == 0 {
		return emit
	}
	shape := emit.Shape().Clone()
	shape.Dimensions[0] = m.Specials
	none := BroadcastToShape(Infinity(emit.Graph(), emit.DType(), -1), shape)
	return Concatenate([]*Node{none, emit}, 0)
}

// features is f of LogProbs. The second sum adds the input, not what the first block gave.
func (m Neural) features(scope *model.Scope, e *Node) *Node {
	return Add(e, m.block(scope.At("1"), Add(e, m.block(scope.At("0"), e))))
}

// block is two rectified linear layers.
func (m Neural) block(scope *model.Scope, x *Node) *Node {
	bound := 1 / math.Sqrt(float64(m.Width))
	for _, layer := range []string{"0", "1"} {
		at := scope.At("%s", layer)
		w := nn.Param(at, x.Graph(), m.DType, "weights", bound, m.Width, m.Width)
		b := nn.Param(at, x.Graph(), m.DType, "bias", bound*math.Sqrt(m.multiplier()), m.Width)
		y := DotGeneral(x, []int{-1}, nil, w, []int{0}, nil)
		x = nn.ReLU(Add(y, ExpandLeftToRank(b, y.Rank())))
	}
	return x
}

// readout is a final linear layer, whose input is divided by m.
type readout struct {
	weights, bias *Node // [rows,D], [rows]
	multiplier    float64
}

func (m Neural) readout(scope *model.Scope, g *Graph, rows int) readout {
	bound := math.Sqrt(m.multiplier() / float64(m.Width))
	return readout{
		weights:    nn.Param(scope, g, m.DType, "weights", bound, rows, m.Width),
		bias:       nn.Param(scope, g, m.DType, "bias", bound, rows),
		multiplier: m.multiplier(),
	}
}

// linear is W x/m, for some rows [from, to) of W, or all if nil.
func (r readout) linear(x *Node, rows []int) *Node {
	w := r.weights
	if rows != nil {
		w = SliceAxis(w, 0, AxisRange(rows...))
	}
	return DotGeneral(DivScalar(x, r.multiplier), []int{-1}, nil, w, []int{1}, nil)
}

// of is W x/m + b.
func (r readout) of(x *Node, rows []int) *Node {
	y, b := r.linear(x, rows), r.bias
	if rows != nil {
		b = SliceAxis(b, 0, AxisRange(rows...))
	}
	return Add(y, ExpandLeftToRank(b, y.Rank()))
}
