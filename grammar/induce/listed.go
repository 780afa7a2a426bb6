package induce

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/treebank"
)

// Listed is how near a GFlowNet is to the posterior of its grammar on short sentences, with all trees and all ways to make them listed:
// nothing is drawn.
type Listed struct {
	Sentences int     `json:"sentences"`
	NLL       float64 `json:"nll_per_word"`
	Bound     float64 `json:"bound_per_word"` // -E[log p(x,z) + log P_B - log P_F] over all trajectories
	// TotalVariation between q(z), where trajectories end, and the posterior p(z|x), averaged over sentences.
	TotalVariation float64 `json:"total_variation"`
	Worst          float64 `json:"total_variation_worst"` // of all sentences
}

// list compares the GFlowNet with a fixed grammar on a split; nil if there are too many trees, or the grammar is learned.
func (s *session) list(split *treebank.Split) (*Listed, error) {
	if s.fixed == nil || countForests(longestOf(split.Sentences), s.Nonterminals) > mostForests {
		return nil, nil
	}
	return newLister(s.gfn).compare(split.Sentences)
}

// lister compares a GFlowNet with its grammar, sentence by sentence.
type lister struct {
	net  *gflownet
	read *program.Program[listedIn, listedLogs[*tensors.Tensor]]
}

type (
	listedIn struct {
		Sentence forest.SentenceTensors
		Forests  []*tensors.Tensor // in the order of gfn.State
	}
	listedNodes struct {
		Sentence forest.Sentences
		Forests  gfn.State
	}
	// listedLogs are log P_F and log P_B of all actions at forests.
	listedLogs[T any] struct{ Forward, Back T }
)

func newLister(net *gflownet) *lister {
	read := func(in listedNodes) listedLogs[*Node] {
		env := forest.Env{Words: in.Sentence.Words.Shape().Dim(1), Labels: net.Nonterminals}
		k := forest.FromState(in.Forests).Length.Shape().Dim(0)
		h := forest.Policy{Network: net.Network}.Heads(net.phi(), in.Sentence.Batch(), in.Forests, k)
		logs := func(logits, legal *Node) *Node {
			return ConvertDType(gfn.Behaviour{}.LogProbs(logits, legal), dtypes.Float64)
		}
		return listedLogs[*Node]{logs(h.Forward, env.Legal(in.Forests)), logs(h.Backward, env.LegalBack(in.Forests))}
	}
	return &lister{net, program.New[listedIn, listedLogs[*tensors.Tensor]](net.Set, "all actions", read)}
}

// compare measures sentences, each of which is listed once however often it occurs.
func (l *lister) compare(sentences []treebank.Sentence) (*Listed, error) {
	r := &Listed{Sentences: len(sentences)}
	times := map[string]float64{}
	for _, s := range sentences {
		times[fmt.Sprint(s.Words)]++
	}
	for _, s := range sentences {
		key := fmt.Sprint(s.Words)
		count := times[key]
		if count == 0 {
			continue
		}
		delete(times, key)
		logX, bound, tv, err := l.one(s.Words)
		if err != nil {
			return nil, err
		}
		r.NLL, r.Bound, r.TotalVariation = r.NLL-count*logX, r.Bound-count*bound, r.TotalVariation+count*tv
		r.Worst = max(r.Worst, tv)
	}
	tokens := float64(tokensOf(sentences))
	r.NLL, r.Bound, r.TotalVariation = r.NLL/tokens, r.Bound/tokens, r.TotalVariation/float64(len(sentences))
	return r, nil
}

// one returns log p(x) of a sentence, the bound of it and the total variation between q(z) and p(z|x).
func (l *lister) one(words []int32) (logX, bound, tv float64, err error) {
	all, err := listForests(l.net.Set.Backend, len(words), l.net.Nonterminals)
	if err != nil {
		return 0, 0, 0, err
	}
	x := forest.SentenceTensors{
		Words:   tensors.FromFlatDataAndDimensions(words, 1, len(words)),
		Lengths: tensors.FromFlatDataAndDimensions([]int32{int32(len(words))}, 1),
	}
	logR, err := l.rewards(all, x)
	if err != nil {
		return 0, 0, 0, err
	}
	policy, err := l.policy(all, x)
	if err != nil {
		return 0, 0, 0, err
	}
	return gfn.LogSumExp(logR), all.ELBO(policy, logR), gfn.TotalVariation(all.Terminating(policy), gfn.Normalise(logR)), nil
}

// rewards returns log p(x,z) of all trees.
func (l *lister) rewards(all *listing, x forest.SentenceTensors) ([]float64, error) {
	w, err := l.net.Potentials(x)
	if err != nil {
		return nil, err
	}
	weights, err := chain.NewWeights(grammar.PotentialTensors(w), []int32{int32(all.n)})
	if err != nil {
		return nil, err
	}
	logR := make([]float64, len(all.trees))
	for i, z := range all.trees {
		logR[i] = weights.LogTree(0, z)
	}
	return logR, nil
}

// policy reads the network at all forests.
func (l *lister) policy(all *listing, x forest.SentenceTensors) (gfn.Table, error) {
	var forward, back []float64
	for _, part := range all.parts {
		out, err := l.read.Call(listedIn{x, part})
		if err != nil {
			return gfn.Table{}, err
		}
		forward = append(forward, tensors.MustCopyFlatData[float64](out.Forward)...)
		back = append(back, tensors.MustCopyFlatData[float64](out.Back)...)
	}
	t := gfn.Table{LogPF: make([]float64, len(all.Edges)), LogPB: make([]float64, len(all.Edges))}
	for i, e := range all.Edges {
		t.LogPF[i] = forward[e.From*all.Env.Actions()+e.Action]
		if e.To < all.inner { // the top of a whole tree is the only one to split
			t.LogPB[i] = back[e.To*all.Env.BackActions()+e.Back]
		}
	}
	return t, nil
}

// listedTable says how near a GFlowNet is to the posterior where everything is listed.
func (s SplitResult) listedTable() *report.Table {
	t := &report.Table{
		Title:   fmt.Sprintf("%s: the GFlowNet beside the posterior, all trees listed", s.Name),
		Columns: report.Columns("sentences", "nats per word", "bound", "total variation", "of the worst sentence"),
		Notes:   []string{"total variation: between where trajectories end and the exact posterior, mean of sentences"},
	}
	l := s.Listed
	t.Add(report.Int(l.Sentences), report.Number(l.NLL, 4), report.Number(l.Bound, 4), report.Number(l.TotalVariation, 4), report.Number(l.Worst, 4))
	return t
}
