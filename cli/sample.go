package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
)

// sampling is the command for tasks whose models can be drawn from.
type sampling struct {
	Sample sampleCmd `cmd:"" help:"Draw from the model of a run."`
}

type sampleCmd struct {
	Dir string `arg:"" name:"run" help:"Folder of the run."`
	command.Backend
	command.Fallback
	Count        int    `help:"How many." default:"16"`
	Seed         uint64 `help:"Seed of the samples."`
	kong.Plugins        // flags of tasks
}

// sampling returns the command; nil if no task has models to draw from.
func (p Program) sampling() *sampling {
	s := &sampling{}
	for _, t := range p.Tasks {
		if own, ok := t.(command.Sampler); ok {
			s.Sample.Plugins = append(s.Sample.Plugins, own.SampleFlags())
		}
	}
	if s.Sample.Plugins == nil {
		return nil
	}
	return s
}

// Run draws from the model of a run.
func (c sampleCmd) Run(io command.Console, p *Program) error {
	if c.Count < 1 || c.Count > 1_000_000 {
		return badinput.Errorf("--count %d is not between 1 and 1000000", c.Count)
	}
	if err := command.CheckSeed(c.Seed); err != nil {
		return err
	}
	r, err := run.Read(c.Dir)
	if err != nil {
		return err
	}
	task, err := p.taskOf(r)
	if err != nil {
		return err
	}
	var own command.SampleFlags
	var others, known []string
	plugin := 0
	for _, t := range p.Tasks {
		if _, ok := t.(command.Sampler); !ok {
			continue
		}
		flags := c.Plugins[plugin].(command.SampleFlags)
		plugin++
		if known = append(known, t.Name()); t.Name() == task.Name() {
			own = flags
		} else {
			others = append(others, flags.Given()...)
		}
	}
	switch {
	case own == nil:
		return badinput.Errorf("%s is a run of the task %s, which has nothing to draw from: give one of %s", r.Dir(), task.Name(),
			strings.Join(known, " or "))
	case others != nil:
		slices.Sort(others)
		return badinput.Errorf("%s: the task %s has no such flag", others[0], task.Name())
	}
	command.TakesMemory("--count")
	return own.Sample(io, command.Draw{Run: r, Backend: c.Backend, Fallback: c.Fallback, Count: c.Count, Seed: c.Seed})
}
