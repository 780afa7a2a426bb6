package results

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae"
)

// Task is discrete VAEs, with tables.
type Task struct{ vae.Task }

var _ run.Adjustable = Task{}

// Adjustable implements run.Adjustable.
func (Task) Adjustable() {}

// Tables implements run.Reproducer.
func (Task) Tables() map[string][]string {
	out := map[string][]string{}
	for _, t := range tables() {
		for _, r := range t.rows {
			out[t.name] = append(out[t.name], r.key)
		}
	}
	return out
}

// Reproduce implements run.Reproducer.
func (Task) Reproduce(ctx context.Context, s run.Study) (run.Result, error) {
	all := tables()
	return all[slices.IndexFunc(all, func(t table) bool { return t.name == s.Table })].make(ctx, s)
}

// config is that of a row.
func (t table) config(s run.Study, r row, seed uint64) (*vae.Config, error) {
	preset := s.Preset
	for _, or := range []string{r.preset, t.preset} {
		if preset == "" {
			preset = or
		}
	}
	c := vae.Task{}.Config(preset).(*vae.Config)
	return c, config.Resolve(c, slices.Concat(t.unless, s.Set, r.with, config.Set{"seed=" + strconv.FormatUint(seed, 10)}))
}

// made is a table with its runs.
type made struct {
	Seed  uint64             `json:"seed"`
	Rows  map[string]madeRow `json:"rows"`
	of    table
	shown *report.Table
	strip report.Strip
}

// madeRow is a row: means over runs, and the runs.
type madeRow struct {
	Published    float64       `json:"nll_published"`          // as the paper computes it
	NLL          float64       `json:"nll"`                    // by the same estimator for all rows
	Milliseconds float64       `json:"milliseconds,omitempty"` // of a minibatch, where the table measures them
	Runs         []*vae.Result `json:"runs"`
	row          row
}

// make makes the runs of a table, row by row.
func (t table) make(ctx context.Context, s run.Study) (run.Result, error) {
	t.rows = slices.DeleteFunc(t.rows, func(r row) bool { return !s.Asks(r.key) || s.Rows == nil && r.extra })
	var own []config.Set
	for _, r := range t.rows {
		own = append(own, r.with)
	}
	if err := run.CheckSet(s.Set, own); err != nil {
		return nil, err
	}
	if s.Runs == 0 {
		s.Runs = t.runs
	}
	if s.Seeds == nil {
		s.Seeds = run.SeedsFrom(s.Seed, s.Runs)
	}
	var cells []run.Cell
	for _, r := range t.rows {
		for i, seed := range s.Seeds {
			c, err := t.config(s, r, seed)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.key, err)
			}
			cells = append(cells, run.Cell{Row: r.key, Index: i, Config: c})
		}
	}
	results, err := s.Grid.Run(ctx, cells)
	if err != nil {
		return nil, err
	}
	out := &made{Seed: s.Seeds[0], Rows: map[string]madeRow{}, of: t}
	var rows []madeRow
	for i, r := range t.rows {
		j := madeRow{row: r}
		for k := range s.Seeds {
			var one vae.Result
			if err := json.Unmarshal(results[i*len(s.Seeds)+k], &one); err != nil {
				return nil, fmt.Errorf("result of %s, run %d: %w", r.key, k, err)
			}
			if one.NLL == nil || one.Published == nil {
				return nil, badinput.Errorf("the table %s is of likelihoods: leave out --set eval.nll=false", t.name)
			}
			j.Published += *one.Published / float64(len(s.Seeds))
			j.NLL += one.NLL.NLL / float64(len(s.Seeds))
			j.Runs = append(j.Runs, &one)
		}
		if t.timed {
			took, err := timed(ctx, s, *cells[i*len(s.Seeds)].Config.(*vae.Config))
			if err != nil {
				return nil, err
			}
			j.Milliseconds = float64(took) / float64(time.Millisecond)
		}
		out.Rows[r.key] = j
		rows = append(rows, j)
	}
	out.show(rows)
	return out, s.Publish(out.page)
}

// timed is the mean time of a minibatch, once the programs are compiled: a sleep update that follows three in ten E-updates
// is missing in all 25 of the warm-up once in 7000 times. It is no median, since minibatches by turns are of two kinds.
func timed(ctx context.Context, s run.Study, c vae.Config) (time.Duration, error) {
	const warmUp, measured = 50, 40
	c.Gate.Turn = min(c.Gate.Turn, 1) // by turns, as many E- as M-updates
	c.Eval.Every = 0
	session, err := vae.Task{}.Start(s.Backend, &c)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	var begin time.Time
	for i := range warmUp + measured {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if i == warmUp {
			begin = time.Now()
		}
		if session.Done() {
			return 0, badinput.Errorf("a training of fewer than %d minibatches cannot be timed: set epochs or train_images higher", warmUp+measured)
		}
		if _, err := session.Step(); err != nil {
			return 0, err
		}
	}
	return time.Since(begin) / measured, nil
}
