package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

type verifyCmd struct {
	Dirs []string `arg:"" name:"dir" help:"Folders of runs, grids of runs (from \"gfnem reproduce\") and data sets (from \"gfnem data treebank\")."`
	JSON bool     `help:"Print one JSON object for each line on standard output."`
}

// Help implements kong's detailed help.
func (verifyCmd) Help() string {
	return `Examples:
  gfnem verify runs/paper
  gfnem verify runs/grammar-table            a table: all its runs, results and the report
  gfnem verify data/wsj                      a treebank
  gfnem verify . --json                      all that is below a folder

Checks every hash and every checkpoint, that parameters are finite, and that metrics, results and reports belong to the
checkpoints. It needs no data, reads alone, and may look at a run that is being trained. One line for each thing:
  ok       it is what was written
  note     nothing is wrong; leftovers of a kill, a report that is unfinished
  damaged  it was changed or is missing
  unread   it could not be read, or was written by a newer version of gfnem
Exit code 2 if anything is damaged or unread.`
}

// datasets lists a folder, and those below it, that hold data sets.
func datasets(dir string, depth int) (sets []string, err error) {
	if treebank.Holds(dir) {
		sets = append(sets, dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && depth > 0 {
			below, err := datasets(filepath.Join(dir, e.Name()), depth-1)
			if err != nil {
				return nil, err
			}
			sets = append(sets, below...)
		}
	}
	return sets, err
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
func (c verifyCmd) Run(io console) error {
	var all verdict
	count := map[run.Status]*int{run.Intact: &all.Intact, run.Note: &all.Notes, run.Damaged: &all.Damaged, run.Unread: &all.Unread}
	var failed error // to print
	print := func(v any, line string) {
		if failed != nil {
			return
		}
		if c.JSON {
			failed = printJSON(io.out, v)
		} else {
			_, failed = fmt.Fprintln(io.out, line)
		}
	}
	say := func(f run.Finding) {
		*count[f.Status]++
		print(f, fmt.Sprintf("%-8s %s: %s", f.Status, f.Path, f.Text))
	}
	for _, dir := range c.Dirs {
		sets, err := datasets(dir, 3)
		if err != nil {
			return err
		}
		for _, set := range sets {
			treebank.Verify(set, func(path string, err error) {
				if err != nil {
					say(run.Failure(path, err))
				} else {
					say(run.Finding{Status: run.Intact, Path: path, Text: "matches its hash"})
				}
			})
		}
		err = run.Verify(dir, say)
		switch {
		case errors.Is(err, run.ErrNotRun) && sets == nil:
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
