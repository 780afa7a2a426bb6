package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
)

type configCmd struct {
	Task   string `arg:"" help:"Whose keys: ${tasks}."`
	Key    string `arg:"" optional:"" help:"Only this key, or those that begin like this, such as optim."`
	Preset string `help:"Whose values are shown (${presets}; default: the first)." placeholder:"NAME"`
	JSON   bool   `help:"Print as a JSON array on standard output."`
}

// Run prints the keys of a task's configuration.
func (c configCmd) Run(io command.Console, p *Program) error {
	task, err := p.find(c.Task)
	if err != nil {
		return err
	}
	shown, others, err := presetsOf(task, c.Preset)
	if err != nil {
		return err
	}
	if keys := config.Keys(shown.Config); !slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, c.Key) }) {
		return command.Unknown("key", c.Key, keys)
	}
	if c.JSON {
		return printKeys(io, shown, others, c.Key)
	}
	text, err := config.Describe(shown, others, c.Key)
	if err != nil {
		return err
	}
	if c.Key == "" {
		text = fmt.Sprintf("# The keys of the task %s, with the values of the preset %s.\n\n", task.Name(), shown.Name) + text
	}
	_, err = fmt.Fprint(io.Out, text)
	return err
}

// presetsOf returns the preset of a name, "" for the default, and the others.
func presetsOf(task run.Task, name string) (shown config.Named, others []config.Named, err error) {
	name = cmp.Or(name, task.Presets()[0])
	if !slices.Contains(task.Presets(), name) {
		return shown, nil, command.Unknown("preset", name, task.Presets())
	}
	for _, other := range task.Presets() {
		preset := config.Named{Name: other, Config: task.Config(other)}
		if other == name {
			shown = preset
		} else {
			others = append(others, preset)
		}
	}
	return shown, others, nil
}

// key is what JSON says of a key; numbers without a limit have none.
type key struct {
	Name    string            `json:"name"`
	Type    string            `json:"type"`
	Value   string            `json:"value"` // as TOML writes it
	Presets map[string]string `json:"presets"`
	Limits  string            `json:"limits"`
	Choices []string          `json:"choices,omitempty"`
	Help    string            `json:"help"`
	Resume  bool              `json:"may_change_on_resume"`
}

func printKeys(io command.Console, shown config.Named, others []config.Named, prefix string) error {
	all := append([]config.Named{shown}, others...)
	out := []key{}
	for i, preset := range all {
		fields, err := config.Fields(preset.Config)
		if err != nil {
			return err
		}
		fields = slices.DeleteFunc(fields, func(f config.Field) bool { return f.Value == "" || !strings.HasPrefix(f.Name, prefix) })
		for j, f := range fields {
			if i == 0 {
				out = append(out, key{f.Name, f.Type, f.Value, map[string]string{}, f.Limits(), f.Choices, f.Help, f.Resume})
			}
			out[j].Presets[preset.Name] = f.Value
		}
	}
	return command.PrintJSON(io.Out, out)
}
