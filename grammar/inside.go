package grammar

import (
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
)

// chart holds what every span of every sentence weighs under every symbol, and what was computed on the way.
//
// A nonterminal covers two words or more and a preterminal exactly one, so of the four blocks of a table of rules a
// span of width 2 uses the one with two preterminals alone, and a longer one never that. A preterminal below a longer
// span meets its word at once: atRight and atLeft are rules with that word already taken in, and what is left to do per
// span is small.
//
// Values are relative to a shift for each span (its best symbol), so that products do not underflow and float32 will
// do.
type chart struct {
	*layout
	semiring
	nn, np, pn, pp  *Node // blocks of rules: [A,Q,N,N] [A,Q,N,T] [A,Q,N,T] (right child first) [A,Q,T,T]
	words           *Node // [A,B,n,T]
	atRight, atLeft *Node // [A,B,n,Q,N]: rules whose right (left) child is the preterminal of a word, by the other child
	levels          []*level
	topLog          *Node // [sentences,N]: whole sentences, without the root
}

// level is the part of a chart for spans of one width w, m = n-w+1 of them.
type level struct {
	width       int
	scale       *Node // [A,B,m,w-1]: the weight of each split, from the shifts of its parts
	left, right *Node // [A,B,m,w-2,N]: left parts of 2 to w-1 words, right parts of w-1 to 2 words; nil if w = 2
	pairs       *Node // [A,B,m,N,N]: splits into two nonterminals, added up; nil if w < 4
	half        *Node // [A,B,m,Q,T]: w = 2 only, rules with the right word taken in, by the left preterminal
	outcome     *Node // [A,B,m,Q] relative to a shift
	logOutcome  *Node // [A,B,m,Q]
	child       *Node // [A,B,m,N] relative to a shift
	logChild    *Node // [A,B,m,N]
}

var cells = []int{0, 1, 2} // the axes A, B, m of a span

// newChart returns a chart of rules and words alone, and the shift of each word, [A,B,n].
func newChart(l *layout, r semiring) (c *chart, shift *Node) {
	c = &chart{layout: l, semiring: r}
	nt, all := AxisRangeFromStart(l.nt), AxisRange()
	pt := AxisRangeToEnd(l.nt)
	table := r.lift(l.rules)
	c.nn = Slice(table, all, all, nt, nt)
	c.np = Slice(table, all, all, nt, pt)
	c.pn = TransposeAllAxes(Slice(table, all, all, pt, nt), 0, 1, 3, 2)
	c.pp = Slice(table, all, all, pt, pt)
	c.words, shift = r.shifted(l.terms)
	return c, shift
}

// inside fills a chart bottom-up.
func inside(l *layout, r semiring) *chart {
	c, shift := newChart(l, r)
	if l.n > 2 {
		c.atRight = r.dot(c.words, []int{3}, []int{0}, c.np, []int{3}, []int{0})
		c.atLeft = r.dot(c.words, []int{3}, []int{0}, c.pn, []int{3}, []int{0})
	}
	shiftLeft := InsertAxes(dropLast(shift), -1)   // [A,B,m,w-1]: shifts of left parts of 1 to w-1 words
	shiftRight := InsertAxes(dropFirst(shift), -1) // and of right parts of w-1 to 1 words
	var left, right *Node
	for w := 2; w <= l.n; w++ {
		v := &level{width: w, left: left, right: right}
		both := Add(shiftLeft, shiftRight)
		most := ReduceMax(both, -1)
		v.scale = r.lift(Sub(both, InsertAxes(most, -1)))
		c.combine(v)
		v.logOutcome = Add(r.lower(v.outcome), InsertAxes(most, -1))
		if l.spans != nil {
			v.logOutcome = Add(v.logOutcome, InsertAxes(l.perSentence(c.spansOf(w)), -1))
		}
		v.logChild = l.asChild(v.logOutcome)
		v.child, shift = r.shifted(v.logChild)
		c.levels = append(c.levels, v)
		if w < l.n {
			left, right = appendLeft(left, v.child), appendRight(right, v.child)
			shiftLeft, shiftRight = appendLeft(shiftLeft, shift), appendRight(shiftRight, shift)
		}
	}
	c.topLog = c.readTop()
	return c
}

