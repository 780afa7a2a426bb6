package grammar

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// Dreams are trees drawn from a grammar, top-down, one in each row. A tree that grew to the greatest number of leaves n
// may have symbols among its leaves, which were not expanded any more.
//
// Nodes have numbers that do not depend on the order in which they were made: leaves are 0 to n-1 from left to right,
// and the inner node whose left part ends at leaf g is n+g. Its children and its label are at g. A tree of k leaves has
// all inner nodes from n to n+k-2; behind them are zeros.
type Dreams struct {
	Trees
	// Leaves [B,n] int32 are words, or V+1+s for a symbol s (V is kept for ROOT): V+1+x for a nonterminal x, V+1+N+t
	// for a preterminal t. Behind the last leaf are zeros.
	Leaves   *Node
	Lengths  *Node // [B] int32: the number of leaves, 2 to n
	Complete *Node // [B] bool: all leaves are words
}

// Dream draws trees of at most the given number of leaves. Symbols are expanded in the order in which they were made,
// first in, first out: a nonterminal becomes two symbols, a preterminal its word. As soon as there are as many leaves
// as allowed, words and waiting symbols counted, nothing is expanded any more.
//
// No gradient flows through a dream.
func (t LogProbs) Dream(r *rng.Stream, rows, leaves int) Dreams {
	d := t.dreamer(rows, leaves)
	s := d.begin(r)
	more := func(s *growth) *Node { return GreaterThan(s.More, Const(s.More.Graph(), float32(0))) }
	return d.read(r, nn.Loop(s, more, d.expand))
}

// What a loop runs (expand and what it calls) keeps to what can be built there on every backend (see nn.Loop): all it
// reads is in the state, constants are made by count, sums are matrix products, and what is broadcast goes to Where
// alone, since the go backend loses it on the way to other operations.

// count is a constant of the function that is being built.
func count(g *Graph, value int) *Node { return Const(g, int32(value)) }

// dreamer holds sizes and tables.
type dreamer struct {
	rows, n       int // trees, leaves
	k             int // nodes of a tree, 2n-1
	nt, pt, words int
	parents       bool  // rules and words see the nonterminal above
	root, rules   *Node // [N]; [N*S,S] or [N*P*S,S]
	left          *Node // [N,S] or [N*P,S]: probabilities of left children
	emit          *Node // [V,T] or [V,T*N]
}

func (t LogProbs) dreamer(rows, leaves int) *dreamer {
	if err := t.check(); err != nil {
		panic(err)
	}
	if rows < 1 || leaves < 2 {
		panic(fmt.Errorf("grammar: %d dream(s) of up to %d leaves: ask for one or more of two leaves or more", rows, leaves))
	}
	s, v := t.Rules.Shape().Dim(-1), t.Emit.Shape().Dim(0)
	rules := StopGradient(Reshape(t.Rules, -1, s))
	return &dreamer{
		rows: rows, n: leaves, k: 2*leaves - 1, nt: t.Rules.Shape().Dim(0), pt: t.Emit.Shape().Dim(1), words: v,
		parents: t.Rules.Rank() == 4, root: StopGradient(t.Root), rules: rules,
		left: Reshape(ReduceSum(Exp(rules), -1), -1, s), emit: StopGradient(Reshape(t.Emit, v, -1)),
	}
}

func (t LogProbs) check() error {
	n, s := t.Rules.Shape().Dim(0), t.Rules.Shape().Dim(-1)
	v := t.Emit.Shape().Dim(0)
	rules, emit := []int{n, s, s}, []int{v, s - n}
	if t.Rules.Rank() == 4 {
		rules, emit = []int{n, n + 1, s, s}, []int{v, s - n, n}
	}
	if t.Root.Shape().CheckDims(n) != nil || t.Rules.Shape().CheckDims(rules...) != nil || t.Emit.Shape().CheckDims(emit...) != nil {
		return fmt.Errorf("grammar: tables do not fit: root %s, rules %s, emissions %s", t.Root.Shape(), t.Rules.Shape(), t.Emit.Shape())
	}
	return nil
}

