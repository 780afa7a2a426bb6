package forest

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
)

// Histories are to be scored, and have at most Most steps each.
type Histories struct {
	History
	Most int
}

// Scored is what a policy says of histories; steps beyond the last count 0.
type Scored struct {
	gfn.Scores
	History
	Valid *Node // [P,T] bool
}

// Score evaluates the network once on all forests of all histories, which can be differentiated. Their Tokens together
// must not be more than size, else all log P_F are NaN.
func (m Network) Score(scope *model.Scope, size int, batches ...Histories) []Scored {
	w := m.weights(scope, batches[0].When.Graph())
	var all []History
	most := 0
	for _, b := range batches {
		all = append(all, b.History)
		most = max(most, b.Most)
	}
	l := newLine(join(all), most, size)
	hidden := l.encode(w, w.embed(l.plan, l.Leaves, l.Trees, l.Symbols)) // [C,d]
	scores := reader{w, l, hidden}.scores()

	out := make([]Scored, len(batches))
	row := 0
	for i, b := range batches {
		rows := b.When.Shape().Dim(0)
		of := func(x *Node) *Node { return Slice(x, AxisRange(row, row+rows), AxisRange(0, b.Most)) }
		out[i] = Scored{
			Scores: gfn.Scores{LogPF: of(scores.LogPF), LogPB: of(scores.LogPB), Flow: of(scores.Flow)}, History: b.History, Valid: of(l.valid),
		}
		row += rows
	}
	return out
}

// reader reads what the heads say from a line.
type reader struct {
	*weights
	line   *line
	hidden *Node // [C,d]
}

func (r reader) scores() gfn.Scores {
	p := r.line
	g := r.hidden.Graph()
	rows, most := p.When.Shape().Dim(0), p.most
	all := shapes.Make(dtypes.Int32, rows, most, most+1)
	place := Iota(g, all, 2)
	wide := func(x *Node) *Node { return BroadcastToDims(InsertAxes(x, -1), all.Dimensions...) }
	trees := Where(p.valid, p.trees, ZerosLike(p.trees))
	spot := r.clamp(Add(wide(p.base), place)) // [P,T,M]: where the trees of each forest are
	there := LessThan(place, wide(trees))
	take := func(x *Node) *Node { return Gather(x, InsertAxes(spot, -1)) }
	head := func(path string) *Node { return take(r.scalars(path, r.hidden)) }

	logJoin := gfn.Behaviour{}.LogProbs(head(positionHead), LessThan(place, wide(SubScalar(trees, 1))))
	maySplit := LogicalAnd(there, take(p.inner))
	logSplit := gfn.Behaviour{}.LogProbs(head(splitHead), maySplit)
	flow := head(flowHead)

	logPF := gfn.Pick(logJoin, p.place)
	if r.Grammar == nil {
		chosen := Gather(r.hidden, InsertAxes(r.clamp(Add(p.base, p.place)), -1)) // [P,T,d]
		logits := r.head(labelHead, chosen)
		logLabel := gfn.Behaviour{}.LogProbs(logits, always(logits))
		logPF = Add(logPF, gfn.Pick(logLabel, p.label))
	}

	// A step is undone from the forest after it; the last one leads to a whole tree, which has one top to split.
	later := func(x *Node) *Node {
		return Concatenate([]*Node{SliceAxis(x, 1, AxisRangeToEnd(1)), ZerosLike(SliceAxis(x, 1, AxisRange(0, 1)))}, 1)
	}
	logPB := gfn.Pick(later(logSplit), p.place)
	none := ZerosLike(logPF)
	return gfn.Scores{
		LogPF: Where(p.fits, Where(p.valid, logPF, none), AddScalar(none, math.NaN())),
		LogPB: Where(LogicalAnd(p.valid, GreaterThan(p.trees, Const(g, int32(2)))), logPB, none),
		Flow:  ReduceSum(Where(there, flow, ZerosLike(flow)), -1),
	}
}

// clamp keeps places on the line.
func (r reader) clamp(at *Node) *Node {
	return MinScalar(MaxScalar(at, 0), r.line.size-1)
}

// Rewarded completes scores of paths from bare words to what an objective needs. The partial reward of a forest is the
// sum of the nodes whose score is known: all of them in a context-free grammar, and those below another node where the
// parent matters.
func (s Scored) Rewarded(kind grammar.Kind, nodes, logR *Node) gfn.Path {
	g := s.When.Graph()
	rows, k := s.When.Shape().Dim(0), s.When.Shape().Dim(1)
	most := s.Valid.Shape().Dim(1)
	known := s.When
	if kind == grammar.NCFG {
		above := children(s.Trees, s.live(), func(is *Node) *Node {
			when := BroadcastToDims(InsertAxes(s.When, 1), rows, k, k)
			return ReduceSum(Where(is, AddScalar(when, 1), ZerosLike(when)), -1) // 0: no parent
		})
		known = Where(Equal(above, ZerosLike(above)), MulScalar(OnesLike(above), 1<<20), SubScalar(above, 1))
	}
	all := shapes.Make(dtypes.Int32, rows, most+1, k)
	in := LessThan(BroadcastToDims(InsertAxes(known, 1), all.Dimensions...), Iota(g, all, 1))
	score := BroadcastToDims(InsertAxes(StopGradient(nodes), 1), all.Dimensions...)
	t := Iota(g, shapes.Make(dtypes.Int32, rows, most+1), 1)
	return gfn.Path{
		LogPF: s.LogPF, LogPB: s.LogPB, Flow: s.Flow, LogR: logR, Valid: s.Valid,
		LogZ:     Squeeze(SliceAxis(s.Flow, 1, AxisElem(0)), 1),
		Partial:  ReduceSum(Where(in, score, ZerosLike(score)), 2),
		Terminal: GreaterOrEqual(t, InsertAxes(s.Steps, -1)),
	}
}
