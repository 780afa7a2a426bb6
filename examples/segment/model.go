package main

import (
	"slices"

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

const float, integer = dtypes.Float32, dtypes.Int32

// Words is p(x,z). A sentence x has n letters, with a known probability. Its words are drawn independently of each
// other, given that they fill the sentence exactly:
//
//	p(x,z)  = p(n) · prod_words p(word) / Z(n)
//	p(word) = p(entry of the word) + p(other word of as many letters) · prod_letters p(letter)
//
// Z(n) is the probability that words drawn one after the other come to end after n letters. The lexicon lists entries.
type Words struct{ Lexicon }

var _ lvm.Model = Words{}

// Env decides from left to right behind which letters a word ends.
func (m Words) Env() envs.Segmentation {
	return envs.Segmentation{Max: m.Max, Longest: m.Longest, Length: func(x gfn.Batch) *Node { return length(x[0]) }}
}

// length is the number of letters of sentences, [B]: in x, [B,Max], letters are 1 to 26, and 0 is behind the end.
func length(x *Node) *Node { return ReduceSum(ConvertDType(GreaterThan(x, ZerosLike(x)), integer), 1) }

// tables are log-probabilities: of entries [E] and of letters of other words [26], which are learned; and what follows
// from the first, that a word has 1, 2, ... letters [Longest], and that words fill 0, 1, ... letters [Max+1].
type tables struct{ entry, letter, size, fill *Node }

func (m Words) tables(theta *model.Scope, g *Graph) (t tables) {
	logs := func(name string, start []float32) *Node { // of weights that are never quite 0
		return LogSoftmax(Log(AddScalar(theta.VariableWithValue(name, start).NodeValue(g), 1e-12)))
	}
	t.entry, t.letter = logs("words", m.start), logs("letters", slices.Repeat([]float32{1}, letters))
	sizes := make([]*Node, m.Longest)
	for l := range sizes {
		sizes[l] = nn.LogSumExp(SliceAxis(t.entry, 0, AxisRange(int(m.first[l]), int(m.first[l+1]))), 0)
	}
	t.size = Stack(sizes, 0)
	t.fill = Squeeze(sums(BroadcastToDims(InsertAxes(t.size, 0, 0), 1, m.Max, m.Longest)), 0)
	return t
}

// words are log p(word) of the words that begin at each letter and have 1, 2, ... letters, [B,Max,Longest]; -Inf if the
// sentence ends before.
func (m Words) words(t tables, x *Node) *Node {
	g, never := x.Graph(), Infinity(x.Graph(), float, -1)
	entry := Concatenate([]*Node{t.entry, BroadcastToDims(never, 2)}, 0)
	letter := Concatenate([]*Node{Zeros(g, shapes.Make(float, 1)), t.letter}, 0)
	at, spelt := AddScalar(ZerosLike(x), m.root()), Gather(letter, InsertAxes(ZerosLike(x), -1))
	all := make([]*Node, m.Longest)
	for l := range all {
		next := shifted(x, -l, 0)
		at = Gather(Const(g, m.next), InsertAxes(Add(MulScalar(at, letters+1), next), -1))
		spelt = Add(spelt, Gather(letter, InsertAxes(next, -1)))
		other := Add(spelt, Squeeze(SliceAxis(t.entry, 0, AxisElem(int(m.first[l+1])-1)), 0))
		either := nn.LogSumExp(Stack([]*Node{Gather(entry, InsertAxes(at, -1)), other}, 2), 2)
		all[l] = Where(GreaterThan(next, ZerosLike(next)), either, BroadcastToShape(never, either.Shape()))
	}
	return Stack(all, 2)
}

// LogJoint is log p(x,z), [B].
func (m Words) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	t := m.tables(theta, x[0].Graph())
	words, ends := m.words(t, x[0]), m.Env().Ends(z)
	is := shifted(ends, 1, 1) // whether a word of z begins at a letter and has l letters or more, [B,Max]
	chosen := make([]*Node, m.Longest)
	for l := range chosen {
		end := shifted(ends, -l, 0)
		chosen[l], is = LogicalAnd(is, end), LogicalAnd(is, LogicalNot(end))
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
	fits := make([]*Node, m.Longest) // how probable sizes of the next word are, by how many letters are left
	for l := range fits {
		fits[l] = Mul(Exp(Squeeze(SliceAxis(t.size, 0, AxisElem(l)), 0)), ShiftRight(Exp(t.fill), l+1, 0))
	}
	fit := Stack(fits, 1) // [Max+1,Longest]
	u := r.Uniform(float, n, m.Max)
	// Of the word that a letter is in: how many letters it has, which of them this is, and a number that picks its entry.
	size, place, luck := ZerosLike(lengths), ZerosLike(lengths), ConvertDType(ZerosLike(lengths), float)
	sizes, places, lucks := make([]*Node, m.Max), make([]*Node, m.Max), make([]*Node, m.Max)
	for i := range sizes {
		begins, left := Equal(place, size), MaxScalar(AddScalar(lengths, -i), 0)
		size = Where(begins, OnePlus(r.Categorical(Gather(fit, InsertAxes(left, 1)))), size)
		place = Where(begins, ZerosLike(place), place)
		luck = Where(begins, Squeeze(SliceAxis(u, 1, AxisElem(i)), 1), luck)
		sizes[i], places[i], lucks[i] = size, place, luck
		place = OnePlus(place)
	}
	size, place = Stack(sizes, 1), Stack(places, 1) // [n,Max]
	at := Add(MulScalar(m.pick(t, size, Stack(lucks, 1)), m.Longest), place)
	letter := Gather(Const(g, m.spelling), InsertAxes(at, -1))
	other := OnePlus(r.Categorical(Exp(BroadcastToDims(InsertAxes(t.letter, 0, 0), n, m.Max, letters))))
	letter = Where(IsZero(letter), other, letter)
	there := LessThan(Iota(g, letter.Shape(), 1), InsertAxes(lengths, 1))
	ends := SliceAxis(Equal(OnePlus(place), size), 1, AxisRange(0, m.Max-1))
	return gfn.Batch{Where(there, letter, ZerosLike(letter))}, m.Env().Of(ConvertDType(ends, integer), lengths)
}

// pick draws entries of given sizes by uniform numbers, by bisection of cumulative probabilities.
func (m Words) pick(t tables, size, u *Node) *Node {
	p, first := Exp(t.entry), Const(u.Graph(), m.first)
	before := Sub(CumSum(p, 0), p)
	look := func(table, at *Node) *Node { return Gather(table, InsertAxes(at, -1)) }
	low, high := look(first, MinusOne(size)), MinusOne(look(first, size))
	target := Add(look(before, low), Mul(u, look(Exp(t.size), MinusOne(size))))
	for n := 1; n < len(m.Entries); n *= 2 { // the last entry before which there is no more than the target
		middle := Div(OnePlus(Add(low, high)), Scalar(u.Graph(), integer, 2))
		right := LessOrEqual(look(before, middle), target)
		low, high = Where(right, middle, low), Where(right, high, MinusOne(middle))
	}
	return low
}
