package results

import (
	"math"
	"slices"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
)

// shapesTable goes from EM as published to EM on shapes, several walks of each sentence, and weights instead of moves,
// step by step: with exact samples, which are the ceiling of each step, and with a GFlowNet.
func shapesTable() paperTable {
	row := func(key, title, method string, with ...string) tableRow {
		return tableRow{key: key, title: title, with: append(config.Set{"method=" + method}, with...)}
	}
	const labels, shapes, four = "mstep.collapse=labels", "policy.trees=shapes", "wake.samples=4"
	weights := []string{shapes, four, "mstep.weights=true", "moves.count=0", "moves.balance=0"}
	vargrad := slices.Concat(weights, []string{"wake.objective=vargrad"})
	replay := slices.Concat(vargrad, []string{"wake.replay=1"})
	return paperTable{
		name: "grammar-shapes", title: "What M-steps and E-steps gain by summing labels out", own: true, preset: "quick",
		show: compareShapes, figures: compareFigures, unless: asPublished, timed: true,
		rows: []tableRow{
			row("marginal", "all trees", induce.Marginal),
			row("exact", "one exact sample, labels and tags seen", induce.Exact, "mstep.collapse=none"),
			row("exact-tags", "one exact sample, tags summed out", induce.Exact, "mstep.collapse=tags"),
			row("exact-labels", "one exact shape", induce.Exact, labels),
			row("exact-labels-4", "four exact shapes", induce.Exact, labels, "mstep.samples=4"),
			row("gfn", "GFlowNet over labelled trees, tags summed out", induce.GFN, "mstep.collapse=tags"),
			row("gfn-labels", "the same, labels summed out in M-steps", induce.GFN, labels),
			row("gfn-shapes", "GFlowNet over shapes", induce.GFN, shapes),
			row("gfn-shapes-4", "the same, four walks of each sentence", induce.GFN, shapes, four),
			row("gfn-weights-4", "four walks, weights instead of moves", induce.GFN, weights...),
			row("gfn-vargrad-4", "the same, VarGrad instead of SubTB", induce.GFN, vargrad...),
			row("gfn-replay-4", "the same, an accepted tree of each sentence replayed", induce.GFN, replay...),
			row("gfn-chains-4", "four walks, moves go on from chains that persist", induce.GFN, shapes, four, "moves.persist=true"),
		},
	}
}

// asPublished gives a row the E- and M-steps of the paper, whatever the preset, and all rows one rate.
func asPublished(c *induce.Config) {
	c.AsPublished(max(c.Moves.Count, 4))
	if c.Optim.Theta.Rate == -1 {
		c.Optim.Theta.Rate = 3e-3
	}
}

// compareShapes shows a table of trainings with how near their GFlowNets are to the posterior.
func compareShapes(r *reproduced) *report.Table {
	worth := func(o *Result) float64 {
		if g := o.shown().GFlowNet; g != nil {
			return g.ESS
		}
		return math.NaN()
	}
	t := r.table([]string{"", "nats/word", "KL per word", "samples worth", "F1", "F1, Viterbi", "F1, MBR", "M-steps", "of iterations", "ms"},
		"nats/word: exact −log p(x), by words and sentence ends",
		"KL: from the GFlowNet's trees to the exact posterior, in nats, without moves, an estimate from above",
		"samples worth: the effective sample size of 32 trajectories of each sentence, mean of sentences",
		"F1: mean of sentences, of one sample of the GFlowNet, or else of the exact posterior",
		"ms: milliseconds of an iteration with an M-step, the median of some, measured after all trainings")
	for _, row := range r.Rows {
		t.Add(report.Text(row.title), row.cell(3, (*Result).nll),
			row.cell(4, (*Result).divergence), row.cell(1, worth),
			row.cell(2, func(o *Result) float64 { return o.sampled().Sentence }),
			row.cell(2, func(o *Result) float64 { return o.scoreOf(string(parse.Viterbi)).Sentence }),
			row.cell(2, func(o *Result) float64 { return o.scoreOf(string(parse.MBR)).Sentence }),
			row.mean(0, func(o *Result) float64 { return o.ofGFN(o.Updates) }),
			row.mean(0, func(o *Result) float64 { return o.ofGFN(o.Iterations) }), report.Number(row.Milliseconds, 1))
	}
	return t
}

// objectivesTable compares losses of several walks of each sentence, without moves, the grammar being given: those of
// GFlowNets and what else is in use. An update learns from five trajectories of each sentence, whatever the row: five
// walks, or four and a dream.
func objectivesTable() paperTable {
	const awake = "sleep.weight=0"
	row := func(key, title string, with ...string) tableRow {
		walks := 4
		if slices.Contains(with, awake) {
			walks = 5
		}
		return tableRow{
			key: key, title: title, with: append(config.Set{"method=gfn", "moves.balance=0"}, with...),
			unless: func(c *induce.Config) { c.Wake.Samples = walks },
		}
	}
	onPolicy := func(objective string, with ...string) []string {
		return append([]string{"wake.objective=" + objective, "wake.beta=1", "wake.epsilon=0"}, with...)
	}
	return paperTable{
		name: "grammar-objectives", title: "Losses of several walks of each sentence, the grammar being given", own: true,
		preset: "small", check: needsFixed("grammar-objectives"), show: compareObjectives,
		figures: []tableFigure{
			{"kl", "nats per word", "Divergence from where trajectories end to the exact posterior, all runs.", (*Result).divergence},
		},
		rows: []tableRow{
			row("subtb", "SubTB, exploration", "wake.objective=subtb", awake),
			row("subtb-sleep", "SubTB, exploration, sleep", "wake.objective=subtb"),
			row("vargrad", "VarGrad, exploration", "wake.objective=vargrad", awake),
			row("vargrad-sleep", "VarGrad, exploration, sleep", "wake.objective=vargrad"),
			row("hvi", "HVI", onPolicy("hvi", awake)...),
			row("vimco", "VIMCO", onPolicy("vimco", awake)...),
			row("rws", "RWS, wake alone", onPolicy("rws", awake)...),
			row("rws-sleep", "RWS, wake and sleep", onPolicy("rws")...),
			row("sleep", "sleep alone", "wake.objective=none"),
		},
	}
}

// divergence is that from q(z) to the posterior, per word; of listed trees, or else as drawn, from above.
func (r *Result) divergence() float64 {
	if l := r.shown().Listed; l != nil {
		return l.KL
	}
	if g := r.shown().GFlowNet; g != nil {
		return g.KLTreesHigh.PerWord
	}
	return math.NaN()
}

// compareObjectives shows how near each loss comes to the posterior.
func compareObjectives(r *reproduced) *report.Table {
	t := r.table([]string{"", "bound less exact", "KL per word", "total variation"},
		"an update learns from five trajectories of each sentence: five walks, or four and a dream; "+
			"sleep alone from one dream",
		"bound: −E[log p(x,z) + log P_B − log P_F] in nats per word and sentence end",
		"KL, total variation: between where trajectories end and the exact posterior, all trees and all orders listed; where these are "+
			"too many, KL is an estimate from above, by 32 trajectories of each sentence")
	for _, row := range r.Rows {
		t.Add(report.Text(row.title), row.cell(4, (*Result).gap), row.cell(4, (*Result).divergence), row.cell(4, (*Result).variation))
	}
	return t
}
