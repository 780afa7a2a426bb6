package grammar

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// Parses are one derivation of each sentence of a batch.
type Parses struct {
	Trees Trees
	Tags  *Node // [B,n] int32: the preterminal of each word
	// LogWeight [B] is log p(x) for samples, and the log-weight of the parse for best parses. Where it is -Inf there is
	// no derivation, and the tree means nothing.
	LogWeight *Node
}

// Viterbi finds the most probable derivation of each sentence, preterminals included.
func (p Potentials) Viterbi() Parses {
	return p.decode(maxPlus, func(x *Node) *Node { return ArgMax(x, -1, dtypes.Int32) }, 1)
}

// Sample draws a derivation of each sentence from the posterior, exactly. Its tree alone, without the tags, is an exact
// draw of the tree with preterminals summed out.
func (p Potentials) Sample(random *rng.Stream) Parses { return p.Samples(random, 1) }

// Samples is Sample with several derivations of each sentence: one of each, then again one of each, as those of Repeat.
// They share a chart.
func (p Potentials) Samples(random *rng.Stream, each int) Parses {
	return p.decode(sumProduct, random.Categorical, each)
}

// Repeat returns the potentials of the same sentences several times over, one after the other.
func (p Potentials) Repeat(times int) Potentials {
	again := func(x *Node) *Node { return repeat(x, times) }
	if p.Root.Rank() == 2 {
		p.Root = again(p.Root)
	}
	if p.Terms.Rank() == 3 && p.Rules.Rank() == 4 {
		p.Rules = again(p.Rules)
	}
	p.Terms, p.Lengths = again(p.Terms), again(p.Lengths)
	if p.Spans != nil {
		p.Spans = again(p.Spans)
	}
	return p
}

// repeat puts copies of x one after the other.
func repeat(x *Node, times int) *Node {
	if times == 1 {
		return x
	}
	return Concatenate(slices.Repeat([]*Node{x}, times), 0)
}

// MBR finds the tree over each sentence with the greatest expected number of right spans (minimum Bayes risk). Labels
// and tags are 0; LogWeight is the expected number, the whole sentence counted.
func (p Potentials) MBR() Parses { return BestSpans(p.Marginals().Spans, p.Lengths) }

// BestSpans finds the binary tree over each sentence whose spans have the greatest sum of weights [B,n,n], by first
// word and by number of words less one. Labels and tags are 0; LogWeight is the sum, the whole sentence counted.
func BestSpans(spans, lengths *Node) Parses {
	g, dtype := spans.Graph(), spans.DType()
	b, n := spans.Shape().Dim(0), spans.Shape().Dim(1)
	zeros := func(dims ...int) *Node { return Zeros(g, shapes.Make(dtype, dims...)) }
	return Potentials{Root: zeros(1), Rules: zeros(1, 2, 2), Terms: zeros(b, n, 1), Spans: spans, Lengths: lengths}.Viterbi()
}

// decode chooses a derivation top-down, in the order of a walk that visits a node before its left part, and that before
// the right part. A choice is among weights [walks,k] of a semiring: the best of maxima, or a draw in proportion to
// sums. There are some walks for each sentence.
func (p Potentials) decode(r semiring, choose func(weights *Node) *Node, each int) Parses {
	p = p.stopped()
	d := &descent{chart: inside(p.layout(), r), choose: choose}
	d.walks = each * d.sentences
	weights, _ := d.shifted(Add(d.topLog, d.root))
	d.begin(choose(repeat(weights, each)), each)
	for step := range d.n - 1 {
		d.expand(step)
	}
	return Parses{Trees: d.trees(), Tags: d.tags, LogWeight: repeat(d.logTotal(), each)}
}

// descent is a walk down a chart. Its plan has a row for each inner node, in the order of the walk; nodes write the
// rows of their children. A node over w words has w-1 inner nodes in its tree, so where these rows are is known.
type descent struct {
	*chart
	walks    int
	choose   func(weights *Node) *Node
	spans    *Node // [A*B*n*n,S]: log-weights by first word and number of words less one
	table    *Node // [A*Q,S*S]: rules
	plan     plan
	splits   []*Node // [walks] each: the number of words of the left part
	tags     *Node   // [walks,n]
	row      *Node   // [walks]: 0, 1, ...
	sentence *Node   // [walks]
	lengths  *Node   // [walks]: of the sentences
}

