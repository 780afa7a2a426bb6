package bench

import (
	"fmt"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/report"
)

type peakCmd struct {
	For  time.Duration `help:"Time for each figure." default:"200ms" placeholder:"TIME"`
	JSON bool          `help:"Print one JSON object."`
}

// Help implements kong's detailed help.
func (peakCmd) Help() string {
	return `Examples:
  gfnem bench peak                   what kernels of the backend simd do, on one thread and on all
  GFNEM_SIMD=off gfnem bench peak    the same in plain Go, without vector instructions

Multiply-adds in registers are what no product can exceed. Take figures from an idle machine; each is the best of many
tries.`
}

// Run measures.
func (c peakCmd) Run(io command.Console) error {
	if c.For <= 0 {
		return badinput.Errorf("--for %v is no time to measure: give one such as 200ms", c.For)
	}
	s := engine.MeasureSpeeds(c.For)
	if c.JSON {
		return command.PrintJSON(io.Out, s)
	}
	_, err := fmt.Fprintln(io.Out, speeds(s))
	return err
}

// speeds is a table of kernels.
func speeds(s engine.Speeds) *report.Table {
	t := &report.Table{
		Title:   fmt.Sprintf("%s, instructions %s: billions a second", s.Arch, s.Instructions),
		Columns: report.Columns("1 thread", fmt.Sprintf("%d threads", s.Threads), "of what", "kernel"),
	}
	digits := func(x float64) report.Cell { return report.Text(fmt.Sprintf("%.3g", x)) }
	for _, k := range s.Kernels {
		t.Add(digits(k.OneThread), digits(k.AllThreads), report.Text(k.Unit+"s"), report.Text(k.Kernel))
	}
	return t
}
