package main

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

const (
	letters = 26
	float   = dtypes.Float32
	integer = dtypes.Int32
)

// Words is p(x,z). A sentence has n letters, with a known probability, and words are drawn independently of each other
// until they fill it exactly:
//
//	p(x,z) = p(n) · prod_words p(word) / Z(n)      p(word) = p(its entry) + p(another word of l letters) · prod p(letter)
//
// where Z(n) is the probability that words drawn one after the other fill n letters. What is learned are the
// probabilities of all entries of the lexicon, "another word of l letters" among them, and those of letters in other words.
type Words struct{ Lexicon }

var _ lvm.Model = Words{}

// Env decides from left to right behind which letters a word ends.
func (m Words) Env() envs.Segmentation {
	return envs.Segmentation{Max: m.Max, Longest: m.Longest, Length: func(x gfn.Batch) *Node { return length(x[0]) }}
}

// length is the number of letters of sentences [B,Max], [B]: letters are 1 to 26, and 0 is behind the end.
func length(x *Node) *Node { return ReduceSum(ConvertDType(GreaterThan(x, ZerosLike(x)), integer), 1) }

// tables are log-probabilities of the entries, [E], of the letters of words that are not among them, [26], of the number
// of letters of a word, [Longest], and of words that fill so many letters, [Max+1].
type tables struct{ entry, letter, size, fill *Node }

func (m Words) tables(theta *model.Scope, g *Graph) (t tables) {
	// At the start, all cuts of a sentence are about equally probable: a letter costs the same in long and short words.
	start := Const(g, m.sizes(func(l int) float32 { return -2 * float32(l) }))
	t.entry = LogSoftmax(Add(start, nn.Param(theta, g, float, "words", 0.1, len(m.Entries))))
	t.letter = LogSoftmax(nn.Param(theta, g, float, "letters", 0.1, letters))
	var sizes []*Node
	for l := range m.Longest {
		sizes = append(sizes, nn.LogSumExp(SliceAxis(t.entry, 0, AxisRange(m.first[l], m.first[l+1])), 0))
	}
	t.size = Stack(sizes, 0)
	t.fill = Squeeze(sums(BroadcastToDims(InsertAxes(t.size, 0, 0), 1, m.Max, m.Longest)), 0)
	return t
}

// words are the log-probabilities of the words that begin with each letter of sentences and have 1, 2, ... letters,
// [B,Max,Longest]; -Inf where the sentence ends before.
func (m Words) words(t tables, x *Node) *Node {
	g := x.Graph()
	never := Infinity(g, float, -1)
	entry := Concatenate([]*Node{t.entry, BroadcastToDims(never, 2)}, 0)
	letter := Concatenate([]*Node{Zeros(g, shapes.Make(float, 1)), t.letter}, 0)
	at, spelt := AddScalar(ZerosLike(x), m.root()), Zeros(g, shapes.Make(float, x.Shape().Dimensions...))
	var all []*Node
	for l := range m.Longest {
		next := x
		if l > 0 {
			next = ShiftLeft(x, l, 0)
		}
		at = Gather(Const(g, m.next), InsertAxes(Add(MulScalar(at, letters+1), next), -1))
		spelt = Add(spelt, Gather(letter, InsertAxes(next, -1)))
		other := Add(spelt, Squeeze(SliceAxis(t.entry, 0, AxisElem(m.first[l+1]-1)), 0))
		both := nn.LogSumExp(Stack([]*Node{Gather(entry, InsertAxes(at, -1)), other}, 2), 2)
		all = append(all, Where(GreaterThan(next, ZerosLike(next)), both, BroadcastToShape(never, both.Shape())))
	}
	return Stack(all, 2)
}

// LogJoint is log p(x,z), [B].
func (m Words) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	t := m.tables(theta, x[0].Graph())
	words, ends := m.words(t, x[0]), m.Env().Ends(z)
	is := ShiftRight(ends, 1, 1) // whether a word of z begins there and has l letters or more, [B,Max]
	var chosen []*Node
	for l := range m.Longest {
		end := ends
		if l > 0 {
			end = ShiftLeft(ends, l, 0)
		}
		chosen = append(chosen, LogicalAnd(is, end))
		is = LogicalAnd(is, LogicalNot(end))
	}
	return Add(ReduceSum(Where(Stack(chosen, 2), words, ZerosLike(words)), 1, 2), m.rest(t, x[0]))
}