// plan is what is known of the nodes of a walk, [walks,n-1] each, 0 where nothing is; of one row of it [walks].
type plan struct{ Start, Width, Label, Parent *Node }

// row returns what a plan says of one node of each walk.
func (p plan) row(step int) plan {
	return program.Map(p, func(x *Node) *Node { return Squeeze(SliceAxis(x, 1, AxisElem(step)), 1) })
}

func (d *descent) begin(top *Node, each int) {
	g := top.Graph()
	d.row = Iota(g, shapes.Make(dtypes.Int32, d.walks), 0)
	d.sentence = repeat(Iota(g, shapes.Make(dtypes.Int32, d.sentences), 0), each)
	d.lengths = repeat(d.chart.lengths, each)
	s := d.nt + d.pt
	d.table = Reshape(d.lift(d.rules), d.a*d.q, s*s)
	none := func(last int) *Node {
		return FillScalar(g, shapes.Make(d.terms.DType(), d.a, d.b, d.n, last), never)
	}
	pieces := []*Node{Concatenate([]*Node{none(d.nt), d.terms}, 3)}
	for _, v := range d.levels {
		m := v.logChild.Shape().Dim(2)
		pieces = append(pieces, Concatenate([]*Node{v.logChild, SliceAxis(none(d.pt), 2, AxisRangeFromStart(m))}, 3))
	}
	d.spans = Reshape(stackWidths(pieces, d.n, never, false), d.a*d.b*d.n*d.n, s)
	d.plan = program.Map(plan{ZerosLike(top), d.lengths, top, ZerosLike(top)}, func(x *Node) *Node {
		return grow(InsertAxes(x, 1), 1, 0, d.n-2)
	})
	d.tags = Zeros(g, shapes.Make(dtypes.Int32, d.walks, d.n))
}

// expand splits the node of one row of the plan, where the sentence has as many.
func (d *descent) expand(step int) {
	x := d.plan.row(step)
	left, right, scale := d.parts(x.Start, x.Width, x.Label)
	table := d.rulesOf(x.Label, x.Parent)                                                // [walks,S,S]
	byLeft := d.times(left, d.dot(right, []int{2}, []int{0}, table, []int{2}, []int{0})) // [walks,n-1,S]
	at := d.choose(d.times(d.sum(byLeft, -1), scale))
	leftSymbol := d.choose(d.pick(byLeft, at))
	rightSymbol := d.choose(d.times(d.pick(table, leftSymbol), d.pick(right, at)))
	split := AddScalar(at, 1)
	d.splits = append(d.splits, split)

	parent, alive := AddScalar(x.Label, 1), GreaterThan(x.Width, ZerosLike(x.Width))
	d.enter(AddScalar(ZerosLike(x.Start), step+1), alive, plan{x.Start, split, leftSymbol, parent})
	d.enter(AddScalar(split, step), alive, plan{Add(x.Start, split), Sub(x.Width, split), rightSymbol, parent})
}

// enter writes a child: into its row of the plan if it has two words or more, as a tag if it has one. Its label is a
// symbol.
func (d *descent) enter(row, alive *Node, child plan) {
	one := OnesLike(child.Width)
	put := func(hit, value, old *Node) *Node {
		return Where(hit, BroadcastToShape(InsertAxes(value, -1), old.Shape()), old)
	}
	inner := LogicalAnd(alive, GreaterThan(child.Width, one))
	hit := LogicalAnd(d.oneOf(row, d.n-1), InsertAxes(inner, -1))
	d.plan = program.Zip(d.plan, child, func(old, value *Node) *Node { return put(hit, value, old) })

	hit = LogicalAnd(d.oneOf(child.Start, d.n), InsertAxes(LogicalAnd(alive, Equal(child.Width, one)), -1))
	d.tags = put(hit, MaxScalar(SubScalar(child.Label, d.nt), 0), d.tags)
}

