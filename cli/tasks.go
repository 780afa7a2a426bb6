package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
)

// taskNames lists the tasks.
func (p Program) taskNames() []string {
	var names []string
	for _, t := range p.Tasks {
		names = append(names, t.Name())
	}
	return names
}

// presetNames lists the presets of every task, for help.
func (p Program) presetNames() string {
	var names []string
	for _, t := range p.Tasks {
		names = append(names, t.Name()+": "+strings.Join(t.Presets(), ", "))
	}
	return strings.Join(names, "; ")
}

// find returns the task of a name.
func (p Program) find(name string) (run.Task, error) {
	names := p.taskNames()
	if i := slices.Index(names, name); i >= 0 {
		return p.Tasks[i], nil
	}
	return nil, command.Unknown("task", name, names)
}

// taskOf returns the task of a run.
func (p Program) taskOf(r *run.Run) (run.Task, error) {
	name := r.Info().Task
	if slices.Contains(p.taskNames(), name) {
		return p.find(name)
	}
	return nil, badinput.Errorf("%s is a run of the task %q, which %s does not know", r.Dir(), name, p.Name)
}

// tableNames lists the tables.
func (p Program) tableNames() []string {
	var names []string
	for _, t := range p.Tasks {
		if r, ok := t.(run.Reproducer); ok {
			names = append(names, slices.Sorted(maps.Keys(r.Tables()))...)
		}
	}
	return names
}

// table returns the task that has a table, and checks the names of rows.
func (p Program) table(name string, rows []string) (run.Reproducer, error) {
	for _, t := range p.Tasks {
		r, ok := t.(run.Reproducer)
		if !ok || r.Tables()[name] == nil {
			continue
		}
		known := r.Tables()[name]
		for _, row := range rows {
			if !slices.Contains(known, row) {
				return nil, command.Unknown("row", row, known)
			}
		}
		return r, nil
	}
	return nil, command.Unknown("table", name, p.tableNames())
}

// usual is the configuration of a task's default preset.
func usual(task run.Task) any { return task.Config(task.Presets()[0]) }

// keysOf lists the keys of a task's configuration.
func keysOf(task run.Task) []string { return config.Keys(usual(task)) }
