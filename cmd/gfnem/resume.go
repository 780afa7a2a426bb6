package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
)

type resumeCmd struct {
	Dir string `arg:"" name:"run" help:"Folder of the run."`
	backendFlag
	SaveEvery time.Duration `help:"Time between checkpoints." default:"10s"`
	JSON      bool          `help:"Print the result as one JSON object on standard output."`
}

// Help implements kong's detailed help.
func (resumeCmd) Help() string {
	return `Examples:
  gfnem resume runs/paper
  gfnem resume runs/paper --json

A run that was killed and resumed ends with the same numbers as one that was not. Resuming a finished run
evaluates it and writes its report again.`
}

// Run continues a run.
func (c resumeCmd) Run(io console) (err error) {
	ctx, stop := run.WithSignals(context.Background())
	defer stop()
	r, err := run.Open(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	s, err := c.session(ctx, io, r)
	if err != nil {
		return err
	}
	defer func() { run.Release(s, err) }()
	return finish(ctx, stop, io, r, s, c.SaveEvery, c.JSON)
}

// session prepares the session that a run was made by, at its start, with some settings changed. What it reads outside of
// the run's folder, which may come from somebody else, is named first.
func (e backendFlag) session(ctx context.Context, io console, r *run.Run, changes ...string) (run.Session, error) {
	task, err := findTask(r.Info().Task)
	if err != nil {
		return nil, err
	}
	c := task.Config(task.Presets()[0]) // run.toml has every key
	if err := config.Resolve(c, config.File(filepath.Join(r.Dir(), "run.toml")), config.Set(changes)); err != nil {
		return nil, err
	}
	paths := config.Paths(c)
	for _, key := range slices.Sorted(maps.Keys(paths)) {
		fmt.Fprintf(io.err, "reading %s (%s of run.toml)\n", paths[key], key)
	}
	s, _, err := e.start(ctx, task, c)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(s.Data(), r.Info().Data) {
		s.Close()
		return nil, badinput.Errorf("%s was made with other data than its configuration gives now: was run.toml edited?",
			r.Dir())
	}
	return s, nil
}
