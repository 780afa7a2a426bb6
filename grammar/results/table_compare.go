package results

import (
	"math"
	"slices"

	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
)

// compareFigures are those of tables of trainings.
var compareFigures = []tableFigure{
	{"nll", "nats per word", "Exact −log p(x), by words and sentence ends, of all runs.", (*Result).nll},
	{"f1", "percent", "F1 of one sampled tree of each sentence, mean of sentences, of all runs.",
		func(r *Result) float64 { return r.sampled().Sentence }},
}

// shown is the split whose numbers a table has: the test sentences, or the validation sentences where there is no test.
func (r *Result) shown() *SplitResult { return &r.Splits[len(r.Splits)-1] }

func (r *Result) nll() float64 { return r.shown().NLL }

func (r *Result) bound() float64 {
	if g := r.shown().GFlowNet; g != nil && g.Sentences == r.shown().Sentences {
		return g.Bound.PerWord
	}
	return math.NaN()
}

// sampled is the F1 of the trees that the paper scores: one sample of each sentence, of the GFlowNet or else of the
// exact posterior.
func (r *Result) sampled() F1 {
	if r.Method == induce.GFN {
		return r.scoreOf(string(parse.GFNSample))
	}
	return r.scoreOf(string(parse.Sample))
}

// scoreOf is the F1 of some trees, NaN without gold trees.
func (r *Result) scoreOf(trees string) F1 {
	for _, f := range r.shown().F1 {
		if f.Trees == trees {
			return f
		}
	}
	return F1{Trees: trees, Sentence: math.NaN(), Corpus: math.NaN(), Released: math.NaN()}
}

// ofGFN is a number of GFlowNet-EM alone.
func (r *Result) ofGFN(n uint64) float64 {
	if r.Method != induce.GFN {
		return math.NaN()
	}
	return float64(n)
}

// compare shows a table of trainings: how probable sentences are, and how good trees.
func compare(r *reproduced) *report.Table {
	t := r.table([]string{
		"", "nats/word, paper", "ours", "GFlowNet's bound", "F1, paper", "ours, as released", "ours", "ours, Viterbi", "ours, MBR", "labels",
		"M-steps", "of iterations",
	},
		"nats/word: exact −log p(x), by words and sentence ends; the paper's for the Non-CFG is its GFlowNet's estimate",
		"bound: −E[log p(x,z) + log P_B − log P_F], without moves",
		"F1: mean of sentences, of one sample of the GFlowNet, or else of the exact posterior; for MC-EM the paper scores "+
			"where chains end",
		"as released: by the metric of the released code, which loses a span at random; the other columns have the usual one",
		"Viterbi: of most probable derivations; MBR: of trees with the greatest expected number of right spans; both by exact inference",
		"labels: exp of the entropy of nonterminals in most probable derivations; a grammar that has collapsed uses few")
	for _, row := range r.Rows {
		t.Add(report.Text(row.title), row.nll, row.cell(3, (*Result).nll), row.cell(3, (*Result).bound), row.f1,
			row.cell(2, func(o *Result) float64 { return o.sampled().Released }),
			row.cell(2, func(o *Result) float64 { return o.sampled().Sentence }),
			row.cell(2, func(o *Result) float64 { return o.scoreOf(string(parse.Viterbi)).Sentence }),
			row.cell(2, func(o *Result) float64 { return o.scoreOf(string(parse.MBR)).Sentence }),
			row.cell(1, func(o *Result) float64 { return o.shown().LabelPerplexity }),
			row.mean(0, func(o *Result) float64 { return o.ofGFN(o.Updates) }),
			row.mean(0, func(o *Result) float64 { return o.ofGFN(o.Iterations) }))
	}
	r.addTrivial(t)
	return t
}

// addTrivial adds what the sentences' own distribution and trees that know nothing of words reach.
func (r *reproduced) addTrivial(t *report.Table) {
	all := rowResult{}
	for _, row := range r.Rows {
		all.Runs = append(all.Runs, row.Runs...)
	}
	var none report.Cell
	first := all.Runs[0].shown()
	if first.TrueNLL != nil {
		t.Add(report.Text("the sentences' distribution"), none, report.Number(*first.TrueNLL, 3))
	}
	for _, f := range first.F1 {
		if !slices.Contains(parse.Decodes(), f.Trees) {
			t.Add(report.Text(f.Trees), none, none, none, none,
				all.mean(2, func(o *Result) float64 { return o.scoreOf(f.Trees).Released }),
				all.mean(2, func(o *Result) float64 { return o.scoreOf(f.Trees).Sentence }))
		}
	}
}
