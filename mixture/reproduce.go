package mixture

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

var _ run.Reproducer = Task{}

// The numbers of runs of the table.
const (
	classicalRuns = 200
	gfnRuns       = 40
)

// figuresKey asks for the paper's Figures 2 and 3 beside the rows.
const figuresKey = "figures"

// tableRow is a method of the table. One of its two ways to fit is set.
type tableRow struct {
	key, title string
	paper      report.Cell // as published
	classical  Method
	config     func() Config
}

// tableRows are the paper's rows, then what explains them.
func tableRows() []tableRow {
	none := math.Inf(-1)
	return []tableRow{
		{key: "truth", title: "true means", paper: report.MeanStd(-5.62, 0.01, 2), classical: atTruth{}},
		{key: "exact", title: "exact EM", paper: report.MeanStd(-5.79, 0.74, 2), classical: ExactEM{}},
		{key: "meanfield", title: "mean-field EM", paper: report.MeanStd(-7.26, 1.12, 2), classical: MeanField{}},
		{key: "gfn-paper", title: "GFlowNet-EM, released settings", config: PaperConfig,
			paper: report.MeanStd(-5.77, 0.48, 2)},
		{key: "gfn-recommended", title: "GFlowNet-EM, exploration 0.1, rate 3e-3", config: RecommendedConfig},
		{key: "gfn-best", title: "GFlowNet-EM, preset best", config: BestConfig},
		{key: "gfn-quick", title: "GFlowNet-EM, preset quick", config: QuickConfig},
		{key: "perfect", title: "perfect sampler", classical: PerfectSampler{}},
		{key: "perfect-unclipped", title: "perfect sampler, reward not clipped", classical: PerfectSampler{Clip: none}},
		{key: "perfect-closed", title: "perfect sampler, closed-form M-step", classical: PerfectSampler{ClosedForm: true}},
	}
}

// Tables implements run.Reproducer.
func (t Task) Tables() map[string][]string {
	var keys []string
	for _, r := range tableRows() {
		keys = append(keys, r.key)
	}
	return map[string][]string{t.Name(): append(keys, figuresKey)}
}

// reproduced is the table.
type reproduced struct {
	Seed    uint64             `json:"seed"`
	Rows    map[string]Summary `json:"rows"`
	Figure2 *agreement         `json:"figure2,omitempty"`
	table   *report.Table
}

// Reproduce implements run.Reproducer.
func (t Task) Reproduce(ctx context.Context, s run.Study) (run.Result, error) {
	s.Runs = cmp.Or(s.Runs, gfnRuns)
	e := Experiment{Runs: classicalRuns, Seed: s.Seed}
	out := &reproduced{Seed: s.Seed, Rows: map[string]Summary{}}
	out.table = &report.Table{
		Title:   "Hierarchical mixture, mean log-likelihood per point",
		Columns: report.Columns("method", "paper", "ours, as published", "ours, true scale", "median", "at the optimum"),
		Notes: []string{
			fmt.Sprintf("as published: shifted by %s, see docs/results.md; median on the true scale",
				report.Number(Problem{}.PublishedOffset(), 4).String()),
			fmt.Sprintf("at the optimum: within %g of the true means, with a 95 %% interval", Tolerance),
		},
	}
	strip := report.Strip{Axes: report.Axes{X: report.Axis{Label: "log p(x) per point, true scale"}}}
	for _, row := range tableRows() {
		if !s.Asks(row.key) {
			continue
		}
		runs, err := t.runs(ctx, s, e, row)
		if err != nil {
			return nil, err
		}
		j := e.Summarise(runs)
		out.Rows[row.key] = j
		reached := j.Success.Cell()
		if row.key == "truth" {
			reached = report.Cell{}
		}
		out.table.Add(report.Text(row.title), row.paper, report.MeanStd(j.Published, j.Std, 2), j.Cell(2),
			report.Number(j.Median, 3), reached)
		strip.Groups = append(strip.Groups, report.Group{Name: row.title, Values: j.Runs})
	}
	return out, t.reproducePage(ctx, s, e, out, strip)
}

// runs makes those of a row.
func (t Task) runs(ctx context.Context, s run.Study, e Experiment, row tableRow) ([]Run, error) {
	if row.config == nil {
		return e.Fit(row.classical), context.Cause(ctx)
	}
	var configs []any
	for k := range s.Runs {
		c := row.config()
		c.Seed, c.Run = s.Seed, k
		configs = append(configs, &c)
	}
	results, err := run.Repeat[result](ctx, s, row.key, row.title, configs)
	var out []Run
	for _, r := range results {
		out = append(out, Run{Fit: Fit{LogLikelihood: r.LogLik.GFN}, True: r.LogLik.Truth, Success: r.Success})
	}
	return out, err
}

// Print implements run.Result.
func (r *reproduced) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, r.table)
	if err == nil && r.Figure2 != nil {
		_, err = fmt.Fprintf(w, "Figure 2: the most probable pair agrees with the exact posterior's on %.1f %% of the points for the "+
			"factorised posterior, on %.1f %% for the GFlowNet.\n", 100*r.Figure2.Factorised, 100*r.Figure2.GFN)
	}
	return err
}

// reproducePage writes report.html with the table, the distributions and the paper's figures.
func (t Task) reproducePage(ctx context.Context, s run.Study, e Experiment, out *reproduced, strip report.Strip) error {
	page := &report.Page{
		Title: "Hierarchical mixture: the paper's table",
		Lead:  "Exact, mean-field and GFlowNet-EM over many data sets and starts, beside the figures of Hu et al. (ICML 2023).",
	}
	page.Section("Table").Table(out.table)
	var figures []report.Named
	if len(strip.Groups) > 0 {
		figures = append(figures, report.Named{Name: "distributions", Figure: report.NewFigure(strip),
			Caption: "All runs, by method. A run either reaches the optimum or a bad local one."})
	}
	if s.Asks(figuresKey) {
		second, agree, err := figure2(ctx, s)
		if err != nil {
			return err
		}
		out.Figure2 = agree
		third, err := figure3(ctx, s, e)
		if err != nil {
			return err
		}
		figures = append(figures, second, third)
	}
	return s.Publish(func(dir string) error {
		if err := page.Section("Figures").Figures(dir, figures...); err != nil {
			return err
		}
		return page.WriteFile(filepath.Join(dir, "report.html"))
	})
}
