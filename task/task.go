// Package task makes a task of a program (see package cli) from what em.New takes: a model, an environment, a policy and
// data. What training needs besides is here: counters, checkpoints, metrics, measures, a report, tables of many runs.
//
//	var Task = task.Of(task.Definition[Config]{
//		Name:    "segment",
//		Presets: []task.Preset[Config]{{"quick", Config{Words: 100}}},
//		Start: func(b compute.Backend, c Config) (task.Learning, error) {
//			return task.Learning{Spec: em.Spec{...}, MSteps: 1000}, nil
//		},
//	})
//
//	func main() { cli.Main(Task) }
//
// Another program opens the folder of a run by Task.Open, and samples the posterior of new observations.
package task

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/run"
)

// Definition describes a task whose configuration is a C: a struct with the tags of package config, of which struct{} is
// one. The key "seed", if there is one, is the seed of all random numbers.
type Definition[C any] struct {
	Name    string // that the user types
	About   string // what is learned, in a sentence, for reports; may be empty
	Presets []Preset[C]
	// Start says what is learned with a configuration.
	Start func(b compute.Backend, c C) (Learning, error)
	// Tables compare settings, each in several runs.
	Tables []Table
	// Shortcuts are flags for keys that are set often.
	Shortcuts []command.Shortcut
}

// Preset is a configuration with a name. The first one of a Definition is the default; if there are none, that is the zero
// value with the name "default".
type Preset[C any] struct {
	Name   string
	Config C
}

// Task is a run.Task made from a Definition.
type Task[C any] struct{ d Definition[C] }

// Of makes a task.
func Of[C any](d Definition[C]) *Task[C] {
	if d.Presets == nil {
		d.Presets = []Preset[C]{{Name: "default"}}
	}
	return &Task[C]{d}
}

var (
	_ run.Adjustable    = &Task[struct{}]{}
	_ command.Shortener = &Task[struct{}]{}
)

// Name implements run.Task.
func (t *Task[C]) Name() string { return t.d.Name }

// Presets implements run.Task.
func (t *Task[C]) Presets() []string {
	var names []string
	for _, p := range t.d.Presets {
		names = append(names, p.Name)
	}
	return names
}

// Config implements run.Task: a pointer to a copy of a preset.
func (t *Task[C]) Config(preset string) any {
	for _, p := range t.d.Presets {
		if p.Name == preset {
			return &p.Config
		}
	}
	return nil
}

// Shortcuts implements command.Shortener.
func (t *Task[C]) Shortcuts() []command.Shortcut { return t.d.Shortcuts }

// Start implements run.Task.
func (t *Task[C]) Start(b compute.Backend, configuration any) (run.Session, error) {
	return t.start(b, configuration.(*C))
}

func (t *Task[C]) start(b compute.Backend, c *C) (*Session, error) {
	l, err := t.d.Start(b, *c)
	if err != nil {
		return nil, err
	}
	seed, _ := seedOf(c)
	s, err := Start(b, seed, l)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.d.Name, blame.Field(t.d.Start, "Definition.Start").Returned(err))
	}
	s.name, s.about = t.d.Name, t.d.About
	return s, nil
}

// seedOf returns the seed of a configuration, and whether it has one.
func seedOf(c any) (seed uint64, ok bool) {
	fields, _ := config.Fields(c) // a tag that makes no sense hides no key
	for _, f := range fields {
		if f.Name == "seed" {
			seed, err := strconv.ParseUint(f.Value, 10, 64)
			return seed, err == nil
		}
	}
	return 0, false
}

// Opened is the model of a run.
type Opened[C any] struct {
	*Session
	Config C
	Step   uint64
	// Skipped has a line for each newer checkpoint that is damaged.
	Skipped []string
}

// Open returns the model of a run as its newest checkpoint has it, the best one if the run keeps that (Learning.Best); backend nil means the default one. Nothing is written.
// The session is made by Start, which needs the data of the run. Close it at the end.
func (t *Task[C]) Open(b compute.Backend, dir string) (*Opened[C], error) {
	r, err := run.Read(dir)
	if err != nil {
		return nil, err
	}
	if name := r.Info().Task; name != t.d.Name {
		return nil, badinput.Errorf("%s is a run of the task %q, not of %q", dir, name, t.d.Name)
	}
	c := t.Config(t.Presets()[0]).(*C) // run.toml has every key
	if err := config.Resolve(c, config.File(filepath.Join(dir, "run.toml"))); err != nil {
		return nil, err
	}
	if b == nil {
		if b, err = backend.Open(""); err != nil {
			return nil, badinput.Errorf("%w", err)
		}
	}
	s, err := t.start(b, c)
	if err != nil {
		return nil, err
	}
	o := &Opened[C]{Session: s, Config: *c}
	if err := o.restore(r); err != nil {
		s.Close()
		return nil, err
	}
	return o, nil
}

func (o *Opened[C]) restore(r *run.Run) error {
	if err := r.CheckData(o.Data()); err != nil {
		return err
	}
	state, skipped, err := r.Load()
	if err != nil {
		return err
	}
	if err := o.Restore(state); err != nil {
		return fmt.Errorf("open run %s at step %d: %w", r.Dir(), state.Step, err)
	}
	o.Step, o.Skipped = state.Step, skipped
	return o.best.Show()
}
