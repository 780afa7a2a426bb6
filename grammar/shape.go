package grammar

import (
	"errors"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// LogShape is log p(x,s) of the shape s of a given tree of each sentence, [B], with labels and preterminals summed out;
// labels of the tree do not matter. A merge is one product with the rules, NS² (NPS² where rules see the parent), and a
// tree has n-1 of them. It can be differentiated once, by hand as LogLikelihood is. Potentials of spans must be nil.
// Merges may be in any order.
//
// By Fisher's identity the gradient of log p(x) is the posterior mean of that of log p(x,s), which varies less than
// that of log p(x,z).
func (p Potentials) LogShape(z Trees) *Node {
	if p.Spans != nil {
		panic(errors.New("grammar: the score of a shape has no potentials of spans; leave them nil"))
	}
	s := p.stopped().shaped(z)
	return p.differentiable(s.chart, s.outside)
}

// shaped is a chart of the nodes of one shape for each sentence, M = n-1 of them, in place of all spans. As there,
// values are relative to shifts. A child is a word or a node; where it is not the one, its weights as that are 0, so
// that of the four products of a merge one counts.
type shaped struct {
	*chart
	merges
	leftWord, rightWord *Node   // [A,B,M,T]
	halves              *Node   // [A,B,M,Q,T]: rules of two words with the right one taken in, by the left preterminal
	atRight, atLeft     *Node   // [A,B,M,Q,N]: rules whose right (left) child is a word, by the other child
	left, right         []*Node // of each merge [A,B,1,N]: children that are nodes
	outcome             []*Node // of each merge [A,B,1,Q]
}

// shaped fills the chart bottom-up.
func (p Potentials) shaped(z Trees) *shaped {
	l := p.layout()
	c, wordShift := newChart(l, sumProduct)
	s := &shaped{chart: c, merges: l.bottomUp(z)}
	leftIsWord, rightIsWord := s.isWord(s.leftNode), s.isWord(s.rightNode)
	word := func(x, node, isWord *Node) *Node { return only(isWord, s.each(x, MinScalar(node, s.n-1))) }
	s.leftWord, s.rightWord = word(s.words, s.leftNode, leftIsWord), word(s.words, s.rightNode, rightIsWord)
	s.halves = DotGeneral(s.rightWord, []int{3}, []int{0}, s.pp, []int{3}, []int{0})
	s.atRight = DotGeneral(s.rightWord, []int{3}, []int{0}, s.np, []int{3}, []int{0})
	s.atLeft = DotGeneral(s.leftWord, []int{3}, []int{0}, s.pn, []int{3}, []int{0})
	twoWords := DotGeneral(s.halves, []int{4}, cells, s.leftWord, []int{3}, cells) // [A,B,M,Q]
	shiftOfWords := Add(word(wordShift, s.leftNode, leftIsWord), word(wordShift, s.rightNode, rightIsWord))

	var nodes, shifts, logs *Node // [A,B,t,N], [A,B,t], [A,B,t,Q] after t merges
	for t := range s.n - 1 {
		outcome, shift := step(twoWords, t), step(shiftOfWords, t)
		left := Zeros(outcome.Graph(), shapes.Make(outcome.DType(), s.a, s.b, 1, s.nt))
		right := left
		if t > 0 {
			node := func(x, node, isWord *Node) *Node {
				at := step1(node, t)
				return only(LogicalNot(step(isWord, t)), s.each(x, MinScalar(MaxScalar(SubScalar(at, s.n), 0), t-1)))
			}
			left, right = node(nodes, s.leftNode, leftIsWord), node(nodes, s.rightNode, rightIsWord)
			shift = Add(shift, Add(node(shifts, s.leftNode, leftIsWord), node(shifts, s.rightNode, rightIsWord)))
			outcome = Add(outcome, Add(
				DotGeneral(step(s.atRight, t), []int{4}, cells, left, []int{3}, cells),
				DotGeneral(step(s.atLeft, t), []int{4}, cells, right, []int{3}, cells)))
			pair := Reshape(outer(left, right), s.a, s.b, 1, s.nt*s.nt)
			outcome = Add(outcome, DotGeneral(pair, []int{3}, []int{0}, Reshape(s.nn, s.a, s.q, s.nt*s.nt), []int{2}, []int{0}))
		}
		s.left, s.right, s.outcome = append(s.left, left), append(s.right, right), append(s.outcome, outcome)
		log := Add(Log(outcome), InsertAxes(shift, -1))
		logs = joinSteps(logs, log)
		child, childShift := s.shifted(s.asChild(log))
		nodes, shifts = joinSteps(nodes, child), joinSteps(shifts, childShift)
	}
	top := InsertAxes(SubScalar(s.lengths, 2), -1)
	s.topLog = s.top(s.each(logs, top))
	return s
}

// isWord says which children are words: [A,B,M], or [1,B,M] where groups hold all sentences.
func (s *shaped) isWord(node *Node) *Node {
	return s.perSentence(LessThan(node, Scalar(node.Graph(), dtypes.Int32, s.n)))
}

// outside differentiates the total of the chart as chart.outside does: rates are counts per unit of outcome.
func (s *shaped) outside(weight *Node) counts {
	out := counts{root: Mul(s.rootPosterior(), InsertAxes(weight, -1))}
	seed := s.fromTop(out.root, 1)
	rates := make([]*Node, s.n-1)
	var toNodes *Node // [A,B,2K,N]: counts of the left and right children of the last K merges
	for t := s.n - 2; t >= 0; t-- {
		isTop := Equal(s.lengths, Scalar(s.lengths.Graph(), s.lengths.DType(), t+2))
		count := only(s.perSentence(InsertAxes(isTop, -1)), seed)
		if toNodes != nil {
			at := MaxScalar(SubScalar(step1(s.parent, t), 2*(t+1)), 0)
			child := only(s.perSentence(step1(s.hasParent, t)), s.each(toNodes, at))
			count = Add(count, s.asOutcome(child))
		}
		rate := quotient(count, s.outcome[t])
		rates[t] = rate
		if t == 0 {
			break
		}
		pairs := DotGeneral(rate, []int{3}, []int{0}, s.nn, []int{1}, []int{0}) // [A,B,1,N,N]
		toLeft := Add(
			DotGeneral(pairs, []int{4}, cells, s.right[t], []int{3}, cells),
			DotGeneral(step(s.atRight, t), []int{3}, cells, rate, []int{3}, cells))
		toRight := Add(
			DotGeneral(pairs, []int{3}, cells, s.left[t], []int{3}, cells),
			DotGeneral(step(s.atLeft, t), []int{3}, cells, rate, []int{3}, cells))
		toNodes = joinSteps(Concatenate([]*Node{Mul(toLeft, s.left[t]), Mul(toRight, s.right[t])}, 2), toNodes)
	}
	out.rules, out.terms = s.ruleCounts(Concatenate(rates, 2))
	return out
}

// ruleCounts adds up what all merges say of rules and words.
func (s *shaped) ruleCounts(rate *Node) (rules, terms *Node) {
	left, right := Concatenate(s.left, 2), Concatenate(s.right, 2) // [A,B,M,N]
	byLeft, byRight := outer(rate, left), outer(rate, right)       // [A,B,M,Q,N]
	pair := outer(rate, s.leftWord)                                // [A,B,M,Q,T]
	nn, np, pn, pp := perGroup(byLeft, right), perGroup(byLeft, s.rightWord), perGroup(byRight, s.leftWord), perGroup(pair, s.rightWord)

	back := func(x, block *Node) *Node { return DotGeneral(x, []int{3, 4}, []int{0}, block, []int{1, 2}, []int{0}) }
	toLeft := Add(back(byRight, s.pn), DotGeneral(s.halves, []int{3}, cells, rate, []int{3}, cells))
	toRight := Add(back(byLeft, s.np), back(pair, s.pp))
	words := Concatenate([]*Node{Mul(toLeft, s.leftWord), Mul(toRight, s.rightWord)}, 2) // [A,B,2M,T]
	return s.joined(nn, np, pn, pp), only(s.perSentence(s.wordUsed), s.each(words, s.wordAt))
}

// each reads, for each sentence, some places [sentences,m] of x [A,B,k,...]: [A,B,m,...].
func (l *layout) each(x, places *Node) *Node {
	g, d := x.Graph(), x.Shape().Dimensions
	cell := Iota(g, shapes.Make(dtypes.Int32, l.a*l.b, 1), 0)
	at := Add(MulScalar(Reshape(cell, l.a, l.b, 1), d[2]), l.perSentence(places)) // [A,B,m]
	size := 1
	for _, n := range d[3:] {
		size *= n
	}
	return Reshape(gatherFlat(x, at, size), append([]int{l.a, l.b, at.Shape().Dim(2)}, d[3:]...)...)
}

// only keeps those cells of x [A,B,m,...] for which is [A,B,m] holds, and has 0 for the others.
func only(is, x *Node) *Node {
	for is.Rank() < x.Rank() {
		is = InsertAxes(is, -1)
	}
	return Where(BroadcastToShape(is, x.Shape().Clone()), x, ZerosLike(x))
}

// outer is the products of all x [A,B,m,K] with all y [A,B,m,L]: [A,B,m,K,L].
func outer(x, y *Node) *Node { return Mul(InsertAxes(x, -1), InsertAxes(y, 3)) }

// step reads merge t of x [A,B,M,...], and step1 of x [sentences,M].
func step(x *Node, t int) *Node  { return SliceAxis(x, 2, AxisElem(t)) }
func step1(x *Node, t int) *Node { return SliceAxis(x, 1, AxisElem(t)) }

// joinSteps puts merges, or what belongs to them, one after the other; either may be nil.
func joinSteps(first, then *Node) *Node {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return Concatenate([]*Node{first, then}, 2)
}
