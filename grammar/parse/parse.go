// Package parse finds trees of sentences: by exact inference, or by a GFlowNet, whose trees it also compares with the
// exact posterior.
//
// Where things are:
//
//	parse.go, batch.go    what a Parser does; sentences as batches
//	exact.go              exact inference
//	gflownet.go           trees by a GFlowNet
//	draws.go, orders.go   what its trajectories say, and the orders in which their trees can be made
//	bounds.go             how near that is to the posterior
//	listed.go, listing.go the same without drawing, where all trees can be listed
//	lines.go, stream.go   text, line by line, answered in order
package parse

import (
	"math"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/treebank"
)

// Parser finds trees of sentences.
type Parser interface {
	// Parse returns a tree of each sentence, chosen in one of the parser's ways, with the random numbers of a seed.
	Parse(sentences []treebank.Sentence, how Decode, seed uint64) ([]Found, error)
	// LogLikelihoods returns log p(x) of each sentence in nats: exact, -Inf if it has no derivation; or an estimate
	// that bounds nothing.
	LogLikelihoods(sentences []treebank.Sentence) ([]float64, error)
	// Longest is the number of words of the longest sentence that it reads; 0 means any.
	Longest() int
	// SetBatches sets the number of sentences of a batch, and the step of their lengths.
	SetBatches(rows, bucket int)
	// Close releases the compiled programs.
	Close()
}

// Decode is a way to choose a tree.
type Decode string

// The ways to choose a tree, by exact inference, and with a GFlowNet, at temperature 1 and without moves.
const (
	Viterbi   Decode = "viterbi" // the most probable derivation
	MBR       Decode = "mbr"     // the tree with the greatest expected number of right spans
	Sample    Decode = "sample"  // a draw from the posterior
	GFNSample Decode = "gfn"     // where one trajectory ends
	GFNMBR    Decode = "gfn-mbr" // the tree with the greatest number of right spans, on average over where many trajectories end
)

// Decodes lists them.
func Decodes() []string {
	return []string{string(Viterbi), string(MBR), string(Sample), string(GFNSample), string(GFNMBR)}
}

// ByGFlowNet says whether a GFlowNet chooses.
func (d Decode) ByGFlowNet() bool { return d == GFNSample || d == GFNMBR }

// Unlabelled says whether the labels of its trees mean nothing.
func (d Decode) Unlabelled() bool { return d == MBR || d == GFNMBR }

// Found is a tree of a sentence and what its parser says of it, NaN where it does not.
type Found struct {
	Tree          *grammar.Tree
	LogP          float64 // log p(x), of exact samples
	LogDerivation float64 // log p(x,z) with the preterminals of the tree, of most probable derivations
	Spans         float64 // the expected number of right spans, the whole sentence counted, of MBR
	// Of the trajectory that a GFlowNet drew: log P_F, and log P_B of the same steps undone.
	LogForward, LogBack float64
}

func found(t *grammar.Tree) Found {
	none := math.NaN()
	return Found{Tree: t, LogP: none, LogDerivation: none, Spans: none, LogForward: none, LogBack: none}
}

// Trees are those that were found.
func Trees(found []Found) []*grammar.Tree {
	out := make([]*grammar.Tree, len(found))
	for i, f := range found {
		out[i] = f.Tree
	}
	return out
}

// Spans are the constituents of trees, to be scored.
func Spans(trees []*grammar.Tree) [][]treebank.Span {
	out := make([][]treebank.Span, len(trees))
	for i, t := range trees {
		for _, s := range t.Spans() {
			out[i] = append(out[i], treebank.Span{s.First, s.Last})
		}
	}
	return out
}
