package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
)

// shortcuts are the flags for keys of all tasks, each once, as fields of a struct that kong fills in.
type shortcuts struct {
	all    []command.Shortcut
	values reflect.Value // of the struct; field i is a *string or a bool
}

// shortcuts collects those of all tasks; nil if there are none.
func (p Program) shortcuts() (*shortcuts, error) {
	s := &shortcuts{}
	for _, t := range p.Tasks {
		own, ok := t.(command.Shortener)
		if !ok {
			continue
		}
		for _, f := range own.Shortcuts() {
			f.Help = t.Name() + ": " + f.Help
			i := slices.IndexFunc(s.all, func(g command.Shortcut) bool { return g.Flag == f.Flag })
			switch {
			case i < 0:
				s.all = append(s.all, f)
			case s.all[i].Key != f.Key || s.all[i].On != f.On:
				return nil, fmt.Errorf("the flag --%s of the task %s sets %s, and that of another task %s", f.Flag, t.Name(), f.Key,
					s.all[i].Key)
			default:
				s.all[i].Help += "; " + f.Help
			}
		}
	}
	if s.all == nil {
		return nil, nil
	}
	var fields []reflect.StructField
	for i, f := range s.all {
		kind, value := reflect.TypeFor[*string](), f.Placeholder
		if f.On != "" {
			kind, value = reflect.TypeFor[bool](), f.On
		}
		help := fmt.Sprintf("The same as --set %s=%s. %s.", f.Key, value, f.Help)
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Flag%d", i), Type: kind,
			Tag: reflect.StructTag(fmt.Sprintf("name:%q help:%q placeholder:%q", f.Flag, help, f.Placeholder))})
	}
	s.values = reflect.New(reflect.StructOf(fields)).Elem()
	return s, nil
}

// target is what kong fills in.
func (s *shortcuts) target() any { return s.values.Addr().Interface() }

// settings turns the flags that were given into settings of a task.
func (s *shortcuts) settings(task run.Task) (out []string, err error) {
	if s == nil {
		return nil, nil
	}
	known := keysOf(task)
	for i, f := range s.all {
		value := f.On
		switch v := s.values.Field(i).Interface().(type) {
		case *string:
			if v == nil {
				continue
			}
			value = *v
		case bool:
			if !v {
				continue
			}
		}
		if !slices.Contains(known, f.Key) {
			return nil, badinput.Errorf("--%s: the task %s has no such setting", f.Flag, task.Name())
		}
		out = append(out, f.Key+"="+strings.TrimSpace(value))
	}
	return out, nil
}
