package parse

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/treebank"
)

// Listed is how near a GFlowNet is to the posterior of its grammar on short sentences, with all trees and all ways to
// make them listed: nothing is drawn.
type Listed struct {
	Sentences int     `json:"sentences"`
	NLL       float64 `json:"nll_per_word"`
	Bound     float64 `json:"bound_per_word"` // -E[log p(x,z) + log P_B - log P_F] over all trajectories
	// TotalVariation between q(z), where trajectories end, and the posterior p(z|x), averaged over sentences.
	TotalVariation float64 `json:"total_variation"`
	Worst          float64 `json:"total_variation_worst"` // of all sentences
	// KL is the divergence from q(z) to the posterior; over shapes it is that over labelled trees, whose labels are
	// drawn exactly.
	KL float64 `json:"kl_per_word"`
}

type (
	listedIn[S, L any] struct {
		Sentence S
		Forests  L
	}
	// listedLogs are log P_F and log P_B of all actions at forests.
	listedLogs[T any] struct{ Forward, Back T }

	shapesIn[T, Z any] struct {
		Weights grammar.PotentialParts[T]
		Lengths T
		Trees   Z
	}
	shapesOut[T any] struct{ LogP T }

	shapesTensors = shapesIn[*tensors.Tensor, grammar.TreeTensors]
	listedTensors = listedIn[forest.SentenceTensors, []*tensors.Tensor] // forests in the order of gfn.State
)

// actions reads the network at forests.
func (p *GFlowNet) actions(in listedIn[forest.Sentences, gfn.State]) listedLogs[*Node] {
	env := p.net.Env(in.Sentence.Words.Shape().Dim(1))
	k := forest.FromState(in.Forests).Length.Shape().Dim(0)
	phi := p.net.Set.Store.Scope(em.Phi)
	h := forest.Policy{Network: p.net.Network}.Heads(phi, in.Sentence.Batch(), in.Forests, k)
	logs := func(logits, legal *Node) *Node {
		return ConvertDType(gfn.Behaviour{}.LogProbs(logits, legal), dtypes.Float64)
	}
	return listedLogs[*Node]{logs(h.Forward, env.Legal(in.Forests)), logs(h.Backward, env.LegalBack(in.Forests))}
}

// List compares the GFlowNet with its grammar on sentences, each of which is listed once however often it occurs; nil
// if there are too many trees.
func (p *GFlowNet) List(sentences []treebank.Sentence) (*Listed, error) {
	if countForests(Longest(sentences), p.net.Env(2).Labels) > mostForests {
		return nil, nil
	}
	r := &Listed{Sentences: len(sentences)}
	times := map[string]float64{}
	all := 0
	for _, s := range sentences {
		key := fmt.Sprint(s.Words)
		if times[key] == 0 {
			all += countForests(len(s.Words), p.net.Env(2).Labels)
		}
		times[key]++
	}
	if all > mostListed {
		return nil, nil
	}
	for _, s := range sentences {
		key := fmt.Sprint(s.Words)
		count := times[key]
		if count == 0 {
			continue
		}
		delete(times, key)
		logX, bound, tv, kl, err := p.list(s.Words)
		if err != nil {
			return nil, err
		}
		r.KL += count * kl
		r.NLL, r.Bound, r.TotalVariation = r.NLL-count*logX, r.Bound-count*bound, r.TotalVariation+count*tv
		r.Worst = max(r.Worst, tv)
	}
	tokens := float64(Tokens(sentences))
	r.NLL, r.Bound, r.KL, r.TotalVariation = r.NLL/tokens, r.Bound/tokens, r.KL/tokens, r.TotalVariation/float64(len(sentences))
	return r, nil
}

// list returns log p(x) of a sentence, the bound of it, and the total variation and the divergence between q(z) and
// p(z|x).
func (p *GFlowNet) list(words []int32) (logX, bound, tv, kl float64, err error) {
	all, err := listForests(p.net.Set.Backend, p.net.Env(len(words)))
	if err != nil {
		return 0, 0, 0, 0, err
	}
	x := forest.SentenceTensors{
		Words:   tensors.FromFlatDataAndDimensions(words, 1, len(words)),
		Lengths: tensors.FromFlatDataAndDimensions([]int32{int32(len(words))}, 1),
	}
	logR, err := p.rewards(all, x)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	policy, err := p.policy(all, x)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	q, posterior := all.Terminating(policy), gfn.Normalise(logR)
	return gfn.LogSumExp(logR), all.ELBO(policy, logR), gfn.TotalVariation(q, posterior), stat.KullbackLeibler(q, posterior), nil
}

// rewards returns log p(x,z) of all trees, or log p(x,s) of all shapes.
func (p *GFlowNet) rewards(all *listing, x forest.SentenceTensors) ([]float64, error) {
	w, err := p.net.Potentials.Call(x)
	if err != nil {
		return nil, err
	}
	if p.net.Grammar != nil {
		return p.shapeRewards(all, x, w)
	}
	weights, err := chain.NewWeights(w, []int32{int32(all.n)})
	if err != nil {
		return nil, err
	}
	logR := make([]float64, len(all.trees))
	for i, z := range all.trees {
		logR[i] = weights.LogTree(0, z)
	}
	return logR, nil
}

// shapeRewards returns log p(x,s) of all shapes, of which a batch has all.
func (p *GFlowNet) shapeRewards(all *listing, x forest.SentenceTensors, w grammar.PotentialTensors) ([]float64, error) {
	trees, err := grammar.PackTrees(all.trees, all.n)
	if err != nil {
		return nil, err
	}
	y, err := p.shapes.Call(shapesTensors{w, x.Lengths, trees})
	if err != nil {
		return nil, err
	}
	return tensors.MustCopyFlatData[float64](y.LogP), nil
}

// logShapes scores several shapes of one sentence.
func logShapes(in shapesIn[*Node, grammar.Trees]) shapesOut[*Node] {
	q := grammar.Potentials{Root: in.Weights.Root, Rules: in.Weights.Rules, Terms: in.Weights.Terms, Lengths: in.Lengths}
	log := q.Repeat(in.Trees.Label.Shape().Dim(0)).LogShape(in.Trees)
	return shapesOut[*Node]{ConvertDType(log, dtypes.Float64)}
}

// policy reads the network at all forests.
func (p *GFlowNet) policy(all *listing, x forest.SentenceTensors) (gfn.Table, error) {
	var forward, back []float64
	for _, part := range all.parts {
		out, err := p.read.Call(listedTensors{x, part})
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
