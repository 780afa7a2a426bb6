package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/run"
)

// settings choose a configuration.
type settings struct {
	Preset string   `help:"Starting point of the configuration (${presets}; default: the first)." placeholder:"NAME"`
	Config string   `help:"TOML file with keys to change." placeholder:"FILE"`
	Set    []string `help:"Change one key; may be repeated." placeholder:"KEY=VALUE" sep:"none"`
	Seed   *uint64  `help:"Seed of all random numbers, the same as --set seed=N."`
}

type trainCmd struct {
	Task string `arg:"" help:"What to train: ${tasks}."`
	settings
	kong.Plugins // shortcuts
	command.Backend
	Out       string        `help:"Folder of the run (default: runs/TASK-TIME, which is always a new one)."`
	SaveEvery time.Duration `help:"Time between checkpoints." default:"10s"`
	DryRun    bool          `help:"Print the configuration, and what time and memory the training takes, and train nothing."`
	JSON      bool          `help:"Print the result as one JSON object on standard output."`

	shortcuts *shortcuts
}

// taskArg is the argument that names the task.
func (trainCmd) taskArg(program *kong.Node) *kong.Positional {
	i := slices.IndexFunc(program.Children, func(n *kong.Node) bool { return n.Name == "train" })
	return program.Children[i].Positional[0]
}

// Run trains.
func (c trainCmd) Run(io command.Console, p *Program) (err error) {
	ctx, stop := run.WithSignals(context.Background())
	defer stop()
	if c.Task == "" {
		c.Task = p.Tasks[0].Name() // the only one
	}
	task, err := p.find(c.Task)
	if err != nil {
		return err
	}
	if c.SaveEvery < 0 {
		return badinput.Errorf("--save-every=%s: a duration cannot be negative", c.SaveEvery)
	}
	more, err := c.shortcuts.settings(task)
	if err != nil {
		return err
	}
	c.Set = append(c.Set, more...)
	chosen, err := c.resolve(task)
	if err != nil {
		return err
	}
	said, err := atOnce(ctx, func() ([]string, error) { return run.Prepare(task, chosen) })
	if err != nil {
		return err
	}
	for _, line := range said {
		fmt.Fprintln(io.Err, line)
	}
	session, name, err := start(ctx, c.Backend, task, chosen)
	if err != nil {
		return err
	}
	defer func() { run.Release(session, err) }()
	text, err := config.Encode(chosen)
	if err != nil {
		return err
	}
	if c.DryRun {
		e, err := run.Await(ctx, run.Grace, func() (estimate, error) { return try(session, text) })
		if err != nil {
			return err
		}
		return e.print(io, c.JSON)
	}
	out, create := c.Out, run.Create
	if out == "" {
		out, create = filepath.Join("runs", task.Name()+"-"+time.Now().Format("20060102-150405")), run.CreateNext
	}
	files, err := run.Keeps(session)
	if err != nil {
		return err
	}
	r, err := create(out, run.Options{
		Task: task.Name(), Config: text, Command: io.Args, Seed: session.Seed(), Backend: name, Data: session.Data(), Files: files,
	})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	return finish(ctx, stop, io, r, session, c.SaveEvery, c.JSON)
}

// resolve reads the configuration.
func (s settings) resolve(task run.Task) (any, error) {
	c := task.Config(cmp.Or(s.Preset, task.Presets()[0]))
	if c == nil {
		return nil, command.Unknown("preset", s.Preset, task.Presets())
	}
	var layers []config.Layer
	if s.Config != "" {
		layers = append(layers, config.File(s.Config))
	}
	layers = append(layers, config.Set(s.Set))
	if s.Seed != nil {
		if err := command.CheckSeed(*s.Seed); err != nil {
			return nil, err
		}
		if !slices.Contains(config.Keys(c), "seed") {
			return nil, badinput.Errorf("--seed: the task %s has no such setting", task.Name())
		}
		layers = append(layers, config.Set{fmt.Sprintf("seed=%d", *s.Seed)})
	}
	return c, config.Resolve(c, layers...)
}

// start opens the backend and prepares a session; the second result describes the backend. It heeds signals at once, since
// nothing has to be saved yet.
func start(ctx context.Context, e command.Backend, task run.Task, config any) (run.Session, string, error) {
	var name string
	s, err := atOnce(ctx, func() (run.Session, error) {
		b, err := e.Open()
		if err != nil {
			return nil, err
		}
		name = backend.Describe(b)
		command.TakesMemory(largeKeys(task, config)...)
		return task.Start(b, config)
	})
	return s, name, err
}

// atOnce calls f, and leaves it when a signal comes.
func atOnce[R any](ctx context.Context, f func() (R, error)) (R, error) {
	out, err := run.Await(ctx, 0, f)
	if errors.Is(err, run.ErrBusy) {
		err = fmt.Errorf("%w before anything was trained: give the same command again", run.ErrInterrupted)
	}
	return out, err
}

// finish drives a run to its end, then evaluates, exports and reports it. Once it is trained, stop ends listening for signals:
// they act at once again, since nothing more has to be saved.
func finish(ctx context.Context, stop func(), io command.Console, r *run.Run, s run.Session, every time.Duration, asJSON bool) error {
	begin := time.Now()
	if err := r.Drive(ctx, s, every, io.Err); err != nil {
		return err
	}
	took := time.Since(begin)
	if ctx.Err() != nil {
		return fmt.Errorf("%w after training: finish with %s", run.ErrInterrupted, self.Command("report %s", r.Dir()))
	}
	stop()
	at, err := stand(r, s, nil)
	if err != nil {
		return err
	}
	watch(s, io)
	result, err := r.Conclude(s)
	if err != nil {
		return fmt.Errorf("%w; the training is saved: mend that and finish with %s", err,
			self.Command("report %s", r.Dir()))
	}
	if err := at.print(io, result, asJSON); err != nil || asJSON {
		return err
	}
	_, err = fmt.Fprintf(io.Out, "Trained in %s. Look at %s\n", took.Round(time.Second/10), filepath.Join(r.Dir(), "report.html"))
	return err
}
