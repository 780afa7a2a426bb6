package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
)

// settings choose a configuration.
type settings struct {
	Preset string   `help:"Starting point of the configuration (${presets})." default:"quick"`
	Config string   `help:"TOML file with keys to change." placeholder:"FILE"`
	Set    []string `help:"Change one key; may be repeated." placeholder:"KEY=VALUE" sep:"none"`
	Seed   *uint64  `help:"Seed of all random numbers, the same as --set seed=N."`
}

// backendFlag chooses what computes.
type backendFlag struct {
	Backend string `help:"What computes: auto, simd, go, xla, xla:cuda, xla:/path/plugin.so." default:"auto"`
}

// shortcuts are flags for keys that are set often. A task whose configuration has no such key refuses the flag.
type shortcuts struct {
	Data    *string `help:"Data, the same as --set data=DATA. Grammars: a folder of \"gfnem data treebank\", synthetic, synthetic-ncfg or small; vae: digits, binarized or a folder of idx files." placeholder:"DATA"`
	Method  *string `help:"How to learn, the same as --set method=NAME. Grammars: marginal, exact, mcem or gfn; vae: vq, gfn, gfn-gd or gfn-gd-prior." placeholder:"NAME"`
	Grammar *string `help:"Kind of a grammar, the same as --set model.grammar=KIND: cfg, or ncfg, whose rules depend on the parent." placeholder:"KIND"`
	K       *string `name:"k" help:"Number of codes of a vae, the same as --set model.codes=K." placeholder:"K"`
	EBM     bool    `name:"ebm" help:"With mcem and gfn, learn a prior on the shapes of trees first, the same as --set prior.on=true."`
}

// settings turns the flags that were given into settings of a task.
func (s shortcuts) settings(task run.Task) ([]string, error) {
	var ebm *string
	if s.EBM {
		ebm = new("true")
	}
	known := keysOf(task)
	var out []string
	for _, f := range []struct {
		flag, key string
		value     *string
	}{
		{"data", "data", s.Data},
		{"method", "method", s.Method},
		{"grammar", "model.grammar", s.Grammar},
		{"k", "model.codes", s.K},
		{"ebm", "prior.on", ebm},
	} {
		if f.value == nil {
			continue
		}
		if !slices.Contains(known, f.key) {
			return nil, badinput.Errorf("--%s: the task %s has no such setting", f.flag, task.Name())
		}
		out = append(out, f.key+"="+*f.value)
	}
	return out, nil
}

// keysOf lists the keys of a task's configuration.
func keysOf(task run.Task) []string { return config.Keys(task.Config(task.Presets()[0])) }

type trainCmd struct {
	Task string `arg:"" help:"What to train: ${tasks}."`
	settings
	shortcuts
	backendFlag
	Out       string        `help:"Folder of the run (default: runs/TASK-TIME, which is always a new one)."`
	SaveEvery time.Duration `help:"Time between checkpoints." default:"10s"`
	JSON      bool          `help:"Print the result as one JSON object on standard output."`
}

// Help implements kong's detailed help.
func (trainCmd) Help() string {
	return `Examples:
  gfnem train mixture
  gfnem train mixture --preset best --seed 3 --out runs/best
  gfnem train mixture --set wake.epsilon=0.2 --set gate.e_steps=500
  gfnem train mixture --config my.toml --json
  gfnem train grammar                                             the synthetic treebank, about a minute
  gfnem train grammar --method gfn                                GFlowNet-EM, about seven minutes
  gfnem train grammar --grammar ncfg --data synthetic-ncfg        rules that depend on the parent
  gfnem train grammar --data data/wsj --method mcem --ebm --preset paper --out runs/wsj
  gfnem train grammar --method gfn --preset paper --set updates=2000 --set horizon=10000     a fifth of the published schedule
  gfnem train vae                                                 handwritten digits as grids of codes, a few minutes
  gfnem train vae --set mstep.latents=greedy --set gate.turn=20      E- and M-updates by turns, as published

The folder of a run holds run.toml (the configuration), run.json (where it came from), metrics.jsonl and
TensorBoard events, state/ (checkpoints), parameters.safetensors, figures and report.html.

Ctrl-C, or SIGTERM, saves and ends with exit code 3. A step that does not end within ten seconds is not waited for: the run goes
on from its last checkpoint, by "gfnem resume". A second signal ends the program at once.`
}

