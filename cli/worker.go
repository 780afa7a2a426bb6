package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/sweep"
)

type workerCmd struct {
	Address string `arg:"" help:"Where the sweep is: nats://HOST:PORT."`
	command.Backend
	Keys     string        `help:"Folder of keys: a copy of KEYS/worker of \"gfnem sweep keys KEYS\"." placeholder:"DIR"`
	Sweep    string        `help:"Which sweep, if the server has several." placeholder:"ID"`
	Work     string        `help:"Folder for what it works on (default: gfnem/work below the user's cache folder)." placeholder:"DIR"`
	Patience time.Duration `help:"How long to wait for a server that does not answer." default:"5m"`
}

// Run makes cells of a sweep until it is over.
func (c *workerCmd) Run(io command.Console, p *Program) error {
	ctx, stop := run.WithSignals(context.Background())
	defer stop()
	keys, err := sweep.LoadKeys(c.Keys)
	if err != nil {
		return err
	}
	if c.Patience < 0 {
		return badinput.Errorf("--patience %s: a duration cannot be negative", c.Patience)
	}
	if c.Work == "" {
		cache, err := os.UserCacheDir() // where nobody else writes
		if err != nil {
			return badinput.Errorf("no folder to work in: %w: name one with --work", err)
		}
		c.Work = filepath.Join(cache, "gfnem", "work")
	}
	b, err := c.Open()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	nc, err := sweep.Dial(ctx, c.Address, host, keys, c.Patience)
	if err == nil {
		defer nc.Close()
		w := sweep.Worker{
			Tasks: p.Tasks, Backend: b, Computes: backend.Describe(b), Dir: c.Work, Sweep: c.Sweep, Patience: c.Patience, Log: io.Err,
		}
		err = w.Run(ctx, nc)
	}
	if errors.Is(err, run.ErrInterrupted) {
		return fmt.Errorf("%w: what it did is handed back, and others go on with it", run.ErrInterrupted)
	}
	return err
}
