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
	set *program.Set
	ask *program.Program[questionTensors, answerTensors]
}

var _ Parser = (*Exact)(nil)

// What is asked besides a tree.
const (
	inside Decode = "log p(x)"
	score  Decode = "log p(x,z)" // of a given tree
)

type (
	// question has a key for samples, and trees if they are given.
	question[T, S, Z any] struct {
		How       Decode
		Sentences S
		Key       T
		Trees     *Z
	}
	// answer is logarithms or expected numbers, [B] float64, and trees where they are asked for.
	answer[T, Z any] struct {
		Weight T
		Trees  *Z
		Tags   T
	}
	questionTensors = question[*tensors.Tensor, forest.SentenceTensors, grammar.TreeTensors]
	answerTensors   = answer[*tensors.Tensor, grammar.TreeTensors]
)

// NewExact returns a parser of a table of probabilities, in double precision.
func NewExact(b compute.Backend, g *grammar.Grammar) *Exact {
	set := program.NewSet(b, nil)
	return ExactOf(set, g.LogProbs(dtypes.Float64).Keep(set.Store.Scope("/grammar")))
}

// ExactOf returns a parser of the tables that graphs of a set read.
func ExactOf(set *program.Set, tables func(*Graph) grammar.LogProbs) *Exact {
	answers := func(in question[*Node, forest.Sentences, grammar.Trees]) (out answer[*Node, grammar.Trees]) {
		q := tables(in.Sentences.Words.Graph()).For(in.Sentences.Words, in.Sentences.Lengths)
		var best grammar.Parses
		switch in.How {
		case inside:
			best.LogWeight = grammar.LogLikelihood(q)
		case score:
			best.LogWeight = q.LogTree(*in.Trees)
		case Viterbi:
			best = q.Viterbi()
		case MBR:
			best = q.MBR()
			best.Tags = nil
		case Sample:
			best = q.Sample(rng.In(in.Key))
		}
		if out.Weight = ConvertDType(best.LogWeight, dtypes.Float64); best.Trees.Label != nil {
			out.Trees, out.Tags = &best.Trees, best.Tags
		}
		return out
	}
	ask := program.New[questionTensors, answerTensors](set, "inside", answers)
	return &Exact{Batches: Batches{Rows: 32, Bucket: 5}, set: set, ask: ask}
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
	return p.logs(sentences, inside, nil)
}

// LogTrees returns log p(x,z) of a tree of each sentence, preterminals summed out.
func (p *Exact) LogTrees(sentences []treebank.Sentence, trees []*grammar.Tree) ([]float64, error) {
	return p.logs(sentences, score, trees)
}

func (p *Exact) logs(sentences []treebank.Sentence, how Decode, trees []*grammar.Tree) ([]float64, error) {
	out := make([]float64, len(sentences))
	return out, p.each(sentences, func(_ int, at []int, x Padded) error {
		q := questionTensors{How: how, Sentences: x.SentenceTensors}
		if trees != nil {
			packed, err := grammar.PackTrees(rowsOf(trees, at, len(x.LengthOf)), x.Room())
			if err != nil {
				return err
			}
			q.Trees = &packed
		}
		y, err := p.ask.Call(q)
		if err == nil {
			fill(out, at, y.Weight)
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
		key := rng.Key(seed, "grammar/parse", uint64(at[0]))
		y, err := p.ask.Call(questionTensors{How: how, Sentences: x.SentenceTensors, Key: key})
		if err != nil {
			return err
		}
		weights := tensors.MustCopyFlatData[float64](y.Weight)
		for i, t := range grammar.UnpackTrees(*y.Trees, y.Tags, x.LengthOf)[:len(at)] {
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
