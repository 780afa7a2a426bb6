package grammar

import (
	"errors"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// LogTree is log p(x,z) of a given tree of each sentence, [B], with preterminals summed out. It takes time in
// proportion to the length, and can be differentiated. Potentials of spans must be nil. Merges may be in any order.
func (p Potentials) LogTree(z Trees) *Node {
	s := p.ScoreTrees(z)
	return Add(ReduceSum(s.Nodes, 1), s.Root)
}

// TreeScores are the parts that log p(x,z) of given trees is the sum of.
type TreeScores struct {
	Nodes *Node // [B,n-1]: of each merge, the log-probability of its rule and of the words right below it; 0 for padding
	Root  *Node // [B]: of the label at the top
}

// ScoreTrees is LogTree by parts. Of a node, the probability depends on what its children are: two nonterminals have
// one rule; with words, rules of all preterminals are added up, each with its words.
func (p Potentials) ScoreTrees(z Trees) TreeScores {
	s := p.scorer(z)
	leftWord, rightWord := s.wordAt(z.Left), s.wordAt(z.Right) // [B,n-1,T]
	nt, pt := AxisRangeFromStart(s.nt), AxisRangeToEnd(s.nt)
	row := s.ruleRow()
	block := func(l, r SliceAxisSpec) *Node { return Slice(s.rules, AxisRange(), AxisRange(), l, r) }

	nn := gatherFlat(block(nt, nt), plusIndex(plusIndex(row, s.nt, s.leftLabel), s.nt, s.rightLabel), 1)
	nn = Squeeze(nn, -1)
	np := logSumExpLast(Add(gatherFlat(block(nt, pt), plusIndex(row, s.nt, s.leftLabel), s.pt), rightWord))
	pn := logSumExpLast(Add(gatherFlat(TransposeAllAxes(block(pt, nt), 0, 1, 3, 2), plusIndex(row, s.nt, s.rightLabel), s.pt), leftWord))
	pp := Reshape(gatherFlat(block(pt, pt), row, s.pt*s.pt), s.sentences, s.n-1, s.pt, s.pt)
	pp = Add(Add(pp, InsertAxes(leftWord, -1)), InsertAxes(rightWord, -2))
	ppSum := logSumExpLast(Reshape(pp, s.sentences, s.n-1, s.pt*s.pt))

	score := Where(s.leftIsWord, Where(s.rightIsWord, ppSum, pn), Where(s.rightIsWord, np, nn))
	return s.parts(score)
}

// LogDerivation is log p(x,z,tags) of a given tree and given preterminals [B,n] of each sentence: [B].
func (p Potentials) LogDerivation(z Trees, tags *Node) *Node {
	s := p.scorer(z)
	symbol := func(node, label, isWord *Node) *Node {
		word := MinScalar(node, s.n-1)
		tag := Gather(tags, Stack([]*Node{s.row, word}, -1))
		return Where(isWord, AddScalar(tag, s.nt), label)
	}
	left, right := symbol(z.Left, s.leftLabel, s.leftIsWord), symbol(z.Right, s.rightLabel, s.rightIsWord)
	symbols := s.nt + s.pt
	at := plusIndex(plusIndex(s.ruleRow(), symbols, left), symbols, right)
	score := Squeeze(gatherFlat(s.rules, at, 1), -1)
	emit := func(node, symbol, isWord *Node) *Node {
		tag := InsertAxes(MaxScalar(SubScalar(symbol, s.nt), 0), -1)
		here := Equal(tag, Iota(tag.Graph(), shapes.Make(dtypes.Int32, 1, 1, s.pt), 2))
		words := s.wordAt(node)
		value := ReduceSum(Where(here, words, ZerosLike(words)), -1)
		return Where(isWord, value, ZerosLike(value))
	}
	parts := s.parts(Add(score, Add(emit(z.Left, left, s.leftIsWord), emit(z.Right, right, s.rightIsWord))))
	return Add(ReduceSum(parts.Nodes, 1), parts.Root)
}

// scorer knows the surroundings of each merge of given trees; all are [B,n-1].
type scorer struct {
	*layout
	z                       Trees
	row                     *Node // the sentence
	leftIsWord, rightIsWord *Node
	leftLabel, rightLabel   *Node // 0 for words
	parent                  *Node // 0 is ROOT
	live                    *Node // merges that are not padding
}

func (p Potentials) scorer(z Trees) *scorer {
	if p.Spans != nil {
		panic(errors.New("grammar: the score of a tree has no potentials of spans; leave them nil"))
	}
	s := &scorer{layout: p.layout(), z: z}
	g := z.Left.Graph()
	k := s.n - 1
	ints := shapes.Make(dtypes.Int32, s.sentences, k)
	s.row = Iota(g, ints, 0)
	step := Iota(g, ints, 1)
	s.live = LessThan(step, SubScalar(InsertAxes(s.lengths, -1), 1))
	s.leftIsWord, s.leftLabel = s.child(z.Left)
	s.rightIsWord, s.rightLabel = s.child(z.Right)
	// The parent of merge t is the merge u that takes node n+t.
	node := InsertAxes(AddScalar(step, s.n), -1) // [B,t,1]
	takes := func(c *Node) *Node { return Equal(node, InsertAxes(c, 1)) }
	is := LogicalAnd(LogicalOr(takes(z.Left), takes(z.Right)), InsertAxes(s.live, 1)) // [B,t,u]
	label := BroadcastToDims(InsertAxes(AddScalar(z.Label, 1), 1), s.sentences, k, k)
	s.parent = ReduceSum(Where(is, label, ZerosLike(label)), -1)
	return s
}

// child says which children are words, and the labels of the others.
func (s *scorer) child(node *Node) (isWord, label *Node) {
	merge := SubScalar(node, s.n)
	isWord = LessThan(merge, ZerosLike(merge))
	label = Gather(s.z.Label, Stack([]*Node{s.row, MaxScalar(merge, 0)}, -1))
	return isWord, Where(isWord, ZerosLike(label), label)
}

// ruleRow is the number of the distribution over rules that a merge draws from.
func (s *scorer) ruleRow() *Node {
	switch {
	case s.parents:
		return plusIndex(s.z.Label, s.q, s.parent)
	case s.b == 1:
		return plusIndex(s.row, s.q, s.z.Label)
	}
	return s.z.Label
}

// wordAt reads the log-weights of the preterminals of a child that is a word, [B,n-1,T]; for other children they mean
// nothing.
func (s *scorer) wordAt(node *Node) *Node {
	at := plusIndex(s.row, s.n, MinScalar(node, s.n-1))
	if s.parents {
		at = Add(MulScalar(s.z.Label, s.sentences*s.n), at)
	}
	return gatherFlat(s.terms, at, s.pt)
}

// parts leaves out the padding and adds the root, which is the node that no other takes.
func (s *scorer) parts(score *Node) TreeScores {
	top := LogicalAnd(s.live, Equal(s.parent, ZerosLike(s.parent))) // [B,n-1]
	label := ReduceSum(Where(top, s.z.Label, ZerosLike(s.z.Label)), 1)
	is := Equal(InsertAxes(label, -1), Iota(label.Graph(), shapes.Make(dtypes.Int32, 1, s.nt), 1))
	root := BroadcastToDims(s.root, s.sentences, s.nt)
	return TreeScores{
		Nodes: Where(s.live, score, ZerosLike(score)),
		Root:  ReduceSum(Where(is, root, ZerosLike(root)), 1),
	}
}

// gatherFlat reads rows of the given size from a tensor whose leading axes are counted through.
func gatherFlat(x, at *Node, size int) *Node { return Gather(Reshape(x, -1, size), InsertAxes(at, -1)) }

// plusIndex is the number of element i of row at, of rows of the given size.
func plusIndex(at *Node, size int, i *Node) *Node { return Add(MulScalar(at, size), i) }

// logSumExpLast adds up over the last axis; where nothing is above zero it is -Inf, without a gradient.
func logSumExpLast(x *Node) *Node {
	most := StopGradient(MaxScalar(ReduceMax(x, -1), never))
	total := ReduceSum(Exp(Sub(x, InsertAxes(most, -1))), -1)
	some := GreaterThan(total, ZerosLike(total))
	sum := Add(Log(Where(some, total, OnesLike(total))), most)
	return Where(some, sum, BroadcastToShape(Infinity(x.Graph(), x.DType(), -1), sum.Shape()))
}