// growth is the state of growing trees. The nodes of a tree are in the order in which they were made: the top is node
// 0, and expansion j, counted from 0, made nodes 2j+1 and 2j+2. All that is not said otherwise is [B,2n-1] int32.
type growth struct {
	Symbol *Node // a preterminal where there is no node yet
	Parent *Node // the nonterminal above, 0 for ROOT
	Place  *Node // of a leaf its number from the left; of an inner node, the leaf with which its left part ends; else -1
	Above  *Node // the place of the inner node above, or -1
	Last   *Node // [B,1]: the nonterminal expanded last, or -1
	Next   *Node // [B,1]: the nonterminal that is first in the queue, or 2n-1
	Grown  *Node // [B,1]: expansions made
	More   *Node // float32, a scalar: how many trees can grow
	// What does not change: tables of rules, see dreamer, and uniform numbers for both children of every expansion,
	// [(n-1)*B,2] float64.
	Left, Rules, Luck *Node
}

// begin draws the tops, and the random numbers of all rules.
func (d *dreamer) begin(r *rng.Stream) *growth {
	g := d.root.Graph()
	top := r.Categorical(BroadcastToDims(InsertAxes(Exp(d.root), 0), d.rows, d.nt))
	fill := func(value, columns int) *Node { return BroadcastToDims(count(g, value), d.rows, columns) }
	isTop := Equal(d.node(g), fill(0, d.k))
	return &growth{
		Symbol: Where(isTop, column(top, d.k), fill(d.nt, d.k)),
		Parent: fill(0, d.k), Place: Where(isTop, fill(0, d.k), fill(-1, d.k)), Above: fill(-1, d.k),
		Last: fill(-1, 1), Next: fill(0, 1), Grown: fill(0, 1), More: Const(g, float32(d.rows)),
		Left: d.left, Rules: d.rules, Luck: r.Uniform(dtypes.Float64, (d.n-1)*d.rows, 2),
	}
}

// node numbers the nodes, [B,2n-1].
func (d *dreamer) node(g *Graph) *Node { return Iota(g, shapes.Make(dtypes.Int32, d.rows, d.k), 1) }

// row numbers the trees, [B,1].
func (d *dreamer) row(g *Graph) *Node { return Iota(g, shapes.Make(dtypes.Int32, d.rows, 1), 0) }

// column spreads [B] or [B,1] over columns.
func column(x *Node, columns int) *Node {
	rows := x.Shape().Dim(0)
	return BroadcastToDims(Reshape(x, rows, 1), rows, columns)
}

// expand expands the first nonterminal of each queue. A leaf p becomes leaves p and p+1, so what is to the right of it
// moves.
func (d *dreamer) expand(s *growth) *growth {
	g := s.Symbol.Graph()
	plus := func(x *Node, value int) *Node { return Add(x, count(g, value)) }
	node, grows := d.node(g), d.grows(s)
	at := plusCount(d.row(g), d.k, Min(s.Next, count(g, d.k-1)))
	read := func(x *Node) *Node { return Gather(Reshape(x, d.rows*d.k, 1), at) } // [B,1]
	x := read(s.Symbol)
	left, right := d.children(s, x, read(s.Parent))
	place := Where(grows, read(s.Place), count(g, d.n)) // nothing is to the right of n

	first := plus(Add(s.Grown, s.Grown), 1)
	is := func(number *Node) *Node { return LogicalAnd(Equal(node, number), grows) }
	isLeft, isRight := is(first), is(plus(first, 1))
	write := func(l, r, old *Node) *Node { return Where(isLeft, column(l, d.k), Where(isRight, column(r, d.k), old)) }
	moves := LogicalOr(GreaterThan(s.Place, place), LogicalAnd(d.inner(s), Equal(s.Place, place)))
	next := *s
	next.Symbol = write(left, right, s.Symbol)
	next.Parent = write(plus(x, 1), plus(x, 1), s.Parent)
	next.Place = write(place, plus(place, 1), plusOne(moves, s.Place))
	next.Above = write(place, place, plusOne(GreaterOrEqual(s.Above, place), s.Above))
	next.Last = Where(grows, s.Next, s.Last)
	next.Grown = plusOne(grows, s.Grown)
	waits := LogicalAnd(d.nonterminal(next.Symbol), GreaterThan(node, s.Next))
	next.Next = passing(ConvertDType(waits, dtypes.Float32), Const(g, float32(0)))
	next.More = Reshape(total(Reshape(ConvertDType(d.grows(&next), dtypes.Float32), 1, d.rows)))
	return &next
}

