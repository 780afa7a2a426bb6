package forest

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar"
)

// Inside is what is known of the nodes of shapes, whose labels are summed out (Network.Grammar): what the words below a
// node weigh as each symbol s, seen from each context k. In a context-free grammar there is one context. Where the
// parent matters, the context of a node is the symbol above it, 0 for ROOT; that of a word is the nonterminal above its
// preterminal.
type Inside struct {
	Symbols *Node // [B,n+G,K*S]: weights that add up to 1
	Log     *Node // [B,n+G]: the logarithm of what they would add up to
}

// InsideTensors are Inside on the host.
type InsideTensors struct{ Symbols, Log *tensors.Tensor }

// contexts is K, for a table of rules.
func contexts(rules *Node) int {
	if rules.Rank() == 4 {
		return rules.Shape().Dim(1)
	}
	return 1
}

// ruleTable are the probabilities of the rules of a grammar, in the precision of the network.
func (m Network) ruleTable(t grammar.LogProbs) *Node {
	return ConvertDType(Exp(StopGradient(t.Rules)), m.DType)
}

// kinds is the number of labels that a merge chooses among.
func (m Network) kinds() int {
	if m.Grammar != nil {
		return 1
	}
	return m.Labels
}

// Env is the environment over sentences of at most so many words.
func (m Network) Env(words int) Env { return Env{Words: words, Labels: m.kinds()} }

// of returns the network with a grammar that is there already, so that its tables are not made again. Words are not
// asked for.
func (m Network) of(rules *Node) Network {
	if m.Grammar != nil {
		m.Grammar = func(*Graph) grammar.LogProbs { return grammar.LogProbs{Rules: rules} }
	}
	return m
}

// leafInside weighs leaves [B,n], words or symbols, numbered as in grammar.Dreams.
func (m Network) leafInside(t grammar.LogProbs, leaves *Node) Inside {
	g, d := leaves.Graph(), leaves.Shape().Dimensions
	b, n, k := d[0], d[1], contexts(t.Rules)
	emit := ConvertDType(StopGradient(t.Emit), m.DType)
	log := Gather(emit, InsertAxes(MinScalar(leaves, m.Words-1), -1)) // [B,n,T] or [B,n,T,N]
	byContext := InsertAxes(log, 2)                                   // [B,n,K,T]
	if k > 1 {
		byContext = TransposeAllAxes(log, 0, 1, 3, 2)
	}
	hosts := byContext.Shape().Dim(2)
	shift := ReduceMax(byContext, 2, 3)
	words := Exp(Sub(byContext, InsertAxes(shift, -1, -1)))
	words = Concatenate([]*Node{Zeros(g, shapes.Make(m.DType, b, n, hosts, m.Labels)), words}, 3) // [B,n,hosts,S]

	all := shapes.Make(dtypes.Int32, b, n, hosts, m.Labels+m.Preterminals)
	symbol := InsertAxes(SubScalar(leaves, m.Words+1), -1, -1)
	one := ConvertDType(Equal(Iota(g, all, 3), BroadcastToDims(symbol, all.Dimensions...)), m.DType)
	isWord := LessThan(leaves, Const(g, int32(m.Words)))
	weights := Where(BroadcastToDims(InsertAxes(isWord, -1, -1), all.Dimensions...), words, one)
	if k > hosts { // no word is below ROOT
		none := Zeros(g, shapes.Make(m.DType, b, n, 1, m.Labels+m.Preterminals))
		weights = Concatenate([]*Node{none, weights}, 2)
	}
	weights, added := normalised(Reshape(weights, b, n, -1))
	return Inside{weights, Add(Where(isWord, shift, ZerosLike(shift)), added)}
}

// normalised divides weights by their sum over the last axis, and returns the logarithm of that.
func normalised(x *Node) (weights, logSum *Node) {
	total := ReduceSum(x, -1)
	return Div(x, InsertAxes(total, -1)), Log(total)
}