// oneOf marks position at[b] of k: [walks,k].
func (d *descent) oneOf(at *Node, k int) *Node {
	return Equal(InsertAxes(at, -1), Iota(at.Graph(), shapes.Make(dtypes.Int32, 1, k), 1))
}

// pick reads row at[b] of each x[b]: [walks,k,S] to [walks,S].
func (d *descent) pick(x, at *Node) *Node { return Gather(x, Stack([]*Node{d.row, at}, -1)) }

// group is the group of the parts of a node with a given label, times the sentences in a group, plus the sentence.
func (d *descent) group(label *Node) *Node {
	if d.parents {
		return Add(MulScalar(label, d.b), d.sentence)
	}
	return d.sentence
}

// rulesOf reads the rules of a nonterminal: [walks,S,S].
func (d *descent) rulesOf(label, parent *Node) *Node {
	var at *Node
	switch {
	case d.parents:
		at = Add(MulScalar(label, d.q), parent)
	case d.b == 1:
		at = Add(MulScalar(d.sentence, d.q), label)
	default:
		at = label
	}
	s := d.nt + d.pt
	return Reshape(Gather(d.table, InsertAxes(at, -1)), d.walks, s, s)
}

// parts reads the left and right parts of a span for all splits, [walks,n-1,S] relative to shifts, and the weights
// of the shifts [walks,n-1].
func (d *descent) parts(start, width, label *Node) (left, right, scale *Node) {
	g := start.Graph()
	split := Iota(g, shapes.Make(dtypes.Int32, 1, d.n-1), 1) // words of the left part, less one
	col := func(x *Node) *Node { return InsertAxes(x, -1) }
	group := col(MulScalar(d.group(label), d.n*d.n))
	leftAt := Add(Add(group, MulScalar(col(start), d.n)), split)
	rest := Sub(SubScalar(col(width), 2), split) // words of the right part, less one
	rightAt := Add(Add(group, MulScalar(AddScalar(Add(col(start), split), 1), d.n)), MaxScalar(rest, 0))
	read := func(at *Node) (*Node, *Node) {
		return d.shifted(Gather(d.spans, InsertAxes(MinScalar(at, d.a*d.b*d.n*d.n-1), -1)))
	}
	left, leftShift := read(leftAt)
	right, rightShift := read(rightAt)
	both := Add(leftShift, rightShift)
	both = Where(GreaterOrEqual(rest, ZerosLike(rest)), both, FillScalar(g, both.Shape(), 4*never))
	scale = d.lift(Sub(both, ReduceAndKeep(both, ReduceMax, -1)))
	return left, right, scale
}

// trees turns a finished plan into trees: the walk backwards is bottom-up.
func (d *descent) trees() Trees {
	start, width, label := d.plan.Start, d.plan.Width, d.plan.Label
	split := Stack(d.splits, 1)
	step := Iota(start.Graph(), shapes.Make(dtypes.Int32, 1, d.n-1), 1)
	// Row r of the walk is merge last-r, which makes node n+last-r.
	last := SubScalar(InsertAxes(d.lengths, -1), 2)
	node := func(row *Node) *Node { return AddScalar(Sub(last, row), d.n) }
	rest := Sub(width, split)
	left := Where(GreaterThan(split, OnesLike(split)), node(AddScalar(Add(step, ZerosLike(split)), 1)), start)
	right := Where(GreaterThan(rest, OnesLike(rest)), node(Add(step, split)), Add(start, split))
	row := Sub(last, step)
	live := GreaterOrEqual(row, ZerosLike(row))
	at := Stack([]*Node{Add(InsertAxes(d.row, -1), ZerosLike(row)), MaxScalar(row, 0)}, -1)
	read := func(x *Node) *Node { return Where(live, Gather(x, at), ZerosLike(row)) }
	return Trees{Left: read(left), Right: read(right), Label: read(label)}
}
