package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/run"
)

type reproduceCmd struct {
	Table string   `arg:"" help:"Which table: ${tables}."`
	Rows  []string `help:"Only these rows, by name (default: all of the paper's)." placeholder:"ROW"`
	Runs  int      `help:"Repetitions of rows that train a GFlowNet (default: the table's)."`
	Seed  uint64   `help:"Seed of all random numbers."`
	backendFlag
	Workers   int           `help:"Trainings at a time (default: one per core)."`
	Out       string        `help:"Folder of the table and its runs (default: runs/TABLE-table)."`
	SaveEvery time.Duration `help:"Time between checkpoints of a training." default:"30s"`
	JSON      bool          `help:"Print the table as one JSON object on standard output."`
}

// Help implements kong's detailed help.
func (reproduceCmd) Help() string {
	return `Examples:
  gfnem reproduce mixture
  gfnem reproduce mixture --rows exact,meanfield,perfect          seconds
  gfnem reproduce mixture --rows gfn-quick --runs 10
  gfnem reproduce vae --rows vq-8,gfn-gd-8 --runs 1 --workers 1   on a GPU
  gfnem reproduce vae --rows quick-vq,quick-gfn-gd --runs 1       minutes, on a laptop

When the same command is given again, finished trainings are reused and interrupted ones go on where they were.`
}

// Run reproduces a table.
func (c reproduceCmd) Run(io console) error {
	ctx, stop := run.WithSignals(context.Background())
	defer stop()
	task, err := findTable(c.Table, c.Rows)
	if err != nil {
		return err
	}
	b, err := backend.Open(c.Backend)
	if err != nil {
		return run.Inputf("%w", err)
	}
	if c.Out == "" {
		c.Out = filepath.Join("runs", c.Table+"-table")
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if err := checkSeed(c.Seed); err != nil {
		return err
	}
	if c.Runs < 0 || c.Workers < 0 {
		return run.Inputf("--runs and --workers cannot be negative")
	}
	result, err := task.Reproduce(ctx, run.Study{
		Grid: run.Grid{
			Dir: c.Out, Task: task, Backend: b, Name: backend.Describe(b).String(), Command: io.args,
			Workers: c.Workers, Every: c.SaveEvery, Log: io.err,
		},
		Table: c.Table, Rows: c.Rows, Runs: c.Runs, Seed: c.Seed,
	})
	if errors.Is(err, run.ErrInterrupted) {
		return fmt.Errorf("%w: give the same command again to go on", err)
	} else if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(io.out, result)
	}
	if err := result.Print(io.out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.out, "Look at %s\n", filepath.Join(c.Out, "report.html"))
	return err
}

// tableNames lists the tables, for help.
func tableNames() string {
	var names []string
	for _, t := range tasks {
		if r, ok := t.(run.Reproducer); ok {
			names = append(names, slices.Sorted(maps.Keys(r.Tables()))...)
		}
	}
	return strings.Join(names, ", ")
}

// findTable returns the task that has a table, and checks the names of rows.
func findTable(name string, rows []string) (run.Reproducer, error) {
	var names []string
	for _, t := range tasks {
		r, ok := t.(run.Reproducer)
		if !ok {
			continue
		}
		for table, known := range r.Tables() {
			if table != name {
				names = append(names, table)
				continue
			}
			for _, row := range rows {
				if !slices.Contains(known, row) {
					return nil, unknown("row", row, known)
				}
			}
			return r, nil
		}
	}
	return nil, unknown("table", name, names)
}
