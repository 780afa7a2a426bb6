package catalog

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/report"
)

const (
	bandPoints = 160 // of a curve that is averaged
	mostCurves = 6   // on a page, unless some are asked for
)

// Page shows a comparison: the table, curves of metrics over all settings with bands over seeds, every figure, the
// runs, and what they have in common. Metrics choose the curves; nil means the first ones, what was measured before
// losses.
func (c *Comparison) Page(metrics []string) (*report.Page, error) {
	page := &report.Page{Title: c.title(), Lead: c.lead()}
	page.Section("Result").Table(c.Table())
	if err := c.addCurves(page, metrics); err != nil {
		return nil, err
	}
	page.Section("All figures").Table(c.figureTable())
	page.Section("Runs").Table(Table(append(slices.Clone(c.Runs), c.Broken...)))
	page.Section("In common").Pre(c.common())
	return page, nil
}

func (c *Comparison) title() string {
	tasks := map[string]bool{}
	for _, r := range c.Runs {
		tasks[r.Task] = true
	}
	return fmt.Sprintf("%s · %s, %s", strings.Join(sortedKeys(tasks), ", "), report.Count(len(c.Runs), "run"),
		report.Count(len(c.Groups), "setting"))
}

func (c *Comparison) lead() string {
	if len(c.Keys) == 0 {
		return "Runs that differ in nothing but their seeds."
	}
	return "Settings differ in " + strings.Join(c.Keys, ", ") + ". Seeds are averaged."
}

// addCurves adds the curves of metrics.
func (c *Comparison) addCurves(page *report.Page, metrics []string) error {
	known := map[string]bool{}
	for _, r := range c.Runs {
		names, err := r.Metrics()
		if err != nil {
			return err
		}
		for _, name := range names {
			known[name] = true
		}
	}
	all := sortedKeys(known)
	for _, name := range metrics {
		if !known[name] {
			return unknown("metric", name, all)
		}
	}
	section := page.Section("Curves")
	var left []string
	if metrics == nil {
		slices.SortStableFunc(all, func(a, b string) int { return importance(a) - importance(b) })
		metrics = all[:min(len(all), mostCurves)]
		left = all[len(metrics):]
	}
	read := make([]map[string]Series, len(c.Runs))
	for i, r := range c.Runs {
		var err error
		if read[i], err = r.Series(metrics...); err != nil {
			return err
		}
	}
	for _, name := range metrics {
		if f, ok := c.curve(name, read); ok {
			section.Figure(f, fmt.Sprintf("%s: the mean over the runs of each setting and, as a band, their standard deviation.", name))
		}
	}
	if left != nil {
		section.Paragraph("Not shown: " + strings.Join(left, ", ") + ".")
	}
	return nil
}

// importance puts what was measured before losses, and those before norms and counters.
func importance(metric string) int {
	for i, part := range []string{"eval/", "valid", "test", "loglik", "loss", "f1", "nll"} {
		if strings.Contains(metric, part) {
			return i
		}
	}
	return math.MaxInt32
}

// curve overlays a metric of all settings, given all metrics of all runs; false if none has it.
func (c *Comparison) curve(metric string, read []map[string]Series) (report.Figure, bool) {
	lines := report.Lines{Axes: report.Axes{X: report.Axis{Label: "step"}, Y: report.Axis{Label: metric}}}
	least, most := math.Inf(1), math.Inf(-1)
	at := map[string]Series{}
	for i, r := range c.Runs {
		at[r.Dir] = read[i][metric]
	}
	for _, g := range c.Groups {
		var series []Series
		for _, r := range g.Runs {
			s := at[r.Dir]
			if len(s.X) > bandPoints { // or single points would stand for all around them
				s = s.Smooth(float64(len(s.X)) / bandPoints)
			}
			series = append(series, s)
		}
		b := BandOf(series, bandPoints)
		s := report.Series{Name: g.Label(c.Keys), X: b.X, Y: b.Mean}
		for i, m := range b.Mean {
			spread := b.Std[i] // of one run NaN: no band
			s.Low, s.High = append(s.Low, m-spread), append(s.High, m+spread)
			least, most = min(least, m), max(most, m)
		}
		lines.Series = append(lines.Series, s)
	}
	if least > most {
		return report.Figure{}, false
	}
	if lines.Y.Log = least > 0 && most >= 100*least; lines.Y.Log { // a band below zero ends at the bottom
		for _, s := range lines.Series {
			for i := range s.Low {
				s.Low[i] = max(s.Low[i], least/2)
			}
		}
	}
	return report.NewFigure(lines), true
}

// figureTable has a row for each figure and a column for each setting.
func (c *Comparison) figureTable() *report.Table {
	names := []string{"figure"}
	for _, g := range c.Groups {
		names = append(names, g.Label(c.Keys))
	}
	t := &report.Table{Columns: report.Columns(names...)}
	for _, name := range c.AllFigures() {
		row := []report.Cell{report.Text(name)}
		for _, g := range c.Groups {
			s := g.Stat(name)
			row = append(row, report.MeanSpread(s.Mean, s.Std))
		}
		t.Add(row...)
	}
	return t
}

// common lists the keys that have one value in all runs that have them.
func (c *Comparison) common() string {
	var b strings.Builder
	for _, key := range c.keys() {
		values := map[string]bool{}
		for _, r := range c.Runs {
			if v, ok := r.Value(key); ok {
				values[v] = true
			}
		}
		if len(values) == 1 {
			fmt.Fprintf(&b, "%s = %s\n", key, sortedKeys(values)[0])
		}
	}
	return b.String()
}

// Table lists runs.
func Table(runs []Run) *report.Table {
	t := &report.Table{Columns: report.Columns("run", "task", "method", "data", "seed", "status", "step", "figure", "value", "trained for", "saved")}
	for _, r := range runs {
		if r.Status == Broken {
			t.Add(report.Text(r.Dir), report.Cell{}, report.Cell{}, report.Cell{}, report.Cell{}, report.Text(string(r.Status)))
			t.Notes = append(t.Notes, r.Dir+": "+r.Wrong)
			continue
		}
		step := fmt.Sprint(r.Step)
		if r.Total != r.Step && r.Total > 0 {
			step = fmt.Sprintf("%d of %d", r.Step, r.Total)
		}
		name, figure := report.Cell{}, report.Cell{}
		if h := r.Headline; h != nil {
			name, figure = report.Text(h.Name), report.Figures(h.Value)
		}
		t.Add(report.Text(r.Dir), text(r.Task), text(r.how()), text(r.Data), report.Int(int(r.Seed)), report.Text(string(r.Status)),
			report.Text(step), name, figure, text(report.Duration(r.Took)), text(r.Updated.Local().Format("2006-01-02 15:04")))
		if r.Wrong != "" {
			t.Notes = append(t.Notes, r.Dir+": "+r.Wrong)
		}
	}
	t.DropMissing()
	return t
}

// how is the method of a run, or the preset that it began with.
func (r Run) how() string {
	if r.Method != "" || r.Preset == "" {
		return r.Method
	}
	return r.Preset
}

// text is a cell, missing if it is empty.
func text(s string) report.Cell {
	if s == "" {
		return report.Cell{}
	}
	return report.Text(s)
}
