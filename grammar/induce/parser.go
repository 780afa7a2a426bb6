package induce

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/panics"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// Decode is a way to choose a tree.
type Decode string

// The ways to choose a tree.
const (
	Viterbi Decode = "viterbi" // the most probable derivation
	MBR     Decode = "mbr"     // the tree with the greatest expected number of right spans
	Sample  Decode = "sample"  // a draw from the posterior
)

// Decodes lists them, and those of a GFlowNet.
func Decodes() []string {
	return []string{string(Viterbi), string(MBR), string(Sample), string(GFNSample), string(GFNMBR)}
}

// Parser does exact inference with one grammar, a batch of sentences at a time.
type Parser struct {
	Rows   int // sentences of a batch
	Bucket int // lengths of batches are multiples of it

	inside *model.Exec // words, lengths: log p(x)
	score  *model.Exec // words, lengths, trees: log p(x,z)
	decode map[Decode]*model.Exec
}

// NewParser returns a parser of a table of probabilities, in double precision.
func NewParser(b compute.Backend, g *grammar.Grammar) (*Parser, error) {
	store := model.NewStore()
	return newParser(b, store, storeTables(store, g.LogTables(dtypes.Float64)))
}

func newParser(b compute.Backend, store *model.Store, tables func(*Graph) grammar.Tables) (*Parser, error) {
	p := &Parser{Rows: 32, Bucket: 5, decode: map[Decode]*model.Exec{}}
	potentials := func(in []*Node) grammar.Potentials { return tables(in[0].Graph()).For(in[0], in[1]) }
	build := func(f func(in []*Node) []*Node) (*model.Exec, error) { return compile(b, store, f) }
	var err error
	if p.inside, err = build(func(in []*Node) []*Node {
		return []*Node{ConvertDType(grammar.LogLikelihood(potentials(in)), dtypes.Float64)}
	}); err != nil {
		return nil, err
	}
	if p.score, err = build(func(in []*Node) []*Node {
		z := grammar.Trees{Left: in[2], Right: in[3], Label: in[4]}
		return []*Node{ConvertDType(potentials(in).LogTree(z), dtypes.Float64)}
	}); err != nil {
		return nil, err
	}
	for name, f := range map[Decode]func(q grammar.Potentials, key *Node) grammar.Parses{
		Viterbi: func(q grammar.Potentials, _ *Node) grammar.Parses { return q.Viterbi() },
		MBR:     func(q grammar.Potentials, _ *Node) grammar.Parses { return q.MBR() },
		Sample:  func(q grammar.Potentials, key *Node) grammar.Parses { return q.Sample(rng.In(key)) },
	} {
		if p.decode[name], err = build(func(in []*Node) []*Node {
			r := f(potentials(in), in[2])
			return []*Node{r.Trees.Left, r.Trees.Right, r.Trees.Label, r.Tags, ConvertDType(r.LogWeight, dtypes.Float64)}
		}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Close releases the compiled programs.
func (p *Parser) Close() {
	p.inside.Finalize()
	p.score.Finalize()
	for _, e := range p.decode {
		e.Finalize()
	}
}

// batches packs sentences in their order.
func (p *Parser) batches(sentences []treebank.Sentence, do func(at int, b batch) error) error {
	for at := 0; at < len(sentences); at += p.Rows {
		part := sentences[at:min(at+p.Rows, len(sentences))]
		for i, s := range part {
			if len(s.Words) < 2 {
				return fmt.Errorf("sentence %d has %d word(s): no nonterminal covers a single word", at+i, len(s.Words))
			}
		}
		if err := do(at, newBatch(part, p.Rows, p.Bucket, 1<<30)); err != nil {
			return err
		}
	}
	return nil
}

// LogLikelihoods returns log p(x) of each sentence, in nats; -Inf if it has no derivation.
func (p *Parser) LogLikelihoods(sentences []treebank.Sentence) ([]float64, error) {
	out := make([]float64, 0, len(sentences))
	err := p.batches(sentences, func(_ int, b batch) error {
		y, err := p.inside.Call(b.words, b.lengths)
		if err == nil {
			out = append(out, tensors.MustCopyFlatData[float64](y[0])[:b.size]...)
		}
		return err
	})
	return out, err
}

// LogTrees returns log p(x,z) of a tree of each sentence, preterminals summed out.
func (p *Parser) LogTrees(sentences []treebank.Sentence, trees []*grammar.Tree) ([]float64, error) {
	out := make([]float64, 0, len(sentences))
	err := p.batches(sentences, func(at int, b batch) error {
		part := slices.Clone(trees[at : at+b.size])
		for len(part) < p.Rows {
			part = append(part, part[b.size-1])
		}
		packed, err := grammar.PackTrees(part, b.n)
		if err != nil {
			return err
		}
		y, err := p.score.Call(b.words, b.lengths, packed.Left, packed.Right, packed.Label)
		if err == nil {
			out = append(out, tensors.MustCopyFlatData[float64](y[0])[:b.size]...)
		}
		return err
	})
	return out, err
}

// Parse returns a tree of each sentence, with the preterminals of its words where the decoder chooses them, and its weight:
// log p of the derivation (Viterbi), the expected number of right spans (MBR), or log p(x) (Sample). Samples are those of a
// seed.
func (p *Parser) Parse(sentences []treebank.Sentence, how Decode, seed uint64) ([]*grammar.Tree, []float64, error) {
	e, ok := p.decode[how]
	if !ok {
		return nil, nil, fmt.Errorf("unknown decoder %q", how)
	}
	var trees []*grammar.Tree
	var weights []float64
	err := p.batches(sentences, func(at int, b batch) error {
		y, err := e.Call(b.words, b.lengths, rng.Key(seed, "grammar/parse", uint64(at)))
		if err != nil {
			return err
		}
		tags := y[3]
		if how == MBR {
			tags = nil
		}
		trees = append(trees, grammar.UnpackTrees(grammar.TreeTensors{Left: y[0], Right: y[1], Label: y[2]}, tags, b.lengthOf)[:b.size]...)
		weights = append(weights, tensors.MustCopyFlatData[float64](y[4])[:b.size]...)
		return nil
	})
	return trees, weights, err
}

// spansOf are the constituents of trees, to be scored.
func spansOf(trees []*grammar.Tree) [][]treebank.Span {
	out := make([][]treebank.Span, len(trees))
	for i, t := range trees {
		out[i] = spanList(t)
	}
	return out
}

func spanList(t *grammar.Tree) (out []treebank.Span) {
	for _, s := range t.Spans() {
		out = append(out, treebank.Span{s.First, s.Last})
	}
	return out
}

// compile prepares a program, which is compiled when it is first called, once for each shape of its arguments.
func compile(b compute.Backend, store *model.Store, f func(in []*Node) []*Node) (*model.Exec, error) {
	e, err := model.NewExec(b, store, func(_ *model.Scope, in []*Node) []*Node {
		defer panics.WithError()
		return f(in)
	})
	if err == nil {
		e.SetMaxCache(-1)
	}
	return e, err
}
