package results

import (
	"context"
	"slices"
	"strconv"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// Adjustable implements run.Adjustable.
func (Task) Adjustable() {}

// Uneven implements run.Uneven.
func (Task) Uneven() {}

// paperTable is a table of Hu et al. (2023) on grammars, or one of ours, as a grid of trainings.
type paperTable struct {
	name, title string
	own         bool   // not of the paper
	preset      string // the default
	rows        []tableRow
	unless      func(c *induce.Config)      // what all rows have unless somebody asks for something else; may be nil
	check       func(c induce.Config) error // of the configuration of every row; may be nil
	timed       bool                        // how long M-steps take is measured, too
	show        func(r *reproduced) *report.Table
	figures     []tableFigure
}

// tableRow is a method of a table.
type tableRow struct {
	key, title string
	nll, f1    report.Cell            // as published
	bound      float64                // instead of nll, of the E-step's table
	with       config.Set             // what makes it the row it is
	unless     func(c *induce.Config) // what it has unless somebody asks for something else; may be nil
}

func findTable(name string) paperTable {
	all := paperTables()
	return all[slices.IndexFunc(all, func(t paperTable) bool { return t.name == name })]
}

// Tables implements run.Reproducer.
func (Task) Tables() map[string][]string {
	out := map[string][]string{}
	for _, t := range paperTables() {
		for _, r := range t.rows {
			out[t.name] = append(out[t.name], r.key)
		}
	}
	return out
}

// Reproduce implements run.Reproducer.
func (Task) Reproduce(ctx context.Context, s run.Study) (run.Result, error) {
	t := findTable(s.Table)
	t.rows = slices.DeleteFunc(t.rows, func(r tableRow) bool { return !s.Asks(r.key) })
	if s.Preset == "" {
		s.Preset = t.preset
	}
	if s.Seeds == nil {
		if s.Runs == 0 {
			s.Runs = 3
		}
		s.Seeds = run.SeedsFrom(s.Seed, s.Runs)
	}
	cells, err := t.cells(s)
	if err != nil {
		return nil, err
	}
	results, err := s.Grid.Run(ctx, cells)
	if err != nil {
		return nil, err
	}
	r, err := newReproduced(t, s, cells, results)
	if err != nil {
		return nil, err
	}
	if t.timed {
		if err := r.time(ctx, s, cells); err != nil {
			return nil, err
		}
	}
	return r, s.Publish(r.page)
}

// cells lists the trainings of a table, row by row: with all seeds, or the first ones for rows that train a GFlowNet,
// if there are to be fewer runs of these.
func (t paperTable) cells(s run.Study) ([]run.Cell, error) {
	var own []config.Set
	for _, row := range t.rows {
		own = append(own, row.with)
	}
	if err := run.CheckSet(s.Set, own); err != nil {
		return nil, err
	}
	var cells []run.Cell
	for _, row := range t.rows {
		for i, seed := range s.Seeds {
			c := Task{}.Config(s.Preset).(*induce.Config)
			if t.unless != nil {
				t.unless(c)
			}
			if row.unless != nil {
				row.unless(c)
			}
			err := config.Resolve(c, s.Set, row.with, config.Set{"seed=" + strconv.FormatUint(seed, 10)})
			if err == nil && t.check != nil {
				err = t.check(*c)
			}
			if err != nil {
				return nil, err
			}
			if c.Method == induce.GFN && s.Runs > 0 && i >= s.Runs {
				break
			}
			cells = append(cells, run.Cell{Row: row.key, Index: int(seed), Config: c})
		}
	}
	return cells, nil
}
