package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
)

type evalCmd struct {
	Dir string `arg:"" name:"run" help:"Folder of the run."`
	command.Backend
	kong.Plugins      // flags of tasks
	JSON         bool `help:"Print the result as one JSON object on standard output."`
}

// Run evaluates a run.
func (c evalCmd) Run(io command.Console, p *Program) error {
	r, err := run.Read(c.Dir)
	if err != nil {
		return err
	}
	changes, err := c.changes(p, r)
	if err != nil {
		return err
	}
	s, skipped, err := p.newest(c.Backend, r, io, changes...)
	if err != nil {
		return err
	}
	defer s.Close()
	at, err := stand(r, s, skipped)
	if err != nil {
		return err
	}
	watch(s, io)
	result, err := s.Evaluate()
	if err != nil {
		return err
	}
	return at.print(io, result, c.JSON)
}

// changes are the settings of a run that flags change.
func (c evalCmd) changes(p *Program, r *run.Run) (changes []string, err error) {
	task, err := p.taskOf(r)
	if err != nil {
		return nil, err
	}
	for _, flags := range c.Plugins {
		more, err := flags.(command.EvalFlags).Settings(task)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	return changes, nil
}

// watch lets a session show the progress of its evaluation, if it can.
func watch(s run.Session, c command.Console) {
	if w, ok := s.(interface{ Watch(io.Writer) }); ok {
		w.Watch(c.Err)
	}
}

// newest prepares a session at the newest checkpoint of a run, with some settings changed. It warns of damaged checkpoints
// that were skipped, and returns the warnings.
func (p *Program) newest(e command.Backend, r *run.Run, c command.Console, changes ...string) (run.Session, []string, error) {
	s, err := p.session(context.Background(), e, c, r, changes...)
	if err != nil {
		return nil, nil, err
	}
	state, warnings, err := r.Load()
	c.Warn(append(warnings, r.JournalNotes()...)...)
	if err == nil {
		if err = s.Restore(state); err != nil {
			err = fmt.Errorf("restore run %s at step %d: %w", r.Dir(), state.Step, err)
		}
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, warnings, nil
}
