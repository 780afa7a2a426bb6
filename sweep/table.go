package sweep

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/suggest"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/catalog"
)

// Table is what a sweep has found: the mean and the standard deviation over seeds of every row.
type Table struct {
	Task    string   `json:"task"`
	Axes    []string `json:"axes"`
	Seeds   []uint64 `json:"seeds"`
	Metrics []string `json:"metrics"`
	Rows    []Line   `json:"rows"`
	Notes   []string `json:"notes"`
}

// Line is a row of a Table.
type Line struct {
	Row     string            `json:"row"`
	Values  []string          `json:"values"`  // of each axis
	Trained float64           `json:"trained"` // the part of its steps
	Runs    map[string]Spread `json:"metrics"`
	results []json.RawMessage // by seed; nil for a cell that failed
}

// Spread is a metric of a row.
type Spread struct {
	Mean value   `json:"mean"`
	Std  value   `json:"std"`
	Runs []value `json:"runs"` // by seed, without cells that failed
}

// tabulate computes what is shown of the results.
func (p *Plan) tabulate(lines []Line, computed []string) (*Table, error) {
	t := &Table{Task: p.Task.Name(), Axes: p.Axes, Seeds: p.Seeds, Metrics: p.Metrics, Rows: lines}
	all := make(map[string]bool)
	missing := 0
	for i := range lines {
		l := &lines[i]
		runs := make(map[string][]float64)
		for _, result := range l.results {
			if result == nil {
				missing++
				continue
			}
			numbers, err := numbersOf(result)
			if err != nil {
				return nil, fmt.Errorf("result of %s: %w", l.Row, err)
			}
			for name, x := range numbers {
				runs[name] = append(runs[name], x)
				all[name] = true
			}
		}
		l.Runs = make(map[string]Spread)
		for name, sample := range runs {
			s := report.Summarize(sample)
			spread := Spread{Mean: value(s.Mean), Std: value(s.Std)}
			for _, x := range sample {
				spread.Runs = append(spread.Runs, value(x))
			}
			l.Runs[name] = spread
		}
	}
	if t.Metrics == nil {
		t.Metrics = slices.Sorted(maps.Keys(all))
	}
	for _, name := range t.Metrics {
		if !all[name] && len(all) > 0 {
			return nil, unknownMetric(p.metricsAt, "table.metrics", name, all)
		}
	}
	for i := range lines {
		maps.DeleteFunc(lines[i].Runs, func(name string, _ Spread) bool { return !slices.Contains(t.Metrics, name) })
	}
	t.Notes = []string{fmt.Sprintf("mean ± standard deviation over %d seeds", len(p.Seeds))}
	if missing > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d cells failed, and are left out", missing))
	}
	if p.Halving != nil {
		t.Notes = append(t.Notes, "trained: the part of its steps after which a setting was given up; 1 is the end")
	}
	if len(computed) > 0 {
		t.Notes = append(t.Notes, "cells were computed by "+strings.Join(computed, "; by ")+
			": another device may give other last digits")
	}
	return t, nil
}

func unknownMetric(where, key, name string, all map[string]bool) error {
	known := slices.Sorted(maps.Keys(all))
	if near, ok := suggest.Nearest(name, known); ok {
		return badinput.Errorf("%s: key %q: results have no %q; did you mean %q?", where, key, name, near)
	}
	return badinput.Errorf("%s: key %q: results have no %q, but %s", where, key, name, strings.Join(known, ", "))
}

// numbersOf returns the numbers of a result by name, without those that number the run.
func numbersOf(result json.RawMessage) (map[string]float64, error) {
	out, err := catalog.Numbers(result)
	for _, name := range catalog.Repeats {
		delete(out, name)
	}
	return out, err
}

// value is a float64 that JSON can hold even if it is not finite.
type value float64

// MarshalJSON implements json.Marshaler.
func (n value) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return json.Marshal(strconv.FormatFloat(x, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// shown is the table for people.
func (t *Table) shown() *report.Table {
	columns := slices.Clone(t.Axes)
	halved := slices.ContainsFunc(t.Rows, func(l Line) bool { return l.Trained < 1 })
	if len(columns) == 0 {
		columns = []string{"row"}
	}
	if halved {
		columns = append(columns, "trained")
	}
	out := &report.Table{Title: "Sweep of " + t.Task, Columns: report.Columns(append(columns, t.Metrics...)...), Notes: t.Notes}
	for _, l := range t.Rows {
		var cells []report.Cell
		for _, v := range l.Values {
			cells = append(cells, report.Text(v))
		}
		if len(t.Axes) == 0 {
			cells = append(cells, report.Text(l.Row))
		}
		if halved {
			cells = append(cells, report.Number(l.Trained, 3))
		}
		for _, name := range t.Metrics {
			if s, ok := l.Runs[name]; ok && len(s.Runs) > 1 {
				cells = append(cells, report.MeanStd(float64(s.Mean), float64(s.Std), 4))
			} else if ok {
				cells = append(cells, report.Number(float64(s.Mean), 4))
			} else {
				cells = append(cells, report.Cell{})
			}
		}
		out.Add(cells...)
	}
	return out
}

var _ run.Result = (*Table)(nil)

// Print implements run.Result.
func (t *Table) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, t.shown())
	return err
}

// publish writes the table to the grid's folder: report.html, table.json, and the sweep's file.
func (p *Plan) publish(g run.Grid, t *Table) error {
	text, err := disk.ReadFile(p.File)
	if err != nil {
		return err
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return err
	}
	page, err := p.page(g, t)
	if err != nil {
		return err
	}
	page.Section("What was asked for").Pre(string(text))
	return g.Publish(func(dir string) error {
		return cmp.Or(disk.WriteFile(filepath.Join(dir, "table.json"), disk.Content(data.Bytes())),
			disk.WriteFile(filepath.Join(dir, "sweep.toml"), disk.Content(text)), page.WriteFile(filepath.Join(dir, "report.html")))
	})
}

// page shows the table, and curves of all settings.
func (p *Plan) page(g run.Grid, t *Table) (*report.Page, error) {
	page := &report.Page{}
	var runs []catalog.Run
	for _, c := range p.Cells() {
		if r := catalog.Open(filepath.Join(g.Dir, c.Path())); r.Status != catalog.Broken {
			runs = append(runs, r)
		}
	}
	if len(runs) > 0 {
		c, err := catalog.Compare(runs, catalog.Options{By: append([]string{}, p.Axes...), Figures: t.Metrics})
		if err == nil {
			page, err = c.Page(nil)
		}
		if err != nil {
			return nil, err
		}
	}
	page.Title = "Sweep of " + t.Task
	page.Lead = fmt.Sprintf("%d settings, each with %d seeds: %d trainings.", len(p.Rows), len(p.Seeds), len(p.Rows)*len(p.Seeds))
	if slices.ContainsFunc(t.Rows, func(l Line) bool { return l.Trained < 1 }) || len(t.Notes) > 1 {
		page.Section("Settings").Table(t.shown())
	}
	return page, nil
}