// rest is log p(n) - log Z(n), [B].
func (m Words) rest(t tables, x *Node) *Node {
	return Gather(Sub(Const(x.Graph(), m.LogLengths), t.fill), InsertAxes(length(x), 1))
}

// Sample draws n sentences: how long they are, where their words end, which entries these are, and their letters.
func (m Words) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	g := r.State().Graph()
	t := m.tables(theta, g)
	lengths := r.Categorical(Exp(BroadcastToDims(InsertAxes(Const(g, m.LogLengths), 0), n, m.Max+1)))
	var fits []*Node // how probable the size of the next word is, up to a factor, by the letters that are left
	for l := 1; l <= m.Longest; l++ {
		p := Squeeze(SliceAxis(t.size, 0, AxisElem(l-1)), 0)
		fits = append(fits, Mul(Exp(p), ShiftRight(Exp(t.fill), l, 0)))
	}
	fit := Stack(fits, 1) // [Max+1,Longest]

	u := r.Uniform(float, n, m.Max, m.Longest+1)
	size, place, luck := ZerosLike(lengths), ZerosLike(lengths), Zeros(g, shapes.Make(float, n)) // of the word at a letter
	var sizes, places, lucks []*Node
	for i := range m.Max {
		now := Squeeze(SliceAxis(u, 1, AxisElem(i)), 1)
		begins := Equal(place, size)
		left := MaxScalar(AddScalar(lengths, -i), 0)
		fresh := OnePlus(rng.Choose(SliceAxis(now, 1, AxisRange(0, m.Longest)), Gather(fit, InsertAxes(left, 1))))
		size, place = Where(begins, fresh, size), Where(begins, ZerosLike(place), place)
		luck = Where(begins, Squeeze(SliceAxis(now, 1, AxisElem(m.Longest)), 1), luck)
		sizes, places, lucks = append(sizes, size), append(places, place), append(lucks, luck)
		place = OnePlus(place)
	}
	size, place, luck = Stack(sizes, 1), Stack(places, 1), Stack(lucks, 1) // [n,Max]
	entry := Add(Mul(m.pick(t, size, luck), Scalar(g, integer, m.Longest)), place)
	letter := Gather(Const(g, m.letters()), InsertAxes(entry, -1))
	other := OnePlus(r.Categorical(Exp(BroadcastToDims(InsertAxes(t.letter, 0, 0), n, m.Max, letters))))
	letter = Where(IsZero(letter), other, letter)
	there := LessThan(Iota(g, letter.Shape(), 1), InsertAxes(lengths, 1))
	ends := SliceAxis(Equal(OnePlus(place), size), 1, AxisRange(0, m.Max-1))
	return gfn.Batch{Where(there, letter, ZerosLike(letter))}, m.Env().Of(ConvertDType(ends, integer), lengths)
}

// pick takes entries of given sizes by numbers from 0 to 1, by bisection of their cumulative probabilities.
func (m Words) pick(t tables, size, u *Node) *Node {
	g := size.Graph()
	p := Exp(t.entry)
	upTo := CumSum(p, 0)
	first := Const(g, m.firsts())
	low, high := Gather(first, InsertAxes(MinusOne(size), -1)), MinusOne(Gather(first, InsertAxes(size, -1)))
	under := func(i *Node) *Node { return Gather(Sub(upTo, p), InsertAxes(i, -1)) }
	target := Add(under(low), Mul(u, Gather(Exp(t.size), InsertAxes(MinusOne(size), -1))))
	for n := 1; n < len(m.Entries); n *= 2 { // the last entry that begins at the target or below
		middle := Div(OnePlus(Add(low, high)), Scalar(g, integer, 2))
		right := LessOrEqual(under(middle), target)
		low, high = Where(right, middle, low), Where(right, high, MinusOne(middle))
	}
	return low
}
