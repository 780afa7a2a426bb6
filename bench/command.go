package bench

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/report"
)

// Commands are the command of this package for a program.
type Commands struct {
	Bench benchCmd `cmd:"" help:"Measure speed."`
}

type benchCmd struct {
	Measure measureCmd `cmd:"" default:"withargs" help:"Measure workloads; the word measure can be left out."`
	Compare compareCmd `cmd:"" help:"Print our figures beside those of another program, and their ratios."`
	Peak    peakCmd    `cmd:"" help:"Print what this machine's kernels do, on one thread and on all."`
}

type measureCmd struct {
	Names []string `arg:"" name:"name" help:"What to measure: one or more of the workloads above."`
	command.Backend
	Options
	Figure string `help:"Also draw grammar-scaling: NAME.svg and NAME.png." placeholder:"NAME" type:"path"`
	JSON   bool   `help:"Print one JSON object per measurement."`
}

// Help implements kong's detailed help.
func (benchCmd) Help() string { return measureCmd{}.Help() }

// Help implements kong's detailed help.
func (measureCmd) Help() string {
	text := `Examples:
  gfnem bench mixture                          median time of one training step
  gfnem bench hypergrid                        updates and time to learn the 8x8 hypergrid, by objective
  gfnem bench mlp transformer --json           the same for other programs to read
  gfnem bench compare torch.json               beside another program's figures, as ratios
  gfnem bench inside --nt 30 --pt 60 --n 20    the inside algorithm at a size of its own
  gfnem bench transformer --profile            where the time goes, against the peaks of this machine
  gfnem bench peak                             what kernels do on this machine, on one thread and on all
  gfnem bench grammar --backend xla            iterations of GFlowNet-EM for grammars, at the paper's size
  gfnem bench grammar-scaling --figure cost    drawn, too

Workloads:`
	for _, w := range Workloads {
		text += fmt.Sprintf("\n  %-20s %s", w.Name, w.Help)
	}
	return text
}

// workloadNames lists what can be measured.
func workloadNames() []string {
	var names []string
	for _, w := range Workloads {
		names = append(names, w.Name)
	}
	return names
}

// Run measures.
func (c measureCmd) Run(io command.Console) error {
	if c.Profile && c.JSON {
		return badinput.Errorf("--profile prints a table of its own: leave out --json")
	}
	chosen, b, err := prepare(c.Names, c.Options, c.Backend)
	if err != nil {
		return err
	}
	for _, w := range chosen {
		command.TakesMemory(w.Sizes()...)
		var all []Result
		if err := w.Run(b, c.Options, func(r Result) error {
			all = append(all, r)
			return c.print(io, r)
		}); err != nil {
			return err
		}
		if c.Figure != "" && w.Draw != nil {
			if err := w.Draw(all).Save(filepath.Dir(c.Figure), filepath.Base(c.Figure)); err != nil {
				return err
			}
		}
	}
	return nil
}

// named finds workloads.
func named(names []string) (chosen []Entry, err error) {
	for _, name := range names {
		i := slices.Index(workloadNames(), name)
		if i < 0 {
			return nil, command.Unknown("benchmark", name, workloadNames())
		}
		chosen = append(chosen, Workloads[i])
	}
	return chosen, nil
}

// prepare checks what is to be measured, and opens the backend.
func prepare(names []string, o Options, on command.Backend) ([]Entry, compute.Backend, error) {
	chosen, err := named(names)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range chosen {
		if err := w.Check(o); err != nil {
			return nil, nil, err
		}
	}
	if err := o.unread(names); err != nil {
		return nil, nil, err
	}
	b, err := on.Open()
	return chosen, b, err
}

// print writes one result.
func (c measureCmd) print(io command.Console, r Result) error {
	switch {
	case c.JSON:
		return command.PrintJSON(io.Out, r)
	case c.Profile:
		_, err := fmt.Fprintln(io.Out, profile(r))
		return err
	}
	line := fmt.Sprintf("%-19s median %.3f ms, fastest %.3f ms, %d repetitions, %d threads",
		r.Workload, r.MedianMS, r.MinMS, r.Reps, r.Threads)
	if r.FirstS > 0 {
		line += fmt.Sprintf("; the first ones, compilation included, took %.1f s", r.FirstS)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		line += fmt.Sprintf("; %s %.6g", strings.ReplaceAll(name, "_", " "), r.Values[name])
	}
	if len(r.PartsMS) > 0 {
		t := &report.Table{Title: line, Columns: report.Columns("program", "ms, median of others, each waited for")}
		for _, name := range slices.Sorted(maps.Keys(r.PartsMS)) {
			t.Add(report.Text(name), report.Number(r.PartsMS[name], 2))
		}
		line = t.String()
	}
	_, err := fmt.Fprintln(io.Out, line)
	return err
}

// profiled is the most rows of a profile; the rest is one row.
const profiled = 30

// profile is what the steps of a workload cost.
func profile(r Result) *report.Table {
	costs, peaks := r.Costs, engine.MeasurePeaks()
	var all time.Duration
	for _, s := range costs {
		all += s.Time
	}
	if rest := costs[min(profiled, len(costs)):]; len(rest) > 0 {
		sum := engine.Cost{What: fmt.Sprintf("%d others", len(rest))}
		for _, s := range rest {
			sum.Time += s.Time
			sum.Flops += s.Flops
			sum.Bytes += s.Bytes
		}
		costs = append(slices.Clone(costs[:profiled]), sum)
	}
	t := &report.Table{
		Title: fmt.Sprintf("%s: median %.3f ms, %d threads; peaks %.0f GFLOP/s, %.0f GB/s", r.Workload, r.MedianMS, r.Threads,
			peaks.Flops/1e9, peaks.Bytes/1e9),
		Columns: report.Columns("ms", "share", "GFLOP/s", "of peak", "GB/s", "of peak", "step"),
	}
	percent := func(x float64) report.Cell { return report.Text(fmt.Sprintf("%.0f %%", 100*x)) }
	for _, s := range costs {
		sec := max(s.Time, 1).Seconds()
		t.Add(report.Number(1e3*sec, 3), percent(float64(s.Time)/float64(max(all, 1))),
			report.Number(s.Flops/sec/1e9, 1), percent(s.Flops/sec/peaks.Flops),
			report.Number(s.Bytes/sec/1e9, 1), percent(s.Bytes/sec/peaks.Bytes), report.Text(command.Shorten(s.What, 100)))
	}
	return t
}