// combine computes the outcomes of all spans of a width from their parts.
func (c *chart) combine(v *level) {
	w, m := v.width, c.n-v.width+1
	if w == 2 {
		v.half = c.dot(dropFirst(c.words), []int{3}, []int{0}, c.pp, []int{3}, []int{0}) // [A,B,m,Q,T]
		v.outcome = c.dot(v.half, []int{4}, cells, dropLast(c.words), []int{3}, cells)
		return
	}
	last := c.dot(v.rightRules(c), []int{4}, cells, v.leftPart(w-1), []int{3}, cells)
	first := c.dot(v.leftRules(c), []int{4}, cells, v.rightPart(w-1), []int{3}, cells)
	terms := []*Node{
		c.times(last, SliceAxis(v.scale, 3, AxisElem(w-2))),
		c.times(first, SliceAxis(v.scale, 3, AxisElem(0))),
	}
	if w > 3 {
		scaled := c.times(v.innerLeft(), v.innerScale())
		v.pairs = c.dot(scaled, []int{3}, cells, v.innerRight(), []int{3}, cells) // [A,B,m,N,N]
		inner := c.dot(Reshape(v.pairs, c.a, c.b, m, c.nt*c.nt), []int{3}, []int{0},
			Reshape(c.nn, c.a, c.q, c.nt*c.nt), []int{2}, []int{0})
		terms = append(terms, inner)
	}
	v.outcome = c.sum(Stack(terms, -1), -1)
}

// rightRules are the rules of each span whose right child is the preterminal of its last word: [A,B,m,Q,N].
func (v *level) rightRules(c *chart) *Node {
	return SliceAxis(c.atRight, 2, AxisRangeToEnd(v.width-1))
}

// leftRules are those whose left child is the preterminal of its first word.
func (v *level) leftRules(c *chart) *Node {
	return SliceAxis(c.atLeft, 2, AxisRangeFromStart(c.n-v.width+1))
}

// leftPart is the left part of each span that has k words: [A,B,m,N].
func (v *level) leftPart(k int) *Node { return Squeeze(SliceAxis(v.left, 3, AxisElem(k-2)), 3) }

// rightPart is the right part of each span that has k words: [A,B,m,N].
func (v *level) rightPart(k int) *Node {
	return Squeeze(SliceAxis(v.right, 3, AxisElem(v.width-1-k)), 3)
}

// Splits into two nonterminals have left parts of 2 to w-2 words.
func (v *level) innerLeft() *Node  { return SliceAxis(v.left, 3, AxisRange(0, v.width-3)) }
func (v *level) innerRight() *Node { return SliceAxis(v.right, 3, AxisRangeToEnd(1)) }
func (v *level) innerScale() *Node {
	return InsertAxes(SliceAxis(v.scale, 3, AxisRange(1, v.width-2)), -1)
}

// spansOf reads the extra weights of spans of a width: [sentences,m].
func (c *chart) spansOf(w int) *Node {
	return Squeeze(Slice(c.spans, AxisRange(), AxisRangeFromStart(c.n-w+1), AxisElem(w-1)), 2)
}

// readTop reads the widest span of each sentence. A sentence of any other length than 2 to n weighs nothing.
func (c *chart) readTop() *Node {
	g, dtype := c.rules.Graph(), c.rules.DType()
	top := BroadcastToDims(Infinity(g, dtype, -1), c.sentences, c.nt)
	for _, v := range c.levels {
		top = Where(c.hasLength(v.width), c.top(v.logOutcome), top)
	}
	return top
}

// hasLength says of each sentence whether it has w words: [sentences,N].
func (c *chart) hasLength(w int) *Node {
	is := InsertAxes(Equal(c.lengths, Scalar(c.lengths.Graph(), c.lengths.DType(), w)), -1)
	return BroadcastToDims(is, c.sentences, c.nt)
}

// logTotal adds up all derivations of each sentence: [sentences].
func (c *chart) logTotal() *Node { return c.logSum(Add(c.topLog, c.root)) }

func dropFirst(x *Node) *Node { return SliceAxis(x, 2, AxisRangeToEnd(1)) }
func dropLast(x *Node) *Node  { return SliceAxis(x, 2, AxisRangeFromStart(x.Shape().Dim(2)-1)) }

// appendLeft adds the newest width, [A,B,m,...], to left parts [A,B,m,k,...]; spans that are one wider start at all but
// the last of the same words.
func appendLeft(parts, newest *Node) *Node {
	newest = InsertAxes(dropLast(newest), 3)
	if parts == nil {
		return newest
	}
	return Concatenate([]*Node{dropLast(parts), newest}, 3)
}

// appendRight does so with right parts, which are kept from wide to narrow.
func appendRight(parts, newest *Node) *Node {
	newest = InsertAxes(dropFirst(newest), 3)
	if parts == nil {
		return newest
	}
	return Concatenate([]*Node{newest, dropFirst(parts)}, 3)
}

// stackWidths lays values of spans of several widths, each [A,B,m,k], side by side: [A,B,n,widths,k], by the first word
// of a span, or by its last word. Where there is no span stands fill.
func stackWidths(pieces []*Node, n int, fill float64, byLast bool) *Node {
	var out []*Node
	for _, x := range pieces {
		if missing := n - x.Shape().Dim(2); missing > 0 {
			s := x.Shape().Clone()
			s.Dimensions[2] = missing
			parts := []*Node{x, FillScalar(x.Graph(), s, fill)}
			if byLast {
				slices.Reverse(parts)
			}
			x = Concatenate(parts, 2)
		}
		out = append(out, x)
	}
	return Stack(out, 3)
}
