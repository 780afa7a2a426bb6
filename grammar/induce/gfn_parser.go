package induce

import (
	"cmp"
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

// The ways to choose a tree with a GFlowNet, at temperature 1 and without moves.
const (
	GFNSample Decode = "gfn"     // where one trajectory ends
	GFNMBR    Decode = "gfn-mbr" // the tree with the greatest number of right spans, on average over where many trajectories end
)

// mbrSamples is the number of trajectories behind a tree of GFNMBR.
const mbrSamples = 32

// GFNParser parses with a GFlowNet, a batch of sentences at a time.
type GFNParser struct {
	Rows   int // sentences of a batch
	Bucket int // lengths of batches are multiples of it

	net  *gflownet
	best *program.Program[bestIn, bestTrees[*tensors.Tensor, grammar.TreeTensors]]
}

type (
	bestIn    struct{ Spans, Lengths *tensors.Tensor }
	bestNodes struct{ Spans, Lengths *Node }
	// bestTrees are those with the greatest sums of weights of spans.
	bestTrees[T, Z any] struct {
		Trees  Z
		Weight T
	}
)

func newGFNParser(net *gflownet) *GFNParser {
	p := &GFNParser{Rows: net.Batch, Bucket: net.Bucket, net: net}
	p.best = program.New[bestIn, bestTrees[*tensors.Tensor, grammar.TreeTensors]](net.Set, "best", func(in bestNodes) bestTrees[*Node, grammar.Trees] {
		r := grammar.BestSpans(in.Spans, in.Lengths)
		return bestTrees[*Node, grammar.Trees]{r.Trees, r.LogWeight}
	})
	return p
}

// Close releases the compiled programs.
func (p *GFNParser) Close() { p.net.Set.Close() }

// Longest is the number of words of the longest sentence that the network has learned to read.
func (p *GFNParser) Longest() int { return p.net.longest() }

// GFNParse is a tree that a GFlowNet has found.
type GFNParse struct {
	Tree *grammar.Tree
	// LogForward and LogBack are log P_F of the trajectory that GFNSample has drawn, and log P_B of the same steps undone.
	LogForward, LogBack float64
	// Spans is the expected number of right spans of GFNMBR, the whole sentence counted.
	Spans float64
}

// Parse returns a tree of each sentence, by GFNSample or GFNMBR, with the random numbers of a seed. Trees have no preterminals, and
// those of GFNMBR no labels.
func (p *GFNParser) Parse(sentences []treebank.Sentence, how Decode, seed uint64) ([]GFNParse, error) {
	out := make([]GFNParse, len(sentences))
	key := func(number, k int) *tensors.Tensor { return rng.Key(seed, "gfn/parse", uint64(number), uint64(k)) }
	return out, p.batches(sentences, func(number int, at []int, b batch) error {
		switch how {
		case GFNSample:
			d, err := p.draw(b, key(number, 0))
			if err != nil {
				return err
			}
			for i, t := range d.trees(b) {
				out[at[i]] = GFNParse{Tree: t, LogForward: d.logPF[i], LogBack: d.logPB[i]}
			}
			return nil
		case GFNMBR:
			votes := newSpanVotes(b)
			for k := range mbrSamples {
				d, err := p.draw(b, key(number, k))
				if err != nil {
					return err
				}
				votes.add(d.trees(b))
			}
			trees, weights, err := p.elect(b, votes)
			for i, t := range trees {
				out[at[i]] = GFNParse{Tree: t, Spans: weights[i]}
			}
			return err
		}
		return fmt.Errorf("decoder %q is not one of a GFlowNet", how)
	})
}

// batches packs sentences of about the same length together, and says where they came from.
func (p *GFNParser) batches(sentences []treebank.Sentence, do func(number int, at []int, b batch) error) error {
	order := make([]int, len(sentences))
	for i := range order {
		order[i] = i
		if n := len(sentences[i].Words); n < 2 || n > p.Longest() {
			return fmt.Errorf("sentence %d has %d words: the GFlowNet has learned to read 2 to %d", i, n, p.Longest())
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(sentences[a].Words), len(sentences[b].Words)) })
	number := 0
	for at := range slices.Chunk(order, p.Rows) {
		part := make([]treebank.Sentence, len(at))
		for i, from := range at {
			part[i] = sentences[from]
		}
		if err := do(number, at, newBatch(part, p.Rows, p.Bucket, max(p.net.MaxLength, len(part[len(part)-1].Words)))); err != nil {
			return err
		}
		number++
	}
	return nil
}

// drawn are trajectories from bare words to whole trees, one of each sentence of a batch.
type drawn struct {
	walks        forest.WalkTensors
	logPF, logPB []float64
}

// draw makes a trajectory for each sentence.
func (p *GFNParser) draw(b batch, key *tensors.Tensor) (drawn, error) {
	walks, err := p.net.Draw(key, em.Knobs[*tensors.Tensor]{}, b.observed(), b.longest())
	if err != nil {
		return drawn{}, err
	}
	d := drawn{walks: walks, logPF: widened(walks.MadeForward), logPB: widened(walks.MadeBack)}
	return d, d.whole(b)
}

// errNotFinite says that a network makes no trees.
var errNotFinite = errors.New("the GFlowNet says nothing finite and makes no trees: its training diverged")

// whole checks that all trees are.
func (d drawn) whole(b batch) error {
	made := tensors.MustCopyFlatData[int32](d.walks.Made)
	for i := range b.size {
		row := made[i*(b.n-1):]
		if slices.Contains(row[:len(b.sentences[i].Words)-1], -1) || math.IsNaN(d.logPF[i]) {
			return errNotFinite
		}
	}
	return nil
}

// trees are where the trajectories end, of the sentences that count. Merges are in the order in which they were made.
func (d drawn) trees(b batch) []*grammar.Tree {
	flat := tensors.MustCopyFlatData[int32]
	f := d.walks.Forest
	left, right, label, made := flat(f.Left), flat(f.Right), flat(f.Label), flat(d.walks.Made)
	out := make([]*grammar.Tree, b.size)
	for i := range out {
		n := len(b.sentences[i].Words)
		row := i * (b.n - 1)
		node := func(c int32) int {
			if int(c) < b.n {
				return int(c)
			}
			return n + int(made[row+int(c)-b.n])
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

func newSpanVotes(b batch) *spanVotes {
	rows := b.lengths.Shape().Dim(0)
	return &spanVotes{n: b.n, count: make([]float32, rows*b.n*b.n)}
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
func (p *GFNParser) elect(b batch, v *spanVotes) ([]*grammar.Tree, []float64, error) {
	rows := b.lengths.Shape().Dim(0)
	out, err := p.best.Call(bestIn{tensors.FromFlatDataAndDimensions(v.count, rows, v.n, v.n), b.lengths})
	if err != nil {
		return nil, nil, err
	}
	trees := grammar.UnpackTrees(out.Trees, nil, b.lengthOf)[:b.size]
	weights := widened(out.Weight)[:b.size]
	for i := range weights {
		weights[i] /= float64(v.trees)
	}
	return trees, weights, nil
}

// flows are what the network takes log p(x) of each sentence for.
func (p *GFNParser) flows(sentences []treebank.Sentence) ([]float64, error) {
	out := make([]float64, len(sentences))
	return out, p.batches(sentences, func(_ int, at []int, b batch) error {
		y, err := p.net.LogFlow(b.observed())
		if err != nil {
			return err
		}
		flows := tensors.MustCopyFlatData[float64](y)
		for i, to := range at {
			out[to] = flows[i]
		}
		return nil
	})
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
