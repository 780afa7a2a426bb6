package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// Halving is successive halving (Jamieson, Talwalkar, AISTATS 2016): all settings are trained for a part of their
// steps, then the best of them go on, for Factor times as many steps, and so on. A training that pauses goes on from
// its checkpoint.
type Halving struct {
	Metric string `json:"metric"`
	Better string `json:"better"` // high or low
	Factor int    `json:"factor"` // of settings, one goes on
	Rungs  int    `json:"rungs"`
}

// until is the part of their steps to which settings are trained at a rung; 0 is the end.
func (h Halving) until(rung int) float64 {
	if rung == h.Rungs-1 {
		return 0
	}
	return math.Pow(float64(h.Factor), float64(rung-h.Rungs+1))
}

// rungsName is the file of a sweep's folder that keeps what was measured at rungs that are over.
const rungsName = "rungs.json"

// rungs is that file.
type rungs struct {
	Format int       `json:"format"`
	Rule   Halving   `json:"rule"`
	Seeds  []uint64  `json:"seeds"`
	Rows   []string  `json:"rows"`
	Over   []measure `json:"over"`
	SHA256 string    `json:"sha256"`
}

// measure is the results of a rung, by row and seed, and which rows go on.
type measure struct {
	Results map[string][]json.RawMessage `json:"results"`
	Next    []string                     `json:"next"`
}

// Run makes the cells of a plan in a grid's folder and tabulates them. If some failed the table is of the others, and
// the error is Failures.
func (p *Plan) Run(ctx context.Context, g run.Grid) (*Table, error) {
	lines := make([]Line, len(p.Rows))
	var names []string
	for i, row := range p.Rows {
		lines[i] = Line{Row: row.Name, Values: row.Values, Trained: 1}
		names = append(names, row.Name)
	}
	var failures *Failures
	if p.Halving == nil {
		if err := p.train(ctx, g, lines, names, 0); err != nil && !errors.As(err, &failures) {
			return nil, err
		}
	} else if err := p.halve(ctx, g, lines, names); err != nil && !errors.As(err, &failures) {
		return nil, err
	}
	computed, err := p.devices(g)
	if err != nil {
		return nil, err
	}
	t, err := p.tabulate(lines, computed)
	if err != nil {
		return nil, err
	}
	if err := p.publish(g, t); err != nil {
		return nil, err
	}
	if failures != nil {
		return t, failures
	}
	return t, nil
}

// train makes the cells of some rows up to a part of their steps.
func (p *Plan) train(ctx context.Context, g run.Grid, lines []Line, rows []string, until float64) error {
	asked := setOf(rows)
	var cells []run.Cell
	for _, row := range p.Rows {
		if asked[row.Name] {
			for _, c := range row.Cells {
				c.Until = until
				cells = append(cells, c)
			}
		}
	}
	results, err := g.Run(ctx, cells)
	if err != nil && !errors.As(err, new(*Failures)) {
		return err
	}
	for i := range lines {
		if asked[lines[i].Row] {
			lines[i].results, results = results[:len(p.Seeds)], results[len(p.Seeds):]
			lines[i].Trained = cmp.Or(until, 1)
		}
	}
	return err
}

// halve makes rung after rung.
func (p *Plan) halve(ctx context.Context, g run.Grid, lines []Line, rows []string) error {
	h := *p.Halving
	path := filepath.Join(g.Dir, rungsName)
	r, err := readRungs(path)
	if err != nil {
		return err
	}
	if r == nil {
		r = &rungs{Format: 1, Rule: h, Seeds: p.Seeds, Rows: rows}
	} else if r.Rule != h || !slices.Equal(r.Seeds, p.Seeds) || !slices.Equal(r.Rows, rows) {
		return badinput.Errorf("%s was begun with another [halving], other axes or other seeds: choose another --out", g.Dir)
	}
	var failures Failures
	for rung := range h.Rungs {
		if rung < len(r.Over) {
			for i := range lines {
				if results, ok := r.Over[rung].Results[lines[i].Row]; ok {
					lines[i].results, lines[i].Trained = results, h.until(rung)
				}
			}
			rows = r.Over[rung].Next
			continue
		}
		if g.Log != nil {
			fmt.Fprintf(g.Log, "rung %d of %d: %d settings, to %.3g of their steps\n", rung+1, h.Rungs, len(rows),
				cmp.Or(h.until(rung), 1))
		}
		err := p.train(ctx, g, lines, rows, h.until(rung))
		if some := (*Failures)(nil); errors.As(err, &some) {
			failures.Cells = append(failures.Cells, some.Cells...)
		} else if err != nil {
			return err
		}
		if rung == h.Rungs-1 {
			break
		}
		next, err := h.best(p.File, lines, rows)
		if err != nil {
			return err
		}
		m := measure{Results: make(map[string][]json.RawMessage), Next: next}
		measured := setOf(rows)
		for _, l := range lines {
			if measured[l.Row] {
				m.Results[l.Row] = l.results
			}
		}
		r.Over = append(r.Over, m)
		sealed, err := disk.Seal(r, &r.SHA256)
		if err != nil {
			return err
		}
		if err := disk.WriteFile(path, disk.Content(sealed)); err != nil {
			return err
		}
		rows = next
	}
	if failures.Cells != nil {
		return &failures
	}
	return nil
}

// best returns the rows that go on, by their mean over seeds, in the order of rows. A row that failed is the worst.
func (h Halving) best(file string, lines []Line, rows []string) ([]string, error) {
	score := make(map[string]float64)
	all := make(map[string]bool)
	found, asked := false, setOf(rows)
	for _, l := range lines {
		if !asked[l.Row] {
			continue
		}
		var sum float64
		for _, result := range l.results {
			x := math.NaN()
			if result != nil {
				numbers, err := numbersOf(result)
				if err != nil {
					return nil, err
				}
				for name := range numbers {
					all[name] = true
				}
				if v, ok := numbers[h.Metric]; ok {
					x, found = v, true
				}
			}
			sum += x
		}
		if h.Better == "high" {
			sum = -sum
		}
		if score[l.Row] = sum; math.IsNaN(sum) {
			score[l.Row] = math.Inf(1)
		}
	}
	if !found && len(all) > 0 {
		return nil, unknownMetric(file, "halving.metric", h.Metric, all)
	}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(score[a], score[b]) })
	next := setOf(sorted[:(len(rows)+h.Factor-1)/h.Factor])
	return slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return !next[row] }), nil
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool)
	for _, name := range names {
		set[name] = true
	}
	return set
}

func readRungs(path string) (*rungs, error) {
	data, err := disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var r rungs
	if err := disk.Unseal(data, &r, &r.SHA256); err != nil {
		return nil, badinput.Errorf("%s: %w: give back what was there, or choose another --out", path, err)
	}
	for i := range r.Over { // as they were before they were indented
		for _, results := range r.Over[i].Results {
			for k := range results {
				if string(results[k]) == "null" {
					results[k] = nil
				}
			}
		}
	}
	return &r, nil
}

// devices are what has computed cells, if their bits depend on that: several processors, or another backend than simd.
func (p *Plan) devices(g run.Grid) (names []string, err error) {
	for _, c := range p.Cells() {
		r, err := run.Read(filepath.Join(g.Dir, c.Path()))
		if errors.Is(err, run.ErrNotRun) {
			continue
		} else if err != nil {
			return nil, err
		}
		if name := r.Info().Backend; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 && strings.HasPrefix(names[0], "simd ") {
		return nil, nil
	}
	slices.Sort(names)
	return names, nil
}
