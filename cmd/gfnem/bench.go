package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/bench"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

type benchCmd struct {
	Names []string `arg:"" name:"name" help:"What to measure: mixture, hypergrid."`
	engine
	For  time.Duration `help:"How long to repeat a step." default:"5s"`
	Seed uint64        `help:"Seed of hypergrid."`
	JSON bool          `help:"Print one JSON object per measurement."`
}

// Help implements kong's detailed help.
func (benchCmd) Help() string {
	return `Examples:
  gfnem bench mixture              median time of one training step
  gfnem bench hypergrid            steps and time to learn the 8x8 hypergrid, by objective
  gfnem bench mixture --json`
}

// Run measures.
func (c benchCmd) Run(io console) error {
	for _, name := range c.Names {
		if !slices.Contains(bench.Names(), name) {
			return unknown("benchmark", name, bench.Names())
		}
	}
	b, err := backend.Open(c.Backend)
	if err != nil {
		return run.Inputf("%w", err)
	}
	for _, name := range c.Names {
		if name == "hypergrid" {
			err = c.hypergrid(io, b)
		} else {
			var m bench.Measurement
			if m, err = bench.Run(b, name, c.For); err == nil {
				err = c.print(io, m)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c benchCmd) print(io console, m bench.Measurement) error {
	if c.JSON {
		return printJSON(io.out, m)
	}
	_, err := fmt.Fprintf(io.out, "%-12s median %.3f ms, fastest %.3f ms, %d repetitions, %d threads\n",
		m.Workload, m.MedianMS, m.MinMS, m.Reps, m.Threads)
	return err
}

// hypergrid prints how fast each objective learns.
func (c benchCmd) hypergrid(io console, b compute.Backend) error {
	t := &report.Table{
		Title:   fmt.Sprintf("8x8 hypergrid to total variation %g", bench.HypergridTarget),
		Columns: report.Columns("objective", "steps", "seconds", "total variation"),
	}
	err := bench.RunHypergrid(b, c.Seed, func(h bench.Hypergrid) error {
		t.Add(report.Text(h.Objective), report.Int(h.Steps), report.Number(h.Seconds, 1), report.Number(h.TotalVariation, 4))
		if c.JSON {
			return printJSON(io.out, h)
		}
		return nil
	})
	if err != nil || c.JSON {
		return err
	}
	_, err = fmt.Fprintln(io.out, t)
	return err
}
