package parse

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// Exact does exact inference with one grammar, a batch of sentences at a time.
type Exact struct {
	Batches
	set    *program.Set
	inside *program.Program[forest.SentenceTensors, logs[*tensors.Tensor]]
	score  *program.Program[scoreTensors, logs[*tensors.Tensor]]
	decode *program.Program[decodeTensors, decodedTensors]
}

var _ Parser = (*Exact)(nil)

// What programs take and return, in graphs and on the host.
type (
	scoreIn[S, Z any] struct {
		Sentences S
		Trees     Z
	}
	decodeIn[T, S any] struct {
		How       Decode
		Sentences S
		Key       T
	}
	// logs are log-probabilities, [B] float64.
	logs[T any] struct{ LogP T }
	// decoded are derivations and their log-weights, [B] float64.
	decoded[T, Z any] struct {
		Trees           Z
		Tags, LogWeight T
	}

	scoreTensors   = scoreIn[forest.SentenceTensors, grammar.TreeTensors]
	decodeTensors  = decodeIn[*tensors.Tensor, forest.SentenceTensors]
	decodedTensors = decoded[*tensors.Tensor, grammar.TreeTensors]
)

// NewExact returns a parser of a table of probabilities, in double precision.
func NewExact(b compute.Backend, g *grammar.Grammar) *Exact {
	set := program.NewSet(b, nil)
	return ExactOf(set, g.LogTables(dtypes.Float64).Keep(set.Store.Scope("/grammar")))
}

// ExactOf returns a parser of the tables that graphs of a set read.
func ExactOf(set *program.Set, tables func(*Graph) grammar.Tables) *Exact {
	potentials := func(x forest.Sentences) grammar.Potentials { return tables(x.Words.Graph()).For(x.Words, x.Lengths) }
	wide := func(x *Node) logs[*Node] { return logs[*Node]{ConvertDType(x, dtypes.Float64)} }
	return &Exact{
		Batches: Batches{Rows: 32, Bucket: 5}, set: set,
		inside: program.New[forest.SentenceTensors, logs[*tensors.Tensor]](set, "inside", func(x forest.Sentences) logs[*Node] {
			return wide(grammar.LogLikelihood(potentials(x)))
		}),
		score: program.New[scoreTensors, logs[*tensors.Tensor]](set, "score of trees", func(in scoreIn[forest.Sentences, grammar.Trees]) logs[*Node] {
			return wide(potentials(in.Sentences).LogTree(in.Trees))
		}),
		decode: program.New[decodeTensors, decodedTensors](set, "decode",
			func(in decodeIn[*Node, forest.Sentences]) decoded[*Node, grammar.Trees] {
				q := potentials(in.Sentences)
				var best grammar.Parses
				switch in.How {
				case Viterbi:
					best = q.Viterbi()
				case MBR:
					best = q.MBR()
				case Sample:
					best = q.Sample(rng.In(in.Key))
				}
				return decoded[*Node, grammar.Trees]{best.Trees, best.Tags, wide(best.LogWeight).LogP}
			}),
	}
}

// Close implements Parser.
func (p *Exact) Close() { p.set.Close() }

// Longest implements Parser.
func (p *Exact) Longest() int { return 0 }

// each packs sentences in their order.
func (p *Exact) each(sentences []treebank.Sentence, do func(number int, at []int, x Padded) error) error {
	for i, s := range sentences {
		if len(s.Words) < 2 {
			return fmt.Errorf("sentence %d has %d word(s): no nonterminal covers a single word", i, len(s.Words))
		}
	}
	return p.Batches.each(sentences, false, do)
}

// LogLikelihoods implements Parser.
func (p *Exact) LogLikelihoods(sentences []treebank.Sentence) ([]float64, error) {
	out := make([]float64, len(sentences))
	return out, p.each(sentences, func(_ int, at []int, x Padded) error {
		y, err := p.inside.Call(x.SentenceTensors)
		if err == nil {
			fill[float64](out, at, y.LogP)
		}
		return err
	})
}

// LogTrees returns log p(x,z) of a tree of each sentence, preterminals summed out.
func (p *Exact) LogTrees(sentences []treebank.Sentence, trees []*grammar.Tree) ([]float64, error) {
	out := make([]float64, len(sentences))
	return out, p.each(sentences, func(_ int, at []int, x Padded) error {
		packed, err := grammar.PackTrees(rowsOf(trees, at, p.Rows), x.Room())
		if err != nil {
			return err
		}
		y, err := p.score.Call(scoreTensors{x.SentenceTensors, packed})
		if err == nil {
			fill[float64](out, at, y.LogP)
		}
		return err
	})
}

// rowsOf are the trees of a batch, the last one repeated.
func rowsOf(trees []*grammar.Tree, at []int, rows int) []*grammar.Tree {
	out := make([]*grammar.Tree, rows)
	for i := range out {
		out[i] = trees[at[min(i, len(at)-1)]]
	}
	return out
}

// Parse implements Parser. Trees have the preterminals of their words, but for those of MBR.
func (p *Exact) Parse(sentences []treebank.Sentence, how Decode, seed uint64) ([]Found, error) {
	if how != Viterbi && how != MBR && how != Sample {
		return nil, fmt.Errorf("decoder %q is not one of exact inference", how)
	}
	out := make([]Found, len(sentences))
	return out, p.each(sentences, func(_ int, at []int, x Padded) error {
		y, err := p.decode.Call(decodeTensors{how, x.SentenceTensors, rng.Key(seed, "grammar/parse", uint64(at[0]))})
		if err != nil {
			return err
		}
		if how == MBR {
			y.Tags = nil
		}
		weights := tensors.MustCopyFlatData[float64](y.LogWeight)
		for i, t := range grammar.UnpackTrees(y.Trees, y.Tags, x.LengthOf)[:len(at)] {
			f := found(t)
			switch how {
			case Viterbi:
				f.LogDerivation = weights[i]
			case MBR:
				f.Spans = weights[i]
			case Sample:
				f.LogP = weights[i]
			}
			out[at[i]] = f
		}
		return nil
	})
}
