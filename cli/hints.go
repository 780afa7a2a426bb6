package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/internal/suggest"
	"github.com/gfnem/gfnem/run"
)

var (
	unknownFlag = regexp.MustCompile(`^unknown flag (--?[^,= ]+)`)
	unexpected  = regexp.MustCompile(`^unexpected argument ([^,]+)`)
	missingArg  = regexp.MustCompile(`^expected "<([^>]+)>`)
)

// misread says what is wrong with a command line that could not be parsed, and what was probably meant.
func (p Program) misread(err error, args []string) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return badinput.Errorf("%w", err)
	}
	node := parse.Context.Model.Node // the command, as far as it was understood
	for _, step := range parse.Context.Path {
		if step.Command != nil {
			node = step.Command
		}
	}
	see := "(see " + strings.TrimSpace(self.Name()+" "+strings.TrimPrefix(node.FullPath(), parse.Context.Model.Name)) + " --help)"
	see = strings.Join(strings.Fields(see), " ")
	text := err.Error()
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		return badinput.Errorf("unknown flag %s%s %s", m[1], p.meantFlag(strings.TrimLeft(m[1], "-"), node, args), see)
	}
	if m := unexpected.FindStringSubmatch(text); m != nil && len(node.Children) > 0 {
		return badinput.Errorf("unknown command %s%s %s", m[1], choose(m[1], commandsOf(node)), see)
	}
	if m := missingArg.FindStringSubmatch(text); m != nil {
		for _, a := range node.Positional {
			if a.Name == m[1] {
				text = fmt.Sprintf("<%s> is missing. %s", m[1], strings.TrimSuffix(a.Help, "."))
			}
		}
		if m[1] == "run" {
			text += "; " + self.Command("runs") + " lists yours"
		}
	}
	return badinput.Errorf("%s %s", text, see)
}

func commandsOf(n *kong.Node) (names []string) {
	for _, c := range n.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// choose says which of some names was meant, or lists them all.
func choose(name string, known []string) string {
	if near, ok := suggest.Nearest(name, known); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; there are " + strings.Join(known, ", ")
}

// meantFlag says what may be meant by a flag that a command does not have: another flag, or a key of a configuration.
func (p Program) meantFlag(name string, node *kong.Node, args []string) string {
	var flags, near []string
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			flags = append(flags, f.Name)
		}
	}
	for _, f := range flags {
		if d := suggest.Distance(name, f); d <= len(name)/3 && d < len(f) {
			near = append(near, "--"+f)
		}
	}
	if slices.Contains(flags, "set") {
		for _, key := range p.meantKeys(name, args) {
			near = append(near, "--set "+key+"=...")
		}
	}
	if near == nil {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// usualNames are what keys are called elsewhere.
var usualNames = map[string][]string{
	"lr": {"rate"}, "learning-rate": {"rate"}, "batch-size": {"batch"}, "hidden": {"width"}, "size": {"width"},
	"steps": lengths, "iterations": lengths, "updates": lengths, "epochs": lengths, "max-steps": lengths,
}

// lengths are the keys that say how long a training is.
var lengths = []string{"iterations", "updates", "epochs"}

// meantKeys are the keys of a task, named among the arguments or that of the run there, that a flag may stand for.
func (p Program) meantKeys(name string, args []string) (keys []string) {
	for _, task := range p.Tasks {
		named := slices.Contains(args, task.Name()) || len(p.Tasks) == 1
		for _, arg := range args {
			r, err := run.Read(arg)
			named = named || err == nil && r.Info().Task == task.Name()
		}
		if !named {
			continue
		}
		fields, _ := config.Fields(usual(task)) // a tag that makes no sense hides no key
		wanted := append([]string{strings.ReplaceAll(name, "-", "_")}, usualNames[strings.ReplaceAll(name, "_", "-")]...)
		for _, f := range fields {
			last := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
			if f.Value != "" && (slices.Contains(wanted, f.Name) || slices.Contains(wanted, last)) {
				keys = append(keys, f.Name)
			}
		}
		if keys != nil {
			return keys
		}
		for _, f := range fields { // mistyped
			last := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
			if f.Value != "" && min(suggest.Distance(wanted[0], last), suggest.Distance(wanted[0], f.Name)) <= len(name)/4 {
				keys = append(keys, f.Name)
			}
		}
		return keys[:min(len(keys), 4)]
	}
	return nil
}
