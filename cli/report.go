package cli

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
)

type reportCmd struct {
	Dir string `arg:"" name:"run" help:"Folder of the run."`
	command.Backend
}

// Run writes the report of a run.
func (c reportCmd) Run(io command.Console, p *Program) (err error) {
	r, err := run.Open(c.Dir) // with the lock: it writes
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	s, _, err := p.newest(c.Backend, r, io)
	if err != nil {
		return err
	}
	defer s.Close()
	if note := run.Unfinished(s); note != "" {
		io.Warn(note)
	}
	summary, err := r.Summary()
	if err == nil && summary == nil {
		err = fmt.Errorf("%s has no summary.json", r.Dir())
	}
	if err != nil {
		io.Warn(err.Error() + ": the report does not say how long it was trained")
	}
	if _, err := r.Conclude(s); err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.Out, filepath.Join(r.Dir(), "report.html"))
	return err
}