// grows says which trees can grow, [B,1].
func (d *dreamer) grows(s *growth) *Node {
	g := s.Next.Graph()
	return LogicalAnd(LessThan(s.Next, count(g, d.k)), LessThan(s.Grown, count(g, d.n-1)))
}

func (d *dreamer) nonterminal(symbol *Node) *Node {
	return LessThan(symbol, count(symbol.Graph(), d.nt))
}

// inner says which nodes were expanded into two others, [B,2n-1].
func (d *dreamer) inner(s *growth) *Node {
	return LogicalAnd(d.nonterminal(s.Symbol), LessOrEqual(d.node(s.Last.Graph()), s.Last))
}

// plusOne adds one where it is due.
func plusOne(due, x *Node) *Node { return Add(x, ConvertDType(due, x.DType())) }

// plusCount is plusIndex for loops.
func plusCount(at *Node, size int, i *Node) *Node { return Add(Mul(at, count(at.Graph(), size)), i) }

// children draws what nonterminals [B,1] become: first the left symbol, then the right one given the left.
func (d *dreamer) children(s *growth, x, parent *Node) (left, right *Node) {
	g := x.Graph()
	row := x
	if d.parents {
		row = plusCount(x, d.nt+1, parent)
	}
	luck := Gather(s.Luck, plusCount(Min(s.Grown, count(g, d.n-2)), d.rows, d.row(g))) // [B,2]
	draw := func(p *Node, side int) *Node {
		p = ConvertDType(p, dtypes.Float64)
		symbol := passing(p, Mul(total(p), SliceAxis(luck, 1, AxisElem(side))))
		return Min(symbol, count(g, d.nt+d.pt-1))
	}
	left = draw(Gather(s.Left, row), 0)
	right = draw(Exp(Gather(s.Rules, plusCount(row, d.nt+d.pt, left))), 1)
	return left, right
}

// total adds up the columns of x [B,k]: [B,1].
func total(x *Node) *Node {
	ones := BroadcastToDims(ConvertDType(count(x.Graph(), 1), x.DType()), x.Shape().Dim(1), 1)
	return DotGeneral(x, []int{1}, nil, ones, []int{0}, nil)
}

// passing finds the first column with which the sum of the columns so far is above a limit [B,1], or k: [B,1] int32.
func passing(x, limit *Node) *Node {
	k := x.Shape().Dim(1)
	grid := shapes.Make(dtypes.Int32, k, k)
	upTo := LessOrEqual(Iota(x.Graph(), grid, 0), Iota(x.Graph(), grid, 1))
	sums := DotGeneral(x, []int{1}, nil, ConvertDType(upTo, x.DType()), []int{0}, nil)
	below := ConvertDType(LessOrEqual(sums, limit), dtypes.Float32)
	return ConvertDType(total(below), dtypes.Int32)
}

