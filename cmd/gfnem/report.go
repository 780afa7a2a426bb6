package main

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/gfnem/gfnem/run"
)

type reportCmd struct {
	Dir string `arg:"" name:"run" help:"Folder of the run."`
	backendFlag
}

// Help implements kong's detailed help.
func (reportCmd) Help() string {
	return `Example:
  gfnem report runs/paper

Evaluates the newest checkpoint and writes report.html, figures and parameters.safetensors to the folder, and their
hashes to outputs.json.`
}

// Run writes the report of a run.
func (c reportCmd) Run(io console) (err error) {
	r, err := run.Open(c.Dir) // with the lock: it writes
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	s, _, err := c.newest(r, io)
	if err != nil {
		return err
	}
	defer s.Close()
	if note := run.Unfinished(s); note != "" {
		io.warn(note)
	}
	if _, err := conclude(r, s); err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.out, filepath.Join(r.Dir(), "report.html"))
	return err
}
