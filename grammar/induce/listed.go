package induce

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/forest"
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
	l, err := newLister(s.gfn)
	if err != nil {
		return nil, err
	}
	defer l.close()
	return l.compare(split.Sentences)
}

// lister compares a GFlowNet with its grammar, sentence by sentence.
type lister struct {
	net  *gflownet
	read *model.Exec // words, lengths, forests: log P_F and log P_B of all their actions
}

func newLister(net *gflownet) (*lister, error) {
	read, err := compile(net.backend, net.store, func(in []*Node) []*Node {
		s := gfn.State(in[2:])
		env := forest.Env{Words: in[0].Shape().Dim(1), Labels: net.Nonterminals}
		h := forest.Policy{Network: net.net}.Heads(net.store.Scope(phi), gfn.Batch(in[:2]), s, s[0].Shape().Dim(0))
		logs := func(logits, legal *Node) *Node {
			return ConvertDType(gfn.Behaviour{}.LogProbs(logits, legal), dtypes.Float64)
		}
		return []*Node{logs(h.Forward, env.Legal(s)), logs(h.Backward, env.LegalBack(s))}
	})
	return &lister{net, read}, err
}

func (l *lister) close() { l.read.Finalize() }

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
	all, err := listForests(l.net.backend, len(words), l.net.Nonterminals)
	if err != nil {
		return 0, 0, 0, err
	}
	x := tensors.FromFlatDataAndDimensions(words, 1, len(words))
	n := tensors.FromFlatDataAndDimensions([]int32{int32(len(words))}, 1)
	logR, err := l.rewards(all, x, n)
	if err != nil {
		return 0, 0, 0, err
	}
	policy, err := l.policy(all, x, n)
	if err != nil {
		return 0, 0, 0, err
	}
	return gfn.LogSumExp(logR), all.ELBO(policy, logR), gfn.TotalVariation(all.Terminating(policy), gfn.Normalise(logR)), nil
}

// rewards returns log p(x,z) of all trees.
func (l *lister) rewards(all *listing, words, lengths *tensors.Tensor) ([]float64, error) {
	q, err := l.net.potentials.Call(words, lengths)
	if err != nil {
		return nil, err
	}
	scores, err := chain.NewWeights(grammar.PotentialTensors{Root: q[0], Rules: q[1], Terms: q[2]}, []int32{int32(all.n)})
	if err != nil {
		return nil, err
	}
	logR := make([]float64, len(all.trees))
	for i, z := range all.trees {
		logR[i] = scores.LogTree(0, z)
	}
	return logR, nil
}

// policy reads the network at all forests.
func (l *lister) policy(all *listing, words, lengths *tensors.Tensor) (gfn.Table, error) {
	var forward, back []float64
	for _, part := range all.parts {
		out, err := l.read.Call(appendAll([]any{words, lengths}, part)...)
		if err != nil {
			return gfn.Table{}, err
		}
		forward = append(forward, tensors.MustCopyFlatData[float64](out[0])...)
		back = append(back, tensors.MustCopyFlatData[float64](out[1])...)
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
