package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
)

type resumeCmd struct {
	Dir string `arg:"" name:"run" help:"Folder of the run."`
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
	s, err := p.session(ctx, c.Backend, io, r)
	if err != nil {
		return err
	}
	defer func() { run.Release(s, err) }()
	return finish(ctx, stop, io, r, s, c.SaveEvery, c.JSON)
}

// session prepares the session that a run was made by, at its start, with some settings changed. What it reads outside of
// the run's folder, which may come from somebody else, is named first.
func (p *Program) session(ctx context.Context, e command.Backend, io command.Console, r *run.Run, changes ...string) (run.Session, error) {
	task, err := p.taskOf(r)
	if err != nil {
		return nil, err
	}
	c := usual(task) // run.toml has every key
	if err := config.Resolve(c, config.File(filepath.Join(r.Dir(), "run.toml")), config.Set(changes)); err != nil {
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
