package parse

import (
	"errors"
	"fmt"
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// mbrSamples is the number of trajectories behind a tree of GFNMBR.
const mbrSamples = 32

// GFlowNet parses with a GFlowNet, a batch of sentences at a time.
type GFlowNet struct {
	Batches
	NoFlows bool // no loss trains flows, so that they say nothing of log p(x)
	net     *forest.Sampler
	best    *program.Program[bestIn[*tensors.Tensor], bestTensors]
	read    *program.Program[listedTensors, listedLogs[*tensors.Tensor]]
	shapes  *program.Program[shapesTensors, shapesOut[*tensors.Tensor]]
}

var _ Parser = (*GFlowNet)(nil)

type (
	bestIn[T any] struct{ Spans, Lengths T }
	// bestTrees are those with the greatest sums of weights of spans.
	bestTrees[T, Z any] struct {
		Trees  Z
		Weight T
	}
	bestTensors = bestTrees[*tensors.Tensor, grammar.TreeTensors]
)

// NewGFlowNet returns a parser that asks a sampler.
func NewGFlowNet(s *forest.Sampler, b Batches) *GFlowNet {
	p := &GFlowNet{Batches: b, net: s}
	best := func(in bestIn[*Node]) bestTrees[*Node, grammar.Trees] {
		r := grammar.BestSpans(in.Spans, in.Lengths)
		return bestTrees[*Node, grammar.Trees]{r.Trees, r.LogWeight}
	}
	p.best = program.New[bestIn[*tensors.Tensor], bestTensors](s.Set, "best", best)
	p.read = program.New[listedTensors, listedLogs[*tensors.Tensor]](s.Set, "all actions", p.actions)
	p.shapes = program.New[shapesTensors, shapesOut[*tensors.Tensor]](s.Set, "shapes", logShapes)
	return p
}

// Close implements Parser.
func (p *GFlowNet) Close() { p.net.Set.Close() }

// Longest implements Parser: the network has learned to read no longer sentences.
func (p *GFlowNet) Longest() int { return p.net.Positions - 1 }

// Parse implements Parser. Trees have no preterminals, and those of GFNMBR no labels.
func (p *GFlowNet) Parse(sentences []treebank.Sentence, how Decode, seed uint64) ([]Found, error) {
	if !how.ByGFlowNet() {
		return nil, fmt.Errorf("decoder %q is not one of a GFlowNet", how)
	}
	out := make([]Found, len(sentences))
	return out, p.each(sentences, func(number int, at []int, x Padded) error {
		key := func(k int) *tensors.Tensor { return rng.Key(seed, "gfn/parse", uint64(number), uint64(k)) }
		if how == GFNSample {
			d, err := p.draw(x, key(0))
			if err != nil {
				return err
			}
			if err := p.label(&d, rng.Key(seed, "gfn/labels", uint64(number)), x); err != nil {
				return err
			}
			for i, t := range d.trees(x) {
				f := found(t)
				f.LogForward, f.LogBack = d.logPF[i], d.logPB[i]
				out[at[i]] = f
			}
			return nil
		}
		votes := newSpanVotes(x)
		for k := range mbrSamples {
			d, err := p.draw(x, key(k))
			if err != nil {
				return err
			}
			votes.add(d.trees(x))
		}
		trees, weights, err := p.elect(x, votes)
		for i, t := range trees {
			f := found(t)
			f.Spans = weights[i]
			out[at[i]] = f
		}
		return err
	})
}

// LogLikelihoods implements Parser: what the network takes log p(x) for.
func (p *GFlowNet) LogLikelihoods(sentences []treebank.Sentence) ([]float64, error) {
	out := make([]float64, len(sentences))
	return out, p.each(sentences, func(_ int, at []int, x Padded) error {
		y, err := p.net.Flow.Call(x.SentenceTensors)
		if err == nil {
			fill(out, at, y.LogZ)
		}
		return err
	})
}

// each packs sentences of about the same length together.
func (p *GFlowNet) each(sentences []treebank.Sentence, do func(number int, at []int, x Padded) error) error {
	for i, s := range sentences {
		if n := len(s.Words); n < 2 || n > p.Longest() {
			return fmt.Errorf("sentence %d has %d words: the GFlowNet has learned to read 2 to %d", i, n, p.Longest())
		}
	}
	return p.Batches.each(sentences, true, do)
}

// drawn are trajectories from bare words to whole trees, one of each sentence of a batch.
type drawn struct {
	walks        forest.WalkTensors
	logPF, logPB []float64
	labels       *tensors.Tensor // of nodes, drawn afterwards; nil if the forests have them, or if nobody asks
}

// label draws labels of shapes, exactly.
func (p *GFlowNet) label(d *drawn, key *tensors.Tensor, x Padded) (err error) {
	if p.net.Grammar != nil {
		d.labels, err = p.net.LabelsOf(key, d.walks.RouteTensors)
	}
	return err
}

// draw makes a trajectory for each sentence.
func (p *GFlowNet) draw(x Padded, key *tensors.Tensor) (drawn, error) {
	walks, err := p.net.Draw(key, em.Knobs[*tensors.Tensor]{}, x.SentenceTensors, x.Longest())
	if err != nil {
		return drawn{}, err
	}
	d := drawn{walks: walks, logPF: widened(walks.MadeForward), logPB: widened(walks.MadeBack)}
	return d, d.whole(x)
}

// ErrNotFinite says that a network makes no trees.
var ErrNotFinite = errors.New("the GFlowNet says nothing finite and makes no trees: its training diverged")

// whole checks that all trees are.
func (d drawn) whole(x Padded) error {
	made := tensors.MustCopyFlatData[int32](d.walks.Made)
	for i, s := range x.Sentences {
		row := made[i*(x.Room()-1):]
		if slices.Contains(row[:len(s.Words)-1], -1) || math.IsNaN(d.logPF[i]) {
			return ErrNotFinite
		}
	}
	return nil
}

// trees are where the trajectories end, of the sentences that count. Merges are in the order in which they were made.
func (d drawn) trees(x Padded) []*grammar.Tree {
	flat := tensors.MustCopyFlatData[int32]
	f := d.walks.Forest
	labels := f.Label
	if d.labels != nil {
		labels = d.labels
	}
	left, right, label, made := flat(f.Left), flat(f.Right), flat(labels), flat(d.walks.Made)
	out := make([]*grammar.Tree, len(x.Sentences))
	for i, s := range x.Sentences {
		n, row := len(s.Words), i*(x.Room()-1)
		node := func(c int32) int {
			if int(c) < x.Room() {
				return int(c)
			}
			return n + int(made[row+int(c)-x.Room()])
		}
		t := &grammar.Tree{Left: make([]int, n-1), Right: make([]int, n-1), Label: make([]int, n-1)}
		for gap := range n - 1 {
			m, g := made[row+gap], row+gap
			t.Left[m], t.Right[m], t.Label[m] = node(left[g]), node(right[g]), int(label[g])-1
		}
		out[i] = t
	}
	return out
}

// spanVotes counts in how many trees of each sentence of a batch a span occurs.
type spanVotes struct {
	n     int
	trees int
	count []float32 // [B,n,n] by first word and number of words less one
}

func newSpanVotes(x Padded) *spanVotes {
	return &spanVotes{n: x.Room(), count: make([]float32, len(x.LengthOf)*x.Room()*x.Room())}
}

// add counts one tree of each sentence.
func (v *spanVotes) add(trees []*grammar.Tree) {
	v.trees++
	for i, t := range trees {
		for _, s := range t.Spans() {
			v.count[(i*v.n+s.First)*v.n+s.Last-s.First]++
		}
	}
}

// elect returns the binary trees with the most votes of their spans, and the votes by the number of trees.
func (p *GFlowNet) elect(x Padded, v *spanVotes) ([]*grammar.Tree, []float64, error) {
	counts := tensors.FromFlatDataAndDimensions(v.count, len(x.LengthOf), v.n, v.n)
	out, err := p.best.Call(bestIn[*tensors.Tensor]{counts, x.Lengths})
	if err != nil {
		return nil, nil, err
	}
	trees := grammar.UnpackTrees(out.Trees, nil, x.LengthOf)[:len(x.Sentences)]
	weights := widened(out.Weight)[:len(x.Sentences)]
	for i := range weights {
		weights[i] /= float64(v.trees)
	}
	return trees, weights, nil
}

// widened are numbers of single precision.
func widened(t *tensors.Tensor) []float64 {
	values := tensors.MustCopyFlatData[float32](t)
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
