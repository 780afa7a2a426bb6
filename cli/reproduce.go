package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/sweep"
)

type reproduceCmd struct {
	Table string   `arg:"" help:"Which table: ${tables}."`
	Rows  []string `help:"Only these rows, by name (default: all)." placeholder:"ROW"`
	Runs  int      `help:"Repetitions of rows that train a GFlowNet (default: the table's). Grammars: also beside --seeds."`
	Seed  uint64   `help:"Seed of all random numbers."`
	adjustments
	command.Backend
	Workers int `help:"Trainings at a time (default: one per core)."`
	others
	Out       string        `help:"Folder of the table and its runs (default: runs/TABLE-table)."`
	SaveEvery time.Duration `help:"Time between checkpoints of a training." default:"30s"`
	JSON      bool          `help:"Print the table as one JSON object on standard output."`
}

// adjustments change all rows of a table, if it lets them.
type adjustments struct {
	Seeds  string   `help:"How many repetitions, or their seeds with commas between them." placeholder:"N|SEED,SEED"`
	Data   *string  `help:"Data of all rows, the same as --set data=DATA." placeholder:"DATA"`
	Preset string   `help:"Starting point of all rows (default: the table's)."`
	Set    []string `help:"Change one key in all rows; may be repeated." placeholder:"KEY=VALUE" sep:"none"`
}

// Run reproduces a table.
func (c *reproduceCmd) Run(io command.Console, p *Program) error {
	ctx, stop := run.WithSignals(context.Background())
	defer stop()
	task, err := p.table(c.Table, c.Rows)
	if err != nil {
		return err
	}
	b, err := c.Open()
	if err != nil {
		return err
	}
	if c.Out == "" {
		c.Out = filepath.Join("runs", c.Table+"-table")
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if err := command.CheckSeed(c.Seed); err != nil {
		return err
	}
	if err := c.others.check(); err != nil {
		return err
	}
	if c.Runs < 0 || c.Workers < 0 {
		return badinput.Errorf("--runs and --workers cannot be negative")
	}
	adjust, err := c.adjust(task)
	if err != nil {
		return err
	}
	command.TakesMemory(c.largeFlags(task, adjust)...)
	study := run.Study{
		Grid: run.Grid{
			Dir: c.Out, Task: task, Backend: b, Name: backend.Describe(b), Command: io.Args,
			Workers: c.Workers, Every: c.SaveEvery, Log: io.Err,
		},
		Table: c.Table, Rows: c.Rows, Runs: c.Runs, Seed: c.Seed, Adjustments: adjust,
	}
	var pool *sweep.Pool
	if c.take() {
		if pool, err = c.open(ctx, io, c.Out, p.Tasks, c.Workers, func() (compute.Backend, error) { return b, nil }); err != nil {
			return err
		}
		study.Pool = pool
	}
	// Trainings save within run.Grace; what else a table needs is made again.
	result, err := run.Await(ctx, 2*run.Grace, func() (run.Result, error) { return task.Reproduce(ctx, study) })
	if errors.Is(err, run.ErrBusy) {
		err = run.ErrInterrupted
	}
	if pool != nil {
		if err == nil {
			err = pool.Finish(ctx)
		}
		err = errors.Join(err, pool.Close())
	}
	if errors.Is(err, run.ErrInterrupted) {
		return fmt.Errorf("%w: give the same command again to go on", err)
	} else if err != nil {
		return err
	}
	if c.JSON {
		return command.PrintJSON(io.Out, result)
	}
	if err := result.Print(io.Out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Out, "Look at %s\n", filepath.Join(c.Out, "report.html"))
	return err
}

// largeFlags are what can be lowered should memory not be enough.
func (c *reproduceCmd) largeFlags(task run.Reproducer, a run.Adjustments) (flags []string) {
	if c.Workers > 1 {
		flags = append(flags, "--workers")
	}
	preset := task.Config(cmp.Or(a.Preset, task.Presets()[0]))
	if _, ok := task.(run.Adjustable); ok && config.Resolve(preset, a.Set) == nil {
		flags = append(flags, largeKeys(task, preset)...)
	}
	return flags
}

// adjust reads what is asked of all rows. A number of seeds becomes --runs.
func (c *reproduceCmd) adjust(task run.Reproducer) (run.Adjustments, error) {
	out := run.Adjustments{Preset: c.Preset, Set: c.Set}
	if c.Data != nil {
		out.Set = append(out.Set, "data="+*c.Data)
	}
	if _, ok := task.(run.Adjustable); !ok {
		if out.Preset != "" || out.Set != nil || c.Seeds != "" {
			return out, badinput.Errorf(
				"the rows of the table %s have settings of their own: leave out --preset, --set, --data and --seeds", c.Table)
		}
		return out, nil
	}
	if out.Preset != "" && !slices.Contains(task.Presets(), out.Preset) {
		return out, command.Unknown("preset", out.Preset, task.Presets())
	}
	if c.Seeds == "" {
		return out, nil
	}
	seeds, err := parseSeeds(c.Seeds)
	if err != nil {
		return out, err
	}
	many := len(seeds)
	if many == 1 {
		many, seeds = int(seeds[0]), nil
	}
	switch _, ok := task.(run.Uneven); {
	case c.Runs > 0 && !ok:
		return out, badinput.Errorf("--runs and --seeds say the same: give one of them")
	case c.Runs >= many:
		return out, badinput.Errorf(
			"--runs %d is of rows that train a GFlowNet, beside --seeds of all others: give fewer than %d", c.Runs, many)
	case c.Runs == 0 && seeds == nil:
		c.Runs = many
	case seeds == nil:
		seeds = run.SeedsFrom(c.Seed, many)
	}
	out.Seeds = seeds
	return out, nil
}

// parseSeeds reads a list of different seeds, or a number of repetitions, which it returns as a list of one.
func parseSeeds(text string) ([]uint64, error) {
	const most = 1000 // repetitions
	var seeds []uint64
	for _, one := range strings.Split(text, ",") {
		seed, err := strconv.ParseUint(strings.TrimSpace(one), 10, 63)
		if err != nil {
			return nil, badinput.Errorf("--seeds %s: want how many, such as 5, or seeds with commas between them, such as 1,2,3",
				text)
		}
		if slices.Contains(seeds, seed) {
			return nil, badinput.Errorf("--seeds %s: %d occurs twice", text, seed)
		}
		seeds = append(seeds, seed)
	}
	if len(seeds) == 1 && !(1 <= seeds[0] && seeds[0] <= most) {
		return nil, badinput.Errorf("--seeds %s: from 1 to %d repetitions can be made; a single seed is given by --seed",
			text, most)
	}
	return seeds, nil
}
