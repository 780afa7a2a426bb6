package cli

import (
	"errors"
	"fmt"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
)

type verifyCmd struct {
	Dirs []string `arg:"" name:"dir" help:"Folders of runs, grids of runs and data sets."`
	JSON bool     `help:"Print one JSON object for each line on standard output."`
}

// verdict counts what was found.
type verdict struct {
	Verdict string `json:"verdict"`
	Intact  int    `json:"ok"`
	Notes   int    `json:"notes"`
	Damaged int    `json:"damaged"`
	Unread  int    `json:"unread"`
}

// Run verifies folders.
func (c verifyCmd) Run(io command.Console, p *Program) error {
	var all verdict
	count := map[run.Status]*int{run.Intact: &all.Intact, run.Note: &all.Notes, run.Damaged: &all.Damaged, run.Unread: &all.Unread}
	var failed error // to print
	print := func(v any, line string) {
		if failed != nil {
			return
		}
		if c.JSON {
			failed = command.PrintJSON(io.Out, v)
		} else {
			_, failed = fmt.Fprintln(io.Out, line)
		}
	}
	say := func(f run.Finding) {
		*count[f.Status]++
		print(f, fmt.Sprintf("%-8s %s: %s", f.Status, f.Path, f.Text))
	}
	for _, dir := range c.Dirs {
		found := false
		for _, t := range p.Tasks {
			if v, ok := t.(command.Verifier); ok {
				some, err := v.Verify(dir, say)
				if err != nil {
					return err
				}
				found = found || some
			}
		}
		err := run.Verify(dir, say)
		switch {
		case errors.Is(err, run.ErrNotRun) && !found:
			return badinput.Errorf("%s holds no run, no table and no data set", dir)
		case err != nil && !errors.Is(err, run.ErrNotRun):
			return err
		}
	}
	switch {
	case all.Damaged > 0:
		all.Verdict = "damaged"
	case all.Unread > 0:
		all.Verdict = "unread"
	default:
		all.Verdict = "intact"
	}
	text := fmt.Sprintf("%s: %d ok, %d notes, %d damaged, %d unread", all.Verdict, all.Intact, all.Notes, all.Damaged, all.Unread)
	print(all, text)
	if failed == nil && all.Verdict != "intact" {
		failed = badinput.Errorf("verify: %d damaged, %d unread: see above", all.Damaged, all.Unread)
	}
	return failed
}
