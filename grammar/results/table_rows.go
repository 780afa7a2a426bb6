package results

import (
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/report"
)

// paperTables are the tables of the paper on grammars: its numbers, on the sentences of at most 20 words of the Penn
// Treebank's validation section, five seeds.
func paperTables() []paperTable {
	return []paperTable{methodTable(), estepTable(), thresholdTable(), ablationTable(), shapesTable(), objectivesTable()}
}

func paper(mean, std float64) report.Cell { return report.MeanStd(mean, std, 2) }

// trainings is a table whose rows learn grammars.
func trainings(name, title string, rows ...tableRow) paperTable {
	return paperTable{name: name, title: title, preset: "quick", show: compare, figures: compareFigures, rows: rows}
}

// published is one whose rows are what the paper's are, whatever the preset.
func published(name, title string, rows ...tableRow) paperTable {
	t := trainings(name, title, rows...)
	t.unless = asPublished
	return t
}

// methodTable is the main table. Thresholds of the gate are those of the preset, which differ by row if it leaves them
// as published.
func methodTable() paperTable {
	row := func(key, kind, prior, method, title string, nll, f1 report.Cell) tableRow {
		with := config.Set{"model.grammar=" + kind, "prior.on=" + prior, "method=" + method}
		return tableRow{key: key, title: title, nll: nll, f1: f1, with: with}
	}
	var none report.Cell
	return trainings("grammar", "Grammar induction",
		row("marginal", "cfg", "false", induce.Marginal, "CFG, marginalisation", paper(5.61, 0.01), paper(39.51, 7.01)),
		row("exact", "cfg", "false", induce.Exact, "CFG, exact-sampling EM", paper(5.74, 0.05), paper(31.17, 6.06)),
		row("mcem", "cfg", "false", induce.MCEM, "CFG, MC-EM", paper(5.88, 0.01), paper(22.31, 1.04)),
		row("mcem-ebm", "cfg", "true", induce.MCEM, "CFG, MC-EM, prior on shapes", paper(5.91, 0.02), paper(23.81, 1.41)),
		row("gfn", "cfg", "false", induce.GFN, "CFG, GFlowNet-EM", paper(5.70, 0.03), paper(34.85, 3.39)),
		row("gfn-ebm", "cfg", "true", induce.GFN, "CFG, GFlowNet-EM, prior on shapes",
			paper(5.79, 0.03), paper(48.41, 1.38)),
		row("ncfg-mcem", "ncfg", "false", induce.MCEM, "Non-CFG, MC-EM", none, paper(18.98, 0.26)),
		row("ncfg-gfn", "ncfg", "false", induce.GFN, "Non-CFG, GFlowNet-EM",
			report.Text("≤ 5.46 ± 0.07"), paper(38.68, 1.90)),
		row("ncfg-marginal", "ncfg", "false", induce.Marginal, "Non-CFG, marginalisation", none, none),
		row("ncfg-exact", "ncfg", "false", induce.Exact, "Non-CFG, exact-sampling EM", none, none),
	)
}

// thresholdTable varies the loss below which the grammar is updated.
func thresholdTable() paperTable {
	row := func(key, title, from, to string, nll, f1 report.Cell) tableRow {
		with := config.Set{"method=gfn", "gate.threshold=" + from, "gate.threshold_end=" + to}
		return tableRow{key: key, title: title, nll: nll, f1: f1, with: with}
	}
	return published("grammar-threshold", "Threshold of the gate, GFlowNet-EM",
		row("12-6", "12 to 6", "12", "6", paper(5.77, 0.02), paper(32.12, 2.93)),
		row("8-4", "8 to 4", "8", "4", paper(5.78, 0.02), paper(32.23, 3.25)),
		row("6-3", "6 to 3", "6", "3", paper(5.76, 0.02), paper(34.49, 2.81)),
		row("4-2", "4 to 2", "4", "2", paper(5.79, 0.02), paper(30.56, 4.42)),
		row("none", "none, always open", "1e300", "1e300", report.Text("collapses"), report.Cell{}),
	)
}

// ablationTable leaves parts of GFlowNet-EM out. Which flags the paper's rows had is not published; the names say what
// is left out here.
func ablationTable() paperTable {
	row := func(key, title string, nll, f1 report.Cell, with ...string) tableRow {
		return tableRow{key: key, title: title, nll: nll, f1: f1, with: append(config.Set{"method=gfn"}, with...)}
	}
	return published("grammar-ablation", "GFlowNet-EM without some of its parts",
		row("full", "full", paper(5.70, 0.03), paper(34.85, 3.39)),
		row("no-mcmc", "without moves", paper(6.02, 0.01), paper(28.56, 0.55),
			"moves.count=0", "moves.e_count=0", "moves.balance=0"),
		row("no-sleep", "without sleep", paper(5.91, 0.04), paper(28.13, 0.43), "sleep.weight=0"),
		row("no-subtb", "trajectory balance instead of SubTB", paper(5.84, 0.08), paper(26.56, 7.82), "wake.objective=tb"),
		row("no-exploration", "without exploration", paper(5.70, 0.02), paper(31.87, 1.06), "wake.beta=1", "wake.epsilon=0"),
		row("sleep-only", "sleep only", paper(6.08, 0.06), paper(48.41, 1.38), "wake.objective=none", "moves.balance=0"),
	)
}
