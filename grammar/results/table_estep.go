package results

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/report"
)

// estepTable is the ablation of the E-step, the grammar being given. The paper's grammar has an exact 5.65 nats per
// word.
func estepTable() paperTable {
	objectiveAlone := func(c *induce.Config) { c.Moves.Balance, c.Moves.ECount = 0, 0 }
	row := func(key, title string, bound, std float64, with ...string) tableRow {
		return tableRow{
			key: key, title: title, bound: bound, nll: paper(bound, std), unless: objectiveAlone,
			with: append(config.Set{"method=gfn"}, with...),
		}
	}
	onPolicy := func(with ...string) []string { return append(with, "sleep.weight=0", "wake.beta=1", "wake.epsilon=0") }
	return paperTable{
		name: "grammar-estep", title: "E-step of GFlowNet-EM, the grammar being given", preset: "small",
		show: compareEStep,
		figures: []tableFigure{
			{"bound", "nats per word above the exact value", "How far the variational bound is above the exact −log p(x), all runs.",
				(*Result).gap},
			{"variation", "total variation", "Total variation between where trajectories end and the exact posterior, mean of " +
				"sentences, all runs.", (*Result).variation},
		},
		check: needsFixed("grammar-estep"),
		rows: []tableRow{
			row("subtb-sleep", "SubTB, exploration, sleep", 5.97, 0.01, "wake.objective=subtb"),
			row("subtb", "SubTB, exploration", 8.56, 1.74, "wake.objective=subtb", "sleep.weight=0"),
			row("tb", "TB, exploration", 8.95, 1.36, "wake.objective=tb", "sleep.weight=0"),
			row("tb-on-policy", "TB", 9.40, 1.44, onPolicy("wake.objective=tb")...),
			row("hvi", "HVI", 13.14, 1.55, onPolicy("wake.objective=hvi")...),
			row("sleep", "sleep", 6.03, 0.01, "wake.objective=none", "moves.balance=0"),
		},
	}
}

// needsFixed refuses configurations of a table whose grammar is learned.
func needsFixed(table string) func(c induce.Config) error {
	return func(c induce.Config) error {
		if c.Fixed == "" {
			return badinput.Errorf("the table %s needs a grammar that stays as it is: --set fixed=RUN, a grammar file, or --preset small", table)
		}
		return nil
	}
}

// gap is the distance of the bound from the exact value; of listed trees, or else as drawn.
func (r *Result) gap() float64 {
	if l := r.shown().Listed; l != nil {
		return l.Bound - l.NLL
	}
	return r.bound() - r.nll()
}

func (r *Result) variation() float64 {
	if l := r.shown().Listed; l != nil {
		return l.TotalVariation
	}
	return math.NaN()
}

// compareEStep shows how near each objective comes to the posterior.
func compareEStep(r *reproduced) *report.Table {
	t := r.table([]string{"", "bound, paper", "bound", "exact", "bound less exact", "total variation"},
		"bound: −E[log p(x,z) + log P_B − log P_F] in nats per word and sentence end; the exact value of the paper's grammar "+
			"is 5.65",
		"total variation: between where trajectories end and the exact posterior, all trees and all orders listed, mean of "+
			"sentences",
		"smallest bound first, paper: "+order(r.Rows, func(row rowResult) float64 { return row.bound }),
		"smallest bound first, ours: "+order(r.Rows, func(row rowResult) float64 {
			return report.Summarize(row.each((*Result).gap)).Mean
		}))
	for _, row := range r.Rows {
		t.Add(report.Text(row.title), row.nll, row.cell(4, func(o *Result) float64 { return o.nll() + o.gap() }),
			report.Number(row.Runs[0].nll(), 4), // the grammar and the sentences are the same
			row.cell(4, (*Result).gap), row.cell(4, (*Result).variation))
	}
	return t
}

// order lists rows by a number of theirs.
func order(rows []rowResult, by func(rowResult) float64) string {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b rowResult) int { return cmp.Compare(by(a), by(b)) })
	var names []string
	for _, row := range sorted {
		names = append(names, row.Key)
	}
	return strings.Join(names, ", ")
}
