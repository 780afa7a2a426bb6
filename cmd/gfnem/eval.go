package main

import (
	"errors"
	"fmt"

	"github.com/gfnem/gfnem/run"
)

type evalCmd struct {
	Dir string `arg:"" name:"run" help:"Folder of the run."`
	backendFlag
	JSON bool `help:"Print the result as one JSON object on standard output."`
}

// Help implements kong's detailed help.
func (evalCmd) Help() string {
	return `Examples:
  gfnem eval runs/paper
  gfnem eval runs/paper --json

Measures the newest checkpoint, also of a run that is not finished or still running. The folder is not changed.`
}

// Run evaluates a run.
func (c evalCmd) Run(io console) error {
	r, err := run.Read(c.Dir)
	if err != nil {
		return err
	}
	s, err := c.newest(r, io)
	if err != nil {
		return err
	}
	defer s.Close()
	result, err := s.Evaluate()
	if err != nil {
		return err
	}
	if c.JSON {
		return printResult(io, r, s, result)
	}
	return result.Print(io.out)
}

// newest prepares a session at the newest checkpoint of a run.
func (e backendFlag) newest(r *run.Run, io console) (run.Session, error) {
	s, err := e.session(r)
	if err != nil {
		return nil, err
	}
	state, warnings, err := r.Load()
	for _, w := range warnings {
		fmt.Fprintln(io.err, "warning:", w)
	}
	if err == nil {
		err = s.Restore(state)
	} else if errors.Is(err, run.ErrNoCheckpoint) {
		err = run.Inputf("%s has no checkpoint yet: wait for its first save, or continue it with \"gfnem resume %s\"", r.Dir(), r.Dir())
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