// merged is what two neighbours [B,K*S] become: [B,K*S], and the logarithm [B] that is added to theirs. Rules are
// probabilities.
func (m Network) merged(rules, left, right *Node) (symbols, added *Node) {
	b, k, s := left.Shape().Dim(0), contexts(rules), m.Labels+m.Preterminals
	var out *Node // [B,K,N]
	if k == 1 {
		pair := Mul(InsertAxes(left, 2), InsertAxes(right, 1)) // [B,S,S]
		out = DotGeneral(Reshape(pair, b, s*s), []int{1}, nil, Reshape(rules, m.Labels, s*s), []int{1}, nil)
		out = InsertAxes(out, 1)
	} else {
		below := func(x *Node) *Node { // seen from each nonterminal: [B,N,S]
			return SliceAxis(Reshape(x, b, k, s), 1, AxisRangeToEnd(1))
		}
		pair := Mul(InsertAxes(below(left), 3), InsertAxes(below(right), 2)) // [B,N,S,S]
		out = DotGeneral(Reshape(pair, b, m.Labels, s*s), []int{2}, []int{1},
			Reshape(rules, m.Labels, k, s*s), []int{2}, []int{0}) // [N,B,K]
		out = TransposeAllAxes(out, 1, 2, 0)
	}
	none := BroadcastToDims(Const(out.Graph(), 0.0), b, k, m.Preterminals)
	out = Concatenate([]*Node{out, ConvertDType(none, m.DType)}, 2)
	return normalised(Reshape(out, b, k*s))
}

// inside weighs all nodes of trees, children first, by slot; leaves [B,n].
func (m Network) inside(p Plan, leaves *Node) Inside {
	t := m.Grammar(leaves.Graph())
	rules, all := m.ruleTable(t), m.leafInside(t, leaves)
	for step := range p.gap.Shape().Dim(1) {
		pair := SliceAxis(p.children(), 1, AxisElem(step)) // [B,1,2]
		pair = Squeeze(pair, 1)
		both, logs := rows(all.Symbols, pair), rows(all.Log, pair)
		child := func(i int) *Node { return Squeeze(SliceAxis(both, 1, AxisElem(i)), 1) }
		made, added := m.merged(rules, child(0), child(1))
		all.Symbols = Concatenate([]*Node{all.Symbols, InsertAxes(made, 1)}, 1)
		all.Log = Concatenate([]*Node{all.Log, InsertAxes(Add(added, ReduceSum(logs, 1)), 1)}, 1)
	}
	return all
}

// labels are the probabilities of labels of nodes [...,N], whatever is above them, from what they weigh as symbols
// [...,K*S].
func (m Network) labels(symbols *Node) *Node {
	d := symbols.Shape().Dimensions
	s := m.Labels + m.Preterminals
	byContext := Reshape(symbols, append(append([]int{}, d[:len(d)-1]...), -1, s)...)
	return SliceAxis(ReduceSum(byContext, -2), -1, AxisRangeFromStart(m.Labels))
}

// expected is the embedding of a label with such probabilities.
func (w *weights) expected(labels *Node) *Node {
	table := SliceAxis(w.at[EncoderScope+"/tokens"], 0, AxisRange(w.Words+1, w.Words+1+w.Labels))
	return DotGeneral(labels, []int{-1}, nil, table, []int{0}, nil)
}

// shapeRewards are log p(x,s) of whole shapes, and the scores that partial rewards are sums of: what a node has beyond
// its children, by u(node), the logarithm of the mean weight of its words over labels and contexts, which is 0 for
// words.
func (m Network) shapeRewards(root *Node, f Forest, in Inside) Rewards[*Node] {
	words, s := f.Words(), m.Labels+m.Preterminals
	k := in.Symbols.Shape().Dim(2) / s
	mean := SubScalar(in.Log, math.Log(float64(k*m.Labels)))
	inner := GreaterOrEqual(count(mean), Const(mean.Graph(), int32(words)))
	u := Where(inner, mean, ZerosLike(mean)) // [B,n+G]
	node := SliceAxis(u, 1, AxisRangeToEnd(words))
	score := Sub(node, Add(rows(u, f.Left), rows(u, f.Right)))

	top := Squeeze(SliceAxis(f.Root, 1, AxisElem(0)), 1)
	labels := SliceAxis(rows(in.Symbols, top), 1, AxisRangeFromStart(m.Labels)) // those below ROOT
	p := Exp(ConvertDType(root, labels.DType()))
	if p.Rank() == 1 {
		p = InsertAxes(p, 0)
	}
	total := ReduceSum(Mul(labels, p), -1)
	return Rewards[*Node]{
		LogR:  Add(Log(total), rows(in.Log, top)),
		Nodes: Where(GreaterThan(f.Label, ZerosLike(f.Label)), score, ZerosLike(score)),
	}
}
