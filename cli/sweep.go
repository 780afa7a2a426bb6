package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/sweep"
)

type sweepCmd struct {
	Run  sweepRunCmd  `cmd:"" default:"withargs" help:"Train what a file asks for (the word run may be left out)."`
	Keys sweepKeysCmd `cmd:"" help:"Make the keys by which a sweep and its workers know each other."`
}

type sweepRunCmd struct {
	File string `arg:"" help:"TOML file that says what is varied."`
	Out  string `help:"Folder of the table and its runs (default: runs/NAME-sweep)."`
	pool
	command.Backend
	SaveEvery time.Duration `help:"Time between checkpoints of a training, which are also sent to the sweep." default:"30s"`
	JSON      bool          `help:"Print the table as one JSON object on standard output."`
	Emit      string        `help:"Train nothing; print a script that starts workers on a cluster: slurm or kubernetes." enum:",slurm,kubernetes" default:"" placeholder:"KIND"`
}

// pool says who makes the cells of a grid.
type pool struct {
	Workers *int `help:"Trainings at a time in this process (default: one per core)." placeholder:"N"`
	others
}

// others let other processes and machines make cells of a grid.
type others struct {
	Listen string        `help:"Let workers of other processes and machines take part, at this address." placeholder:"HOST:PORT"`
	NATS   string        `help:"Use this NATS cluster, with JetStream, and not a server of our own." name:"nats" placeholder:"nats://HOST:PORT"`
	Keys   string        `help:"Folder of keys, which other machines need: KEYS/sweep of \"gfnem sweep keys KEYS\"." placeholder:"DIR"`
	Lease  time.Duration `help:"How long a worker may be silent before others get what it does." default:"15s"`
	Mixed  bool          `help:"Let workers compute by different processors and backends, whose last digits differ."`
	Limit  int           `help:"Most that checkpoints, results and data may take on the server, in MiB." default:"16384" placeholder:"MIB"`
}

// take reports whether others take part.
func (o others) take() bool { return o.Listen != "" || o.NATS != "" }

// check refuses what makes no sense.
func (o others) check() error {
	switch {
	case o.Listen != "" && o.NATS != "":
		return badinput.Errorf("--listen and --nats exclude each other: workers connect to one server")
	case o.Lease < 2*time.Second:
		return badinput.Errorf("--lease %s: at least 2s", o.Lease)
	case o.Limit < 1:
		return badinput.Errorf("--limit %d: at least 1", o.Limit)
	}
	return nil
}

// check refuses what makes no sense.
func (p pool) check() error {
	switch {
	case p.Workers != nil && *p.Workers < 0:
		return badinput.Errorf("--workers cannot be negative")
	case p.Workers != nil && *p.Workers == 0 && !p.take():
		return badinput.Errorf("--workers 0: nobody would work: give --listen or --nats, or leave it out")
	}
	return p.others.check()
}

// open starts so many workers of this process, and lets others take part.
func (o others) open(
	ctx context.Context, io command.Console, dir string, tasks []run.Task, workers int, e func() (compute.Backend, error),
) (*sweep.Pool, error) {
	keys, err := sweep.LoadKeys(o.Keys)
	if err != nil {
		return nil, err
	}
	options := sweep.PoolOptions{
		Dir: dir, Tasks: tasks, Workers: workers, Listen: o.Listen, NATS: o.NATS, Keys: keys, Lease: o.Lease, Mixed: o.Mixed,
		Limit: int64(o.Limit) << 20, Log: io.Err,
	}
	if workers > 0 {
		if options.Backend, err = e(); err != nil {
			return nil, err
		}
		options.Computes = backend.Describe(options.Backend)
	}
	opened, err := sweep.OpenPool(ctx, options)
	if err == nil && o.Listen != "" {
		fmt.Fprintf(io.Err, "workers: %s\n", sweep.WorkerCommand("nats://"+opened.Listen, o.Keys != ""))
	}
	return opened, err
}

// Run makes a sweep.
func (c *sweepRunCmd) Run(io command.Console, p *Program) (err error) {
	ctx, stop := run.WithSignals(context.Background())
	defer stop()
	plan, err := sweep.Load(c.File, p.Tasks)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return err
	}
	if c.Emit != "" {
		return c.emit(io, plan)
	}
	c.Out = cmp.Or(c.Out, filepath.Join("runs", strings.TrimSuffix(filepath.Base(c.File), filepath.Ext(c.File))+"-sweep"))
	command.TakesMemory(append([]string{"--workers"}, largeKeys(plan.Task, plan.Rows[0].Cells[0].Config)...)...)
	workers := runtime.GOMAXPROCS(0)
	if c.Workers != nil {
		workers = *c.Workers
	}
	opened, err := c.open(ctx, io, c.Out, p.Tasks, workers, c.Open)
	if err != nil {
		return err
	}
	table, err := plan.Run(ctx, run.Grid{
		Dir: c.Out, Task: plan.Task, Command: io.Args, Every: c.SaveEvery, Log: io.Err, Pool: opened,
	})
	var failures *sweep.Failures
	if err == nil || errors.As(err, &failures) {
		err = errors.Join(err, opened.Finish(ctx))
	}
	if err = errors.Join(err, opened.Close()); err != nil && failures == nil {
		if errors.Is(err, run.ErrInterrupted) {
			return fmt.Errorf("%w and saved: give the same command again to go on", run.ErrInterrupted)
		}
		return err
	}
	if c.JSON {
		return errors.Join(command.PrintJSON(io.Out, table), err)
	}
	if err := table.Print(io.Out); err != nil {
		return err
	}
	fmt.Fprintf(io.Out, "Look at %s\n", filepath.Join(c.Out, "report.html"))
	return err
}

// emit prints a script that starts workers.
func (c *sweepRunCmd) emit(io command.Console, plan *sweep.Plan) error {
	if !c.take() {
		return badinput.Errorf("--emit: give --listen HOST:PORT with the name of the machine that the sweep runs on, or --nats")
	}
	address, err := sweep.Reachable(c.Listen, c.NATS)
	if err != nil {
		return fmt.Errorf("--emit: %w", err)
	}
	workers := len(plan.Cells())
	if c.Workers != nil && *c.Workers > 0 {
		workers = *c.Workers
	}
	return sweep.Emit(io.Out, c.Emit, address, c.Keys, workers)
}

type sweepKeysCmd struct {
	Dir  string   `arg:"" help:"New folder for the keys."`
	Host []string `help:"Names and addresses of the machine that the sweep runs on, as workers call it." placeholder:"HOST"`
}

// Run makes keys.
func (c *sweepKeysCmd) Run(io command.Console) error {
	if err := sweep.MakeKeys(c.Dir, c.Host); err != nil {
		return err
	}
	_, err := fmt.Fprintf(io.Out, "%s stays here, for the sweep's --keys.\nCopy %s to the machines of workers, for theirs.\n",
		filepath.Join(c.Dir, "sweep"), filepath.Join(c.Dir, "worker"))
	return err
}
