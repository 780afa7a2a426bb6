package results

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/vae"
)

// column is one of a table.
type column struct {
	title string
	cell  func(r madeRow) report.Cell
}

// over is the mean and the standard deviation over runs.
func over(title string, decimals int, of func(*vae.Result) float64) column {
	return column{title, func(r madeRow) report.Cell { return report.Summarize(r.each(of)).Cell(decimals) }}
}

// each collects a number of every run.
func (r madeRow) each(of func(*vae.Result) float64) (out []float64) {
	for _, one := range r.Runs {
		out = append(out, of(one))
	}
	return out
}

func nll(r *vae.Result) float64 { return r.NLL.NLL }

var (
	paperColumn     = column{"paper", func(r madeRow) report.Cell { return r.row.paper }}
	publishedColumn = over("ours, as published", 2, func(r *vae.Result) float64 { return *r.Published })
	nllColumn       = over("importance-weighted", 2, nll)
	boundColumn     = over("bound", 2, func(r *vae.Result) float64 { return -r.NLL.ELBO })
	gapColumn       = over("bound less likelihood", 2, func(r *vae.Result) float64 { return -r.NLL.ELBO - r.NLL.NLL })
	essColumn       = column{"effective samples", func(r madeRow) report.Cell {
		return report.Number(report.Summarize(r.each(func(r *vae.Result) float64 { return r.NLL.ESS })).Mean, 1)
	}}
	parametersColumn = column{"parameters of p, q", func(r madeRow) report.Cell {
		p := r.Runs[0].Parameters
		return report.Text(fmt.Sprintf("%d, %d", p.Model, p.Posterior))
	}}
	timeColumn = column{"ms", func(r madeRow) report.Cell { return report.Number(r.Milliseconds, 1) }}
	runsColumn = column{"runs", func(r madeRow) report.Cell { return report.Int(len(r.Runs)) }}
)

// show fills in what is printed.
func (m *made) show(rows []madeRow) {
	names := []string{"method", "decoder"}
	for _, c := range m.of.columns {
		names = append(names, c.title)
	}
	m.shown = &report.Table{Title: m.of.title, Columns: report.Columns(names...), Notes: m.of.notes}
	m.strip = report.Strip{Axes: report.Axes{X: report.Axis{Label: "−log p(x), importance-weighted"}}}
	for _, r := range rows {
		cells := []report.Cell{report.Text(r.row.title), report.Text(r.Runs[0].Decoder)}
		for _, c := range m.of.columns {
			cells = append(cells, c.cell(r))
		}
		m.shown.Add(cells...)
		m.strip.Groups = append(m.strip.Groups, report.Group{Name: r.row.title, Values: r.each(nll)})
	}
}

// Print implements run.Result.
func (m *made) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, m.shown)
	return err
}

// page writes report.html with the table and all runs.
func (m *made) page(dir string) error {
	page := &report.Page{Title: m.of.title, Lead: m.of.lead}
	page.Section("Table").Table(m.shown)
	if len(m.strip.Groups) > 0 {
		f := report.Named{Name: "distributions", Figure: report.NewFigure(m.strip)}
		f.Caption = "All runs, by row."
		if err := page.Section("Runs").Figures(dir, f); err != nil {
			return err
		}
	}
	return page.WriteFile(filepath.Join(dir, "report.html"))
}
