package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// reproduced is a table beside the paper's.
type reproduced struct {
	Table  string   `json:"table"`
	Preset string   `json:"preset"`
	Data   string   `json:"data"`
	Split  string   `json:"split"` // which the numbers shown are of
	Seeds  []uint64 `json:"seeds"`
	// Fewer is how many of these seeds rows have that train a GFlowNet; 0 means all.
	Fewer int           `json:"runs_of_gflownets,omitempty"`
	Shown *report.Table `json:"shown"`
	Rows  []rowResult   `json:"rows"`

	of paperTable
}

// rowResult is a row of it.
type rowResult struct {
	Key  string    `json:"row"`
	Runs []*Result `json:"runs"`
	// Milliseconds are those of an iteration with an M-step, where the table measures them.
	Milliseconds float64 `json:"milliseconds,omitempty"`
	tableRow
}

// newReproduced sorts the results of cells by row.
func newReproduced(t paperTable, s run.Study, cells []run.Cell, results []json.RawMessage) (*reproduced, error) {
	r := &reproduced{Table: t.name, Preset: s.Preset, Data: cells[0].Config.(*induce.Config).Data, Seeds: s.Seeds, of: t}
	at := map[string]int{}
	for i, row := range t.rows {
		at[row.key] = i
		r.Rows = append(r.Rows, rowResult{Key: row.key, tableRow: row})
	}
	for i, data := range results {
		one := &Result{}
		err := json.Unmarshal(data, one)
		if err == nil && len(one.Splits) == 0 {
			err = errors.New("it has no splits")
		}
		if err != nil {
			return nil, fmt.Errorf("result of %s, seed %d: %w", cells[i].Row, cells[i].Index, err)
		}
		row := &r.Rows[at[cells[i].Row]]
		row.Runs = append(row.Runs, one)
		if one.Method == induce.GFN && s.Runs > 0 && s.Runs < len(s.Seeds) {
			r.Fewer = s.Runs
		}
		r.Split = one.shown().Name
	}
	r.Shown = t.show(r)
	return r, nil
}

// each collects a number of every run; NaN where a run does not have it.
func (r rowResult) each(of func(*Result) float64) []float64 {
	var out []float64
	for _, one := range r.Runs {
		out = append(out, of(one))
	}
	return out
}

// cell is the mean and the standard deviation over runs.
func (r rowResult) cell(decimals int, of func(*Result) float64) report.Cell {
	return report.Summarize(r.each(of)).Cell(decimals)
}

// mean is the mean alone.
func (r rowResult) mean(decimals int, of func(*Result) float64) report.Cell {
	return report.Number(report.Summarize(r.each(of)).Mean, decimals)
}

// Print implements run.Result.
func (r *reproduced) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, r.Shown)
	return err
}

// table begins a table, whose first notes say what it is of.
func (r *reproduced) table(columns []string, notes ...string) *report.Table {
	about := []string{fmt.Sprintf("ours: preset %s, data %s, %s sentences; mean ± standard deviation over seeds %s",
		r.Preset, r.Data, r.Split, strings.Trim(fmt.Sprint(r.Seeds), "[]"))}
	if r.Fewer > 0 {
		about[0] += fmt.Sprintf("; rows that train a GFlowNet over the first %d of these", r.Fewer)
	}
	if !r.of.own {
		about = append(about, "paper: Penn Treebank, sentences of at most 20 words, mean ± standard deviation over five seeds")
	}
	return &report.Table{Title: r.of.title, Columns: report.Columns(columns...), Notes: append(about, notes...)}
}

// tableFigure is all runs of a table, by row, on one axis.
type tableFigure struct {
	name, label, caption string
	of                   func(*Result) float64
}

// page writes report.html.
func (r *reproduced) page(dir string) error {
	p := &report.Page{Title: r.of.title, Lead: "A table of Hu et al. (ICML 2023) beside ours."}
	if r.of.own {
		p.Lead = "What changes to GFlowNet-EM (Hu et al., ICML 2023) bring, beside EM by exact samples."
	}
	p.Section("Table").Table(r.Shown)
	var figures []report.Named
	for _, f := range r.of.figures {
		strip := report.Strip{Axes: report.Axes{X: report.Axis{Label: f.label}}}
		for _, row := range r.Rows {
			if values := row.each(f.of); !math.IsNaN(values[0]) {
				strip.Groups = append(strip.Groups, report.Group{Name: row.title, Values: values})
			}
		}
		if len(strip.Groups) > 0 {
			figures = append(figures, report.Named{Name: f.name, Caption: f.caption, Figure: report.NewFigure(strip)})
		}
	}
	if err := p.Section("Runs").Figures(dir, figures...); err != nil {
		return err
	}
	return p.WriteFile(filepath.Join(dir, "report.html"))
}
