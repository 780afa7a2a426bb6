package grammar

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// counts are derivatives of the log-likelihoods of sentences, each times the weight of its sentence, with respect to
// potentials. They are expected numbers: how often the posterior uses a rule, a tag, a span.
type counts struct {
	root  *Node   // [sentences,N]
	rules *Node   // [A,Q,S,S], added up over the sentences of a group
	terms *Node   // [A,B,n,T]
	spans []*Node // by width from 2 on: [A,B,m,Q]
}

// outside differentiates logTotal of a chart of sums, by hand: what automatic differentiation would add up span by span
// is here a few products over all spans. Each sentence counts as often as its weight [sentences] says.
func (c *chart) outside(weight *Node) counts {
	posterior := c.rootPosterior()
	out := counts{root: Mul(posterior, InsertAxes(weight, -1)), spans: make([]*Node, len(c.levels))}
	rates := make([]*Node, len(c.levels)) // counts per unit of outcome
	var left, right, nn *Node             // derivatives to level.left and level.right, and to rules of nonterminals
	for i := len(c.levels) - 1; i >= 0; i-- {
		v := c.levels[i]
		seed := Where(c.hasLength(v.width), out.root, ZerosLike(out.root))
		count := c.fromTop(seed, c.n-v.width+1)
		if v.width < c.n {
			child := Add(
				grow(Squeeze(SliceAxis(left, 3, AxisElem(v.width-2)), 3), 2, 0, 1),
				grow(Squeeze(SliceAxis(right, 3, AxisElem(0)), 3), 2, 1, 0))
			count = Add(count, c.asOutcome(Mul(child, v.child)))
		}
		out.spans[i] = count
		rates[i] = quotient(count, v.outcome)
		if v.width == 2 {
			break
		}
		var more *Node
		left, right, more = c.down(v, rates[i], left, right)
		nn = plus(nn, more)
	}
	out.rules, out.terms = c.ruleCounts(rates, nn)
	return out
}

// rootPosterior is the distribution of the top symbol, [sentences,N]; zero for an impossible sentence.
func (c *chart) rootPosterior() *Node {
	p, _ := c.shifted(Add(c.topLog, c.root))
	return quotient(p, InsertAxes(ReduceSum(p, -1), -1))
}

// down passes derivatives of a level to its parts. left and right are what wider spans have said of theirs.
func (c *chart) down(v *level, rate, left, right *Node) (newLeft, newRight, nn *Node) {
	w := v.width
	scaled := func(split int) *Node { return Mul(rate, SliceAxis(v.scale, 3, AxisElem(split))) }
	toLeft := InsertAxes(DotGeneral(v.rightRules(c), []int{3}, cells, scaled(w-2), []int{3}, cells), 3) // [A,B,m,1,N]
	toRight := InsertAxes(DotGeneral(v.leftRules(c), []int{3}, cells, scaled(0), []int{3}, cells), 3)
	if w > 3 {
		pairs := DotGeneral(rate, []int{3}, []int{0}, c.nn, []int{1}, []int{0}) // [A,B,m,N,N]
		nn = DotGeneral(rate, []int{1, 2}, []int{0}, v.pairs, []int{1, 2}, []int{0})
		innerLeft := DotGeneral(Mul(v.innerRight(), v.innerScale()), []int{4}, cells, pairs, []int{4}, cells)
		innerRight := DotGeneral(Mul(v.innerLeft(), v.innerScale()), []int{4}, cells, pairs, []int{3}, cells)
		toLeft = Concatenate([]*Node{innerLeft, toLeft}, 3)
		toRight = Concatenate([]*Node{toRight, innerRight}, 3)
	}
	if left != nil {
		toLeft = Add(toLeft, grow(SliceAxis(left, 3, AxisRange(0, w-2)), 2, 0, 1))
		toRight = Add(toRight, grow(SliceAxis(right, 3, AxisRangeToEnd(1)), 2, 1, 0))
	}
	return toLeft, toRight, nn
}

