package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/run"
)

type resumeCmd struct {
	Dir string   `arg:"" name:"run" help:"Folder of the run."`
	Set []string `help:"Change one key from here on, and record that; may be repeated." placeholder:"KEY=VALUE" sep:"none"`
	command.Backend
	SaveEvery time.Duration `help:"Time between checkpoints." default:"10s"`
	JSON      bool          `help:"Print the result as one JSON object on standard output."`
}

// Run continues a run.
func (c resumeCmd) Run(io command.Console, p *Program) (err error) {
	ctx, stop := run.WithSignals(context.Background())
	defer stop()
	r, err := run.Open(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	if err := p.mayChange(r, c.Set); err != nil {
		return err
	}
	s, err := p.session(ctx, c.Backend, io, r, c.Set...)
	if err != nil {
		return err
	}
	defer func() { run.Release(s, err) }()
	if c.Set != nil {
		if err := p.change(io, r, s, c.Set); err != nil {
			return err
		}
	}
	return finish(ctx, stop, io, r, s, c.SaveEvery, c.JSON)
}

// mayChange returns an error if settings change a key of a run that has to stay as it is.
func (p *Program) mayChange(r *run.Run, set []string) error {
	if set == nil {
		return nil
	}
	_, before, err := p.configured(r)
	if err != nil {
		return err
	}
	_, after, err := p.configured(r, set...)
	if err != nil {
		return err
	}
	keys, err := config.Changed(before, after)
	if err != nil {
		return err
	}
	fields, err := config.Fields(after)
	if err != nil {
		return err
	}
	var may []string
	for _, f := range fields {
		if f.Resume {
			may = append(may, f.Name)
		}
	}
	for _, key := range keys {
		if !slices.Contains(may, key) {
			return badinput.Errorf("%s cannot change when a run is resumed; %s can. For another %[1]s start a "+
				"run of its own: %[3]s", key, orNone(may), self.Command("train %s --config %s --set %s=... --out ...", r.Info().Task,
				filepath.Join(r.Dir(), "run.toml"), key))
		}
	}
	return nil
}

func orNone(keys []string) string {
	if keys == nil {
		return "no key of this task"
	}
	return strings.Join(keys, ", ")
}

// change records other settings of a run, if its newest checkpoint fits them and they are others.
func (p *Program) change(io command.Console, r *run.Run, s run.Session, set []string) error {
	_, c, err := p.configured(r, set...)
	if err != nil {
		return err
	}
	text, err := config.Encode(c)
	if err != nil || text == r.Config() {
		return err
	}
	state, warnings, err := r.Load()
	io.Warn(append(warnings, r.JournalNotes()...)...)
	if err == nil {
		err = s.Restore(state)
	} else if errors.Is(err, run.ErrNoCheckpoint) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s with --set %s: %w", r.Dir(), strings.Join(set, " --set "), err)
	}
	_, total := s.Progress()
	return r.Change(text, run.Changed{Step: state.Step, Total: total, Done: s.Done(), Set: set, Command: io.Args})
}

// configured returns the task of a run and its configuration, with some settings changed.
func (p *Program) configured(r *run.Run, changes ...string) (run.Task, any, error) {
	task, err := p.taskOf(r)
	if err != nil {
		return nil, nil, err
	}
	c := run.Before(task)
	return task, c, config.Resolve(c, config.File(filepath.Join(r.Dir(), "run.toml")), config.Set(changes))
}

// session prepares the session that a run was made by, at its start, with some settings changed. What it reads outside of
// the run's folder, which may come from somebody else, is named first.
func (p *Program) session(ctx context.Context, e command.Backend, io command.Console, r *run.Run, changes ...string) (run.Session, error) {
	task, c, err := p.configured(r, changes...)
	if err != nil {
		return nil, err
	}
	kept, err := r.House(c)
	if err != nil {
		return nil, err
	}
	paths := config.Paths(c)
	delete(paths, kept)
	for _, key := range slices.Sorted(maps.Keys(paths)) {
		fmt.Fprintf(io.Err, "reading %s (%s of run.toml)\n", paths[key], key)
	}
	s, _, err := start(ctx, e, task, c)
	if err != nil {
		return nil, err
	}
	if err := r.CheckData(s.Data()); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
