package task

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// Table compares settings: each row is trained with several seeds, and the table has the mean and the standard deviation of
// what Result measures.
type Table struct {
	Name, Title string
	Preset      string // that rows start from; "" means the default
	Rows        []Row
	Runs        int // of each row; 0 means 3
}

// Row is a setting of a Table.
type Row struct {
	Name, Title string   // Title is shown; "" means Name
	Set         []string // what is changed, as "key=value"
}

// Adjustable implements run.Adjustable.
func (t *Task[C]) Adjustable() {}

// Tables implements run.Reproducer.
func (t *Task[C]) Tables() map[string][]string {
	out := map[string][]string{}
	for _, table := range t.d.Tables {
		for _, r := range table.Rows {
			out[table.Name] = append(out[table.Name], r.Name)
		}
	}
	return out
}

// Reproduce implements run.Reproducer.
func (t *Task[C]) Reproduce(ctx context.Context, s run.Study) (run.Result, error) {
	table := t.d.Tables[slices.IndexFunc(t.d.Tables, func(x Table) bool { return x.Name == s.Table })]
	s.Preset = cmp.Or(s.Preset, table.Preset, t.Presets()[0])
	if s.Seeds == nil {
		s.Seeds = run.SeedsFrom(s.Seed, cmp.Or(s.Runs, table.Runs, 3))
	}
	out := &compared{Name: table.Name, Title: cmp.Or(table.Title, table.Name), Seeds: s.Seeds}
	var cells []run.Cell
	for _, row := range table.Rows {
		if !s.Asks(row.Name) {
			continue
		}
		out.Rows = append(out.Rows, comparedRow{Name: row.Name, Title: cmp.Or(row.Title, row.Name)})
		more, err := t.cells(s, row)
		if err != nil {
			return nil, err
		}
		cells = append(cells, more...)
	}
	results, err := s.Grid.Run(ctx, cells)
	if err != nil {
		return nil, err
	}
	for i, data := range results {
		var r Result
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("result of %s, run %d: %w", cells[i].Row, cells[i].Index, err)
		}
		row := &out.Rows[i/len(s.Seeds)]
		row.Runs = append(row.Runs, r.numbers())
	}
	return out, s.Publish(func(dir string) error {
		page := &report.Page{Title: out.Title, Lead: t.d.About}
		page.Section("Table").Table(out.table())
		page.Section("Rows").Table(table.settings(s))
		return page.WriteFile(filepath.Join(dir, "report.html"))
	})
}

// cells are the trainings of a row.
func (t *Task[C]) cells(s run.Study, row Row) (cells []run.Cell, err error) {
	for _, setting := range s.Set {
		if key := keyOf(setting); slices.ContainsFunc(row.Set, func(own string) bool { return keyOf(own) == key }) {
			return nil, badinput.Errorf("--set %s: the row %s has %s of its own", setting, row.Name, key)
		}
	}
	for _, seed := range s.Seeds {
		c := t.Config(s.Preset)
		layers := []config.Layer{s.Set, config.Set(row.Set)}
		if _, has := seedOf(c); has {
			layers = append(layers, config.Set{fmt.Sprintf("seed=%d", seed)})
		} else if len(s.Seeds) > 1 {
			return nil, badinput.Errorf("the task %s has no key seed, so that all runs of a row are the same: give --runs 1", t.Name())
		}
		if err := config.Resolve(c, layers...); err != nil {
			return nil, err
		}
		cells = append(cells, run.Cell{Row: row.Name, Index: int(seed), Config: c})
	}
	return cells, nil
}

// keyOf is the key of a setting.
func keyOf(setting string) string {
	key, _, _ := strings.Cut(setting, "=")
	return strings.TrimSpace(key)
}

// settings says what makes rows the rows they are.
func (t Table) settings(s run.Study) *report.Table {
	out := &report.Table{Columns: report.Columns("row", "settings")}
	for _, row := range t.Rows {
		if s.Asks(row.Name) {
			out.Add(report.Text(cmp.Or(row.Title, row.Name)), report.Text(cmp.Or(strings.Join(row.Set, ", "), "none")))
		}
	}
	return out
}

// compared is a table with its numbers.
type compared struct {
	Name  string        `json:"table"`
	Title string        `json:"title"`
	Seeds []uint64      `json:"seeds"`
	Rows  []comparedRow `json:"rows"`
}

type comparedRow struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Runs  []Values `json:"runs"` // by seed
}

// table shows the mean and the standard deviation over runs.
func (c *compared) table() *report.Table {
	names := map[string]bool{}
	for _, row := range c.Rows {
		for _, r := range row.Runs {
			for name := range r {
				names[name] = true
			}
		}
	}
	columns := slices.Sorted(maps.Keys(names))
	out := &report.Table{Title: c.Title, Columns: report.Columns(append([]string{"row"}, columns...)...)}
	for _, row := range c.Rows {
		line := []report.Cell{report.Text(row.Title)}
		for _, name := range columns {
			var sample []float64
			for _, r := range row.Runs {
				if v, ok := r[name]; ok {
					sample = append(sample, v)
				}
			}
			if len(sample) == 0 {
				line = append(line, report.Cell{})
			} else {
				line = append(line, report.Summarize(sample).Cell(4))
			}
		}
		out.Add(line...)
	}
	out.Notes = []string{fmt.Sprintf("mean ± standard deviation over %d runs of each row", len(c.Seeds))}
	return out
}

// Print implements run.Result.
func (c *compared) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, c.table())
	return err
}