// ruleCounts adds up what all spans say of rules and words.
func (c *chart) ruleCounts(rates []*Node, nn *Node) (rules, terms *Node) {
	first, second := dropLast(c.words), dropFirst(c.words)
	rate := rates[0]                                                                // spans of two words
	pair := Mul(InsertAxes(rate, -1), InsertAxes(first, 3))                         // [A,B,m,Q,T]
	pp := perGroup(pair, second)                                                    // [A,Q,T,T]
	toFirst := DotGeneral(c.levels[0].half, []int{3}, cells, rate, []int{3}, cells) // [A,B,m,T]
	toSecond := DotGeneral(pair, []int{3, 4}, []int{0}, c.pp, []int{1, 2}, []int{0})
	words := Add(grow(toFirst, 2, 0, 1), grow(toSecond, 2, 1, 0))
	np, pn := ZerosLike(c.np), ZerosLike(c.pn)
	if c.n > 2 {
		atRight, atLeft := c.wordRuleCounts(rates)
		np, pn = perGroup(atRight, c.words), perGroup(atLeft, c.words)
		words = Add(words, Add(
			DotGeneral(atRight, []int{3, 4}, []int{0}, c.np, []int{1, 2}, []int{0}),
			DotGeneral(atLeft, []int{3, 4}, []int{0}, c.pn, []int{1, 2}, []int{0})))
	}
	if nn == nil {
		nn = ZerosLike(c.nn)
	}
	return c.joined(nn, np, pn, pp), Mul(words, c.words)
}

// joined turns derivatives to the blocks of rules into counts of rules, [A,Q,S,S].
func (c *chart) joined(nn, np, pn, pp *Node) *Node {
	top := Concatenate([]*Node{Mul(nn, c.nn), Mul(np, c.np)}, 3)
	bottom := Concatenate([]*Node{TransposeAllAxes(Mul(pn, c.pn), 0, 1, 3, 2), Mul(pp, c.pp)}, 3)
	return Concatenate([]*Node{top, bottom}, 2)
}

// perGroup is the sum over sentences and spans of products of x [A,B,m,Q,K] and words [A,B,m,T]: [A,Q,K,T].
func perGroup(x, words *Node) *Node {
	return DotGeneral(x, []int{1, 2}, []int{0}, words, []int{1, 2}, []int{0})
}

// wordRuleCounts are the derivatives to atRight and atLeft, [A,B,n,Q,N], of all widths at once.
func (c *chart) wordRuleCounts(rates []*Node) (atRight, atLeft *Node) {
	var lastRates, firstRates, lastParts, firstParts []*Node
	for i, v := range c.levels[1:] {
		rate := rates[i+1]
		lastRates = append(lastRates, Mul(rate, SliceAxis(v.scale, 3, AxisElem(v.width-2))))
		firstRates = append(firstRates, Mul(rate, SliceAxis(v.scale, 3, AxisElem(0))))
		lastParts = append(lastParts, v.leftPart(v.width-1))
		firstParts = append(firstParts, v.rightPart(v.width-1))
	}
	join := func(rates, parts []*Node, ends bool) *Node {
		return DotGeneral(stackWidths(rates, c.n, 0, ends), []int{3}, cells, stackWidths(parts, c.n, 0, ends), []int{3}, cells)
	}
	return join(lastRates, lastParts, true), join(firstRates, firstParts, false)
}

// quotient is x/y, and 0 where y is so small that the result might overflow: a span that is that unlikely next to its
// parts has lost its digits, too.
func quotient(x, y *Node) *Node {
	least := 1e-300
	if y.DType() == dtypes.Float32 {
		least = 1e-35
	}
	some := GreaterThan(y, ConstAs(y, least))
	q := Div(x, Where(some, y, OnesLike(y)))
	return Where(BroadcastToDims(some, q.Shape().Dimensions...), q, ZerosLike(q))
}

// plus is x+y, with nil for zero.
func plus(x, y *Node) *Node {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return Add(x, y)
}
