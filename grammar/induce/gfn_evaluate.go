package induce

import (
	"fmt"
	"math"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/treebank"
)

// fullPlan is what an evaluation draws for each sentence.
var fullPlan = drawPlan{samples: mbrSamples, trees: 2, orders: 16}

// GFNResult is how near a GFlowNet is to the posterior of its grammar on one split, at temperature 1, without moves and without a
// prior on shapes.
type GFNResult struct {
	Samples int `json:"samples"` // trajectories of each sentence
	Orders  int `json:"orders"`  // of each of the trees that KL over trees looks at

	// Bound is -E[log p(x,z) + log P_B - log P_F] over trajectories, an upper bound of -log p(x).
	Bound Measure `json:"bound"`
	// ImportanceBound is -E[log of the mean of exp(log p(x,z) + log P_B - log P_F) over all samples], which is tighter.
	ImportanceBound Measure `json:"importance_bound"`
	// Flow is what the network takes -log p(x) for. It bounds nothing.
	Flow Measure `json:"flow_estimate"`

	// KLTrajectories is the divergence from trajectories of P_F to those drawn by P_B from the exact posterior: Bound less the exact
	// -log p(x). That from q(z) to the posterior is no greater; it is between KLTreesLow and KLTreesHigh, but for errors of drawing.
	KLTrajectories Measure `json:"kl_trajectories"`
	KLTreesLow     Measure `json:"kl_trees_at_least"`
	KLTreesHigh    Measure `json:"kl_trees_at_most"`

	// Spearman is the correlation of ranks between log p(x) and its flow estimate; nil where one of them is constant.
	Spearman *float64 `json:"spearman,omitempty"`
	// Labels is the number of nonterminals that the samples use, and LabelPerplexity exp of the entropy of how often.
	Labels          int     `json:"labels"`
	LabelPerplexity float64 `json:"label_perplexity"`
}

// evaluateGFN adds what the GFlowNet does on a split, given the exact log p(x) of its sentences.
func (s *session) evaluateGFN(r *SplitResult, split *treebank.Split, logX []float64) error {
	p := newGFNParser(s.gfn)
	all, labels, err := p.drawAll(split.Sentences, fullPlan, s.Config.Seed)
	if err != nil {
		return err
	}
	flows, err := p.flows(split.Sentences)
	if err != nil {
		return err
	}
	r.GFlowNet = newGFNResult(split.Sentences, logX, flows, all)
	r.GFlowNet.Labels, r.GFlowNet.LabelPerplexity = report.Usage(labels)
	if !split.Gold {
		return nil
	}
	first, best := make([][]treebank.Span, len(all)), make([][]treebank.Span, len(all))
	for i, t := range all {
		first[i], best[i] = spanList(t.first), spanList(t.best)
	}
	if err := r.score(string(GFNSample), split, first); err != nil {
		return err
	}
	return r.score(string(GFNMBR), split, best)
}

func newGFNResult(sentences []treebank.Sentence, logX, flows []float64, all []draws) *GFNResult {
	r := &GFNResult{Samples: fullPlan.samples, Orders: fullPlan.orders}
	r.Bound = measure(sentences, func(i int) (float64, float64) {
		mean, variance := average(all[i].logW)
		return -mean, variance
	})
	r.ImportanceBound = measure(sentences, func(i int) (float64, float64) {
		e := gfn.EstimateLogZ(all[i].logW)
		return -e.LogZ, e.StdErr * e.StdErr
	})
	r.Flow = measure(sentences, func(i int) (float64, float64) { return -flows[i], 0 })
	r.KLTrajectories = measure(sentences, func(i int) (float64, float64) {
		mean, variance := average(all[i].logW)
		return logX[i] - mean, variance
	})
	r.KLTreesLow = measure(sentences, func(i int) (float64, float64) { return all[i].klTrees(logX[i], all[i].low) })
	r.KLTreesHigh = measure(sentences, func(i int) (float64, float64) { return all[i].klTrees(logX[i], all[i].high) })
	if c := spearman(logX, flows); !math.IsNaN(c) {
		r.Spearman = &c
	}
	return r
}

// watchGFN measures the GFlowNet with one trajectory of each sentence, for the curves.
func (s *session) watchGFN(log map[string]float64, some []treebank.Sentence, gold bool) error {
	p := newGFNParser(s.gfn)
	all, _, err := p.drawAll(some, drawPlan{samples: 1}, s.Config.Seed)
	if err != nil {
		return err
	}
	flows, err := p.flows(some)
	if err != nil {
		return err
	}
	bound, spans := make([]float64, len(some)), make([][]treebank.Span, len(some))
	for i, t := range all {
		bound[i], spans[i] = t.logW[0], spanList(t.first)
	}
	tokens := tokensOf(some)
	log["valid/bound_per_word"], log["valid/flow_per_word"] = perToken(bound, tokens), perToken(flows, tokens)
	if !gold {
		return nil
	}
	score, err := treebank.F1(some, spans, treebank.Standard)
	log["valid/gfn_f1"] = score.Sentence
	return err
}

// gfnTable compares a GFlowNet with exact inference.
func (s SplitResult) gfnTable() *report.Table {
	g := s.GFlowNet
	t := &report.Table{
		Title:   fmt.Sprintf("%s: the GFlowNet beside exact inference", s.Name),
		Columns: report.Columns("", "nats per word", "nats per sentence"),
		Notes: []string{
			"nats per word: summed over sentences, by the number of words and sentence ends; ± is the standard error of drawing, sentences given",
			fmt.Sprintf("bound: -E[log p(x,z) + log P_B - log P_F], from %d trajectories of each sentence at temperature 1, without moves", g.Samples),
			"flow estimate: what the network takes -log p(x) for; it is no bound",
			"KL over trajectories: the bound less the exact value; the KL over trees, from q(z) to the exact posterior, is no greater",
			fmt.Sprintf("KL over trees: q(z) from %d orders of a tree by P_B, without and with the one it was made in, too low and too high on average",
				g.Orders),
			fmt.Sprintf("%d of the nonterminals are used by the samples, perplexity %.1f", g.Labels, g.LabelPerplexity),
		},
	}
	if g.Spearman != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("Spearman correlation of log p(x) with its flow estimate: %.3f", *g.Spearman))
	}
	exact := Measure{PerWord: s.NLL, PerSentence: g.Bound.PerSentence - g.KLTrajectories.PerSentence}
	for _, row := range []struct {
		name string
		Measure
	}{
		{"-log p(x), exact", exact},
		{"bound", g.Bound},
		{fmt.Sprintf("importance-weighted bound, %d samples", g.Samples), g.ImportanceBound},
		{"flow estimate, no guarantee", g.Flow},
		{"KL over trajectories", g.KLTrajectories},
		{"KL over trees, at least", g.KLTreesLow},
		{"KL over trees, at most", g.KLTreesHigh},
	} {
		cell := report.Number(row.PerWord, 4)
		if row.Error > 0 {
			cell = report.MeanStd(row.PerWord, row.Error, 4)
		}
		t.Add(report.Text(row.name), cell, report.Number(row.PerSentence, 3))
	}
	return t
}
