package bench

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/report"
)

type compareCmd struct {
	File  string   `arg:"" help:"Figures of another program, one JSON object a line." type:"path"`
	Names []string `arg:"" optional:"" name:"name" help:"Workloads; all that the file has if none is named."`
	command.Backend
	Options
	Ours string `help:"Take our figures from a file, too: nothing is measured." placeholder:"FILE" type:"path"`
	JSON bool   `help:"Print one JSON object per workload."`
}

// Help implements kong's detailed help.
func (compareCmd) Help() string {
	return `Examples:
  gfnem bench compare torch.json                     measures what the file has
  gfnem bench compare torch.json inside transformer
  gfnem bench compare torch.json --ours ours.json    ours was written by "gfnem bench NAME... --json"

A line of a file has at least "workload" and "median_ms"; "min_ms" and "threads" are printed, too. Of several rounds of a
workload on as many threads the median counts, and of several numbers of threads the best. A ratio is their time over ours:
above 1, ours is faster. Take it from an idle machine, both programs in alternation.`
}

// comparison is a workload in two programs.
type comparison struct {
	Workload       string  `json:"workload"`
	Theirs         Result  `json:"theirs"`
	Ours           Result  `json:"ours"`
	Ratio          float64 `json:"ratio"` // of medians, theirs over ours
	RatioOfFastest float64 `json:"ratio_of_fastest,omitempty"`
}

func compared(theirs, ours Result) comparison {
	c := comparison{Workload: ours.Workload, Theirs: theirs, Ours: ours, Ratio: theirs.MedianMS / ours.MedianMS}
	if theirs.MinMS > 0 && ours.MinMS > 0 {
		c.RatioOfFastest = theirs.MinMS / ours.MinMS
	}
	return c
}

// Run compares.
func (c compareCmd) Run(io command.Console) error {
	if c.Profile {
		return badinput.Errorf("--profile is an option of measure, not of compare")
	}
	if _, err := named(c.Names); err != nil {
		return err
	}
	theirs, err := ReadFigures(c.File)
	if err != nil {
		return badinput.Errorf("%w", err)
	}
	if len(c.Names) > 0 {
		maps.DeleteFunc(theirs, func(w string, _ Result) bool { return !slices.Contains(c.Names, workloadOf(w)) })
	}
	var all []comparison
	each := func(r Result) error {
		t, ok := theirs[r.Workload]
		if !ok {
			return nil
		}
		all = append(all, compared(t, r))
		if c.JSON {
			return command.PrintJSON(io.Out, all[len(all)-1])
		}
		return nil
	}
	if c.Ours != "" {
		err = c.read(each)
	} else {
		err = c.measure(theirs, each)
	}
	if err != nil {
		return err
	}
	for _, r := range all {
		delete(theirs, r.Workload)
	}
	if len(all) == 0 {
		return badinput.Errorf("nothing of %s can be compared; workloads are %s", c.File, strings.Join(workloadNames(), ", "))
	}
	if left := slices.Sorted(maps.Keys(theirs)); len(left) > 0 {
		io.Warn("ours has no figures for " + strings.Join(left, ", "))
	}
	if c.JSON {
		return nil
	}
	_, err = io.Out.Write([]byte(table(c.File, all).String() + "\n"))
	return err
}

// workloadOf is the name of the workload that a result belongs to.
func workloadOf(result string) string {
	name, _, _ := strings.Cut(result, " ")
	return name
}

// read takes our figures from a file.
func (c compareCmd) read(each func(Result) error) error {
	ours, err := ReadFigures(c.Ours)
	if err != nil {
		return badinput.Errorf("%w", err)
	}
	for _, w := range slices.Sorted(maps.Keys(ours)) {
		if err := each(ours[w]); err != nil {
			return err
		}
	}
	return nil
}

// measure makes our figures for workloads of theirs.
func (c compareCmd) measure(theirs Figures, each func(Result) error) error {
	var names []string
	for _, name := range workloadNames() {
		if slices.ContainsFunc(slices.Collect(maps.Keys(theirs)), func(r string) bool { return workloadOf(r) == name }) {
			names = append(names, name)
		}
	}
	chosen, b, err := prepare(names, c.Options, c.Backend)
	if err != nil {
		return err
	}
	for _, w := range chosen {
		command.TakesMemory(w.Sizes()...)
		if err := w.Run(b, c.Options, each); err != nil {
			return err
		}
	}
	return nil
}

// table shows comparisons.
func table(file string, all []comparison) *report.Table {
	t := &report.Table{
		Title:   "Ours beside " + filepath.Base(file) + "; above a ratio of 1, ours is faster",
		Columns: report.Columns("workload", "theirs, ms", "threads", "ours, ms", "threads", "ratio", "of the fastest"),
	}
	threads := func(n int) report.Cell {
		if n == 0 {
			return report.Cell{}
		}
		return report.Int(n)
	}
	for _, c := range all {
		fastest := c.RatioOfFastest
		if fastest == 0 {
			fastest = math.NaN()
		}
		t.Add(report.Text(c.Workload), report.Number(c.Theirs.MedianMS, 3), threads(c.Theirs.Threads),
			report.Number(c.Ours.MedianMS, 3), threads(c.Ours.Threads), report.Number(c.Ratio, 2), report.Number(fastest, 2))
	}
	return t
}