// Run trains.
func (c trainCmd) Run(io console) (err error) {
	ctx, stop := run.WithSignals(context.Background())
	defer stop()
	task, err := findTask(c.Task)
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
	session, name, err := c.start(ctx, task, chosen)
	if err != nil {
		return err
	}
	defer func() { run.Release(session, err) }()
	text, err := config.Encode(chosen)
	if err != nil {
		return err
	}
	out, create := c.Out, run.Create
	if out == "" {
		out, create = filepath.Join("runs", task.Name()+"-"+time.Now().Format("20060102-150405")), run.CreateNext
	}
	r, err := create(out, run.Options{
		Task: task.Name(), Config: text, Command: io.args, Seed: session.Seed(), Backend: name, Data: session.Data(),
	})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	return finish(ctx, stop, io, r, session, c.SaveEvery, c.JSON)
}

// resolve reads the configuration.
func (s settings) resolve(task run.Task) (any, error) {
	c := task.Config(s.Preset)
	if c == nil {
		return nil, unknown("preset", s.Preset, task.Presets())
	}
	var layers []config.Layer
	if s.Config != "" {
		layers = append(layers, config.File(s.Config))
	}
	layers = append(layers, config.Set(s.Set))
	if s.Seed != nil {
		if err := checkSeed(*s.Seed); err != nil {
			return nil, err
		}
		layers = append(layers, config.Set{fmt.Sprintf("seed=%d", *s.Seed)})
	}
	return c, config.Resolve(c, layers...)
}

// checkSeed refuses seeds that a configuration file cannot hold.
func checkSeed(seed uint64) error {
	if seed > math.MaxInt64 {
		return badinput.Errorf("--seed %d is too large: at most %d", seed, math.MaxInt64)
	}
	return nil
}

// openBackend opens what computes.
func (e backendFlag) openBackend() (compute.Backend, error) {
	b, err := backend.Open(e.Backend)
	if err != nil {
		return nil, badinput.Errorf("%w", err)
	}
	return b, nil
}

// start opens the backend and prepares a session; the second result describes the backend. It heeds signals at once, since
// nothing has to be saved yet.
func (e backendFlag) start(ctx context.Context, task run.Task, config any) (run.Session, string, error) {
	var name string
	s, err := run.Await(ctx, 0, func() (run.Session, error) {
		b, err := e.openBackend()
		if err != nil {
			return nil, err
		}
		name = backend.Describe(b)
		takesMemory(largeKeys(task, config)...)
		return task.Start(b, config)
	})
	if errors.Is(err, run.ErrBusy) {
		return nil, "", fmt.Errorf("%w before anything was trained: give the same command again", run.ErrInterrupted)
	}
	return s, name, err
}

// finish drives a run to its end, then evaluates, exports and reports it. Once it is trained, stop ends listening for signals:
// they act at once again, since nothing more has to be saved.
func finish(ctx context.Context, stop func(), io console, r *run.Run, s run.Session, every time.Duration, asJSON bool) error {
	begin := time.Now()
	if err := r.Drive(ctx, s, every, io.err); err != nil {
		return err
	}
	took := time.Since(begin)
	if ctx.Err() != nil {
		return fmt.Errorf("%w after training: finish with \"gfnem report %s\"", run.ErrInterrupted, r.Dir())
	}
	stop()
	at, err := stand(r, s, nil)
	if err != nil {
		return err
	}
	watch(s, io)
	result, err := conclude(r, s)
	if err != nil {
		return fmt.Errorf("%w; the training is saved: mend that and finish with \"gfnem report %s\"", err, r.Dir())
	}
	if err := at.print(io, result, asJSON); err != nil || asJSON {
		return err
	}
	_, err = fmt.Fprintf(io.out, "Trained in %s. Look at %s\n", took.Round(time.Second/10), filepath.Join(r.Dir(), "report.html"))
	return err
}

// conclude evaluates a run and writes what belongs in its folder: parameters, result and report.
func conclude(r *run.Run, s run.Session) (run.Result, error) {
	result, err := s.Evaluate()
	if err != nil {
		return nil, err
	}
	parameters, err := s.Parameters()
	if err != nil {
		return nil, err
	}
	return result, r.Publish(func(dir string) error {
		if err := run.Export(filepath.Join(dir, "parameters.safetensors"), parameters); err != nil {
			return err
		}
		return s.Report(r, dir, result)
	})
}