// read puts grown trees into the order of their leaves, and draws the words.
func (d *dreamer) read(r *rng.Stream, s *growth) Dreams {
	inner := d.inner(s)
	number := Where(inner, AddScalar(s.Place, d.n), s.Place)
	sides := func(x *Node) (left, right *Node) { // [B,n-1] each
		pair := Reshape(SliceAxis(x, 1, AxisRangeToEnd(1)), d.rows, d.n-1, 2)
		side := func(i int) *Node { return Squeeze(SliceAxis(pair, 2, AxisElem(i)), 2) }
		return side(0), side(1)
	}
	left, right := sides(number)
	parent, _ := sides(s.Parent)
	gap, _ := sides(s.Above)
	merges := sortTo(gap, d.n-1)

	leaf := Where(inner, FillScalar(inner.Graph(), s.Place.Shape(), -1), s.Place)
	leaves := sortTo(leaf, d.n)
	length := Reshape(AddScalar(s.Grown, 1), d.rows)
	complete := LessThan(length, FillScalar(length.Graph(), length.Shape(), float64(d.n)))
	symbol, above := leaves(s.Symbol), leaves(s.Parent)
	spelt := leaves(ConvertDType(d.emits(s, complete), dtypes.Int32))
	word := d.word(r, MaxScalar(SubScalar(symbol, d.nt), 0), MaxScalar(SubScalar(above, 1), 0))
	token := Where(Equal(spelt, OnesLike(spelt)), word, AddScalar(symbol, d.words+1))
	live := LessThan(Iota(token.Graph(), token.Shape(), 1), column(length, d.n))
	return Dreams{
		Trees: Trees{
			Left: merges(left), Right: merges(right), Label: merges(MaxScalar(SubScalar(parent, 1), 0)),
		},
		Leaves: Where(live, token, ZerosLike(token)), Lengths: length, Complete: complete,
	}
}

// emits says which nodes became words: preterminals of complete trees, and those before the nonterminal expanded last.
func (d *dreamer) emits(s *growth, complete *Node) *Node {
	early := LessThan(d.node(s.Last.Graph()), s.Last)
	return LogicalAnd(LogicalNot(d.nonterminal(s.Symbol)), LogicalOr(early, column(complete, d.k)))
}

// sortTo returns a function that brings columns to new places 0 to size-1, at [B,columns]. Columns with another place
// are dropped, places of no column are 0.
func sortTo(at *Node, size int) func(x *Node) *Node {
	rows, columns := at.Shape().Dim(0), at.Shape().Dim(1)
	place := Iota(at.Graph(), shapes.Make(dtypes.Int32, rows, size, columns), 1)
	is := Equal(place, BroadcastToDims(InsertAxes(at, 1), rows, size, columns))
	return func(x *Node) *Node {
		x = BroadcastToDims(InsertAxes(x, 1), rows, size, columns)
		return ReduceSum(Where(is, x, ZerosLike(x)), 2)
	}
}

// word draws the word of preterminals below nonterminals, both [B,n]: first a block of some neighbouring words, then
// one of them, so that about 2 sqrt(V) words are looked at instead of V.
func (d *dreamer) word(r *rng.Stream, tag, parent *Node) *Node {
	row, rows := tag, d.pt
	if d.parents {
		row, rows = plusIndex(tag, d.nt, parent), d.pt*d.nt
	}
	size := int(math.Ceil(math.Sqrt(float64(d.words))))
	whole := d.words / size
	mass := func(from, to, blocks int) *Node {
		part := Exp(SliceAxis(d.emit, 0, AxisRange(from, to)))
		return ReduceSum(Reshape(part, blocks, -1, rows), 1) // [blocks,T] or [blocks,T*N]
	}
	blocks := mass(0, whole*size, whole)
	if whole*size < d.words {
		blocks = Concatenate([]*Node{blocks, mass(whole*size, d.words, 1)}, 0)
	}
	block := r.Categorical(Gather(TransposeAllAxes(blocks, 1, 0), InsertAxes(row, -1))) // [B,n]

	wide := func(x *Node) *Node { return BroadcastToDims(InsertAxes(x, -1), d.rows, d.n, size) }
	word := Add(wide(MulScalar(block, size)), Iota(row.Graph(), shapes.Make(dtypes.Int32, d.rows, d.n, size), 2))
	p := Exp(Squeeze(gatherFlat(d.emit, plusIndex(MinScalar(word, d.words-1), rows, wide(row)), 1), -1))
	there := LessThan(word, FillScalar(word.Graph(), word.Shape(), float64(d.words)))
	return Add(MulScalar(block, size), r.Categorical(Where(there, p, ZerosLike(p))))
}
