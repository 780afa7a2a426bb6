package vae

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

// tableRuns is the number of runs of each row, as published.
const tableRuns = 5

// tableRow is one method with one number of codes.
type tableRow struct {
	key, title string
	paper      report.Cell // as published, mean and deviation of five runs
	config     Config
	quick      bool // no row of the paper's: made only if it is asked for
}

// targets are the published test figures, by method and K.
var targets = map[string]map[int][2]float64{
	MethodVQ:    {4: {86.36, 0.14}, 8: {80.84, 0.39}, 10: {82.96, 0.38}},
	MethodGFN:   {4: {74.18, 0.41}, 8: {70.74, 0.99}, 10: {70.67, 0.72}},
	MethodGD:    {4: {76.22, 0.58}, 8: {72.03, 0.98}, 10: {72.69, 1.56}},
	MethodPrior: {4: {78.59, 1.48}, 8: {70.84, 1.06}, 10: {71.69, 1.90}},
}

// tableRows are the paper's, then those of preset quick, which two cores can make.
func tableRows() (rows []tableRow) {
	for _, method := range Methods() {
		for _, k := range []int{4, 8, 10} {
			c := PaperConfig()
			c.Method, c.Model.Codes = method, k
			target := targets[method][k]
			rows = append(rows, tableRow{
				key: fmt.Sprintf("%s-%d", method, k), title: fmt.Sprintf("%s, K = %d", titles[method], k),
				paper: report.MeanStd(target[0], target[1], 2), config: c,
			})
		}
	}
	for _, method := range Methods() {
		c := QuickConfig()
		c.Method = method
		title := fmt.Sprintf("%s, K = %d, preset quick", titles[method], c.Model.Codes)
		rows = append(rows, tableRow{key: "quick-" + method, title: title, config: c, quick: true})
	}
	return rows
}

// Tables implements run.Reproducer.
func (t Task) Tables() map[string][]string {
	var keys []string
	for _, r := range tableRows() {
		keys = append(keys, r.key)
	}
	return map[string][]string{t.Name(): keys}
}

// reproduced is the table.
type reproduced struct {
	Seed  uint64             `json:"seed"`
	Rows  map[string]rowJSON `json:"rows"`
	table *report.Table
}

// rowJSON is a row of the table: means over runs, and the runs.
type rowJSON struct {
	Published float64   `json:"nll_published"` // as the paper computes it
	NLL       float64   `json:"nll"`           // by the same estimator for all rows
	Runs      []*Result `json:"runs"`
}

// Reproduce implements run.Reproducer.
func (Task) Reproduce(ctx context.Context, s run.Study) (run.Result, error) {
	return reproduce(ctx, s, tableRows())
}

func reproduce(ctx context.Context, s run.Study, rows []tableRow) (run.Result, error) {
	s.Runs = cmp.Or(s.Runs, tableRuns)
	out := &reproduced{Seed: s.Seed, Rows: map[string]rowJSON{}}
	out.table = &report.Table{
		Title:   "Discrete VAEs, −log p(x) of test images in nats",
		Columns: report.Columns("method", "decoder", "paper", "ours, as published", "ours, importance-weighted", "effective samples", "runs"),
		Notes: []string{
			"as published: a VQ-VAE's reconstruction + n log K, a bound; a GFlowNet's importance-weighted estimate",
			"importance-weighted: the same estimator for all; for a VQ-VAE it draws from a GFlowNet posterior fitted to its decoder",
		},
	}
	strip := report.Strip{Axes: report.Axes{X: report.Axis{Label: "−log p(x), importance-weighted"}}}
	for _, row := range rows {
		if !s.Asks(row.key) || s.Rows == nil && row.quick {
			continue
		}
		j, err := row.make(ctx, s)
		if err != nil {
			return nil, err
		}
		out.Rows[row.key] = j
		var published, nll, ess []float64
		for _, r := range j.Runs {
			published, nll, ess = append(published, *r.Published), append(nll, r.NLL.NLL), append(ess, r.NLL.ESS)
		}
		out.table.Add(report.Text(row.title), report.Text(row.config.decoder()), row.paper, report.Summarize(published).Cell(2), report.Summarize(nll).Cell(2),
			report.Number(report.Summarize(ess).Mean, 1), report.Int(len(j.Runs)))
		strip.Groups = append(strip.Groups, report.Group{Name: row.title, Values: nll})
	}
	return out, s.Publish(func(dir string) error { return out.page(dir, strip) })
}

// make makes the runs of a row.
func (row tableRow) make(ctx context.Context, s run.Study) (rowJSON, error) {
	var configs []any
	for k := range s.Runs {
		c := row.config
		c.Seed = (s.Seed + uint64(k)) & math.MaxInt64
		if err := c.Validate(); err != nil {
			return rowJSON{}, err
		}
		configs = append(configs, &c)
	}
	results, err := run.Repeat[*Result](ctx, s, row.key, row.title, configs)
	if err != nil {
		return rowJSON{}, err
	}
	j := rowJSON{Runs: results}
	for _, r := range results {
		if r.NLL == nil || r.Published == nil {
			return rowJSON{}, fmt.Errorf("result of %s: it has no likelihood", row.key)
		}
		j.Published += *r.Published / float64(len(results))
		j.NLL += r.NLL.NLL / float64(len(results))
	}
	return j, nil
}

// Print implements run.Result.
func (r *reproduced) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, r.table)
	return err
}

// page writes report.html with the table and all runs.
func (r *reproduced) page(dir string, strip report.Strip) error {
	page := &report.Page{
		Title: "Discrete VAEs: the paper's table",
		Lead:  "VQ-VAE and GFlowNet-EM with grids of codes, beside the figures of Hu et al. (ICML 2023).",
	}
	page.Section("Table").Table(r.table)
	if len(strip.Groups) > 0 {
		f := report.Named{Name: "distributions", Figure: report.NewFigure(strip)}
		f.Caption = "All runs, by method and number of codes."
		if err := page.Section("Runs").Figures(dir, f); err != nil {
			return err
		}
	}
	return page.WriteFile(filepath.Join(dir, "report.html"))
}
