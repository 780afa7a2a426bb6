package results

import (
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/report"
)

// paperTables are the tables of the paper on grammars: its numbers, on the sentences of at most 20 words of the Penn
// Treebank's validation section, five seeds.
func paperTables() []paperTable {
	return []paperTable{methodTable(), estepTable(), thresholdTable(), ablationTable()}
}

func published(mean, std float64) report.Cell { return report.MeanStd(mean, std, 2) }

// methodTable is the main table. Thresholds of the gate are those of the preset, which differ by row if it leaves them
// as published.
func methodTable() paperTable {
	cfg := func(method string) config.Set {
		return config.Set{"model.grammar=cfg", "prior.on=false", "method=" + method}
	}
	ncfg := func(method string) config.Set {
		return config.Set{"model.grammar=ncfg", "prior.on=false", "method=" + method}
	}
	prior := func(method string) config.Set {
		return config.Set{"model.grammar=cfg", "prior.on=true", "method=" + method}
	}
	return paperTable{
		name: "grammar", title: "Grammar induction", preset: "quick", seeds: 3, show: compare, figures: compareFigures,
		rows: []tableRow{
			{key: "marginal", title: "CFG, marginalisation", nll: published(5.61, 0.01), f1: published(39.51, 7.01), with: cfg(induce.Marginal)},
			{key: "exact", title: "CFG, exact-sampling EM", nll: published(5.74, 0.05), f1: published(31.17, 6.06), with: cfg(induce.Exact)},
			{key: "mcem", title: "CFG, MC-EM", nll: published(5.88, 0.01), f1: published(22.31, 1.04), with: cfg(induce.MCEM)},
			{key: "mcem-ebm", title: "CFG, MC-EM, prior on shapes", nll: published(5.91, 0.02), f1: published(23.81, 1.41), with: prior(induce.MCEM)},
			{key: "gfn", title: "CFG, GFlowNet-EM", nll: published(5.70, 0.03), f1: published(34.85, 3.39), with: cfg(induce.GFN)},
			{key: "gfn-ebm", title: "CFG, GFlowNet-EM, prior on shapes", nll: published(5.79, 0.03), f1: published(48.41, 1.38), with: prior(induce.GFN)},
			{key: "ncfg-mcem", title: "Non-CFG, MC-EM", f1: published(18.98, 0.26), with: ncfg(induce.MCEM)},
			{key: "ncfg-gfn", title: "Non-CFG, GFlowNet-EM", nll: report.Text("≤ 5.46 ± 0.07"), f1: published(38.68, 1.90), with: ncfg(induce.GFN)},
			{key: "ncfg-marginal", title: "Non-CFG, marginalisation", with: ncfg(induce.Marginal)},
		},
	}
}

// thresholdTable varies the loss below which the grammar is updated.
func thresholdTable() paperTable {
	row := func(key, title, from, to string, nll, f1 report.Cell) tableRow {
		return tableRow{key: key, title: title, nll: nll, f1: f1, with: config.Set{"method=gfn", "gate.threshold=" + from, "gate.threshold_end=" + to}}
	}
	return paperTable{
		name: "grammar-threshold", title: "Threshold of the gate, GFlowNet-EM", preset: "quick", seeds: 3, show: compare, figures: compareFigures,
		rows: []tableRow{
			row("12-6", "12 to 6", "12", "6", published(5.77, 0.02), published(32.12, 2.93)),
			row("8-4", "8 to 4", "8", "4", published(5.78, 0.02), published(32.23, 3.25)),
			row("6-3", "6 to 3", "6", "3", published(5.76, 0.02), published(34.49, 2.81)),
			row("4-2", "4 to 2", "4", "2", published(5.79, 0.02), published(30.56, 4.42)),
			row("none", "none, always open", "1e300", "1e300", report.Text("collapses"), report.Cell{}),
		},
	}
}

// ablationTable leaves parts of GFlowNet-EM out. Which flags the paper's rows had is not published; the names say what
// is left out here.
func ablationTable() paperTable {
	row := func(key, title string, nll, f1 report.Cell, with ...string) tableRow {
		return tableRow{key: key, title: title, nll: nll, f1: f1, with: append(config.Set{"method=gfn"}, with...)}
	}
	return paperTable{
		name: "grammar-ablation", title: "GFlowNet-EM without some of its parts", preset: "quick", seeds: 3, show: compare, figures: compareFigures,
		rows: []tableRow{
			row("full", "full", published(5.70, 0.03), published(34.85, 3.39)),
			row("no-mcmc", "without moves", published(6.02, 0.01), published(28.56, 0.55), "moves.count=0", "moves.e_count=0", "moves.balance=0"),
			row("no-sleep", "without sleep", published(5.91, 0.04), published(28.13, 0.43), "sleep.weight=0"),
			row("no-subtb", "trajectory balance instead of SubTB", published(5.84, 0.08), published(26.56, 7.82), "wake.objective=tb"),
			row("no-exploration", "without exploration", published(5.70, 0.02), published(31.87, 1.06), "wake.beta=1", "wake.epsilon=0"),
			row("sleep-only", "sleep only", published(6.08, 0.06), published(48.41, 1.38), "wake.objective=none", "moves.balance=0"),
		},
	}
}
