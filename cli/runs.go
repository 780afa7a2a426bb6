package cli

import (
	"fmt"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/run/catalog"
)

type runsCmd struct {
	Dir  string `arg:"" optional:"" default:"runs" help:"Folder to look in, at any depth."`
	JSON bool   `help:"Print a JSON array of all that is known of each run on standard output."`
}

// Run lists runs.
func (c runsCmd) Run(io command.Console) error {
	runs, err := findRuns(c.Dir)
	if err != nil {
		return err
	}
	if c.JSON {
		return command.PrintJSON(io.Out, runs)
	}
	_, err = fmt.Fprint(io.Out, catalog.Table(runs))
	return err
}

// findRuns returns the runs at or below folders; each must have one.
func findRuns(dirs ...string) (all []catalog.Run, err error) {
	seen := map[string]bool{}
	for _, dir := range dirs {
		runs, err := catalog.Find(dir)
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 {
			return nil, badinput.Errorf("%s is not a run folder, and none is below it: %s makes one", dir, self.Command("train TASK --out DIR"))
		}
		for _, r := range runs {
			if !seen[r.Dir] {
				all = append(all, r)
			}
			seen[r.Dir] = true
		}
	}
	return all, nil
}
