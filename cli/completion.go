package cli

import (
	"embed"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/cli/command"
)

// The scripts that complete commands, as templates over a completer.
//
//go:embed completion
var completions embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Which shell: bash, zsh or fish."`
}

// Run prints the script of a shell.
func (c completionCmd) Run(io command.Console, p *Program, program *kong.Kong) error {
	return p.complete(io.Out, c.Shell, program.Model.Node)
}

// complete writes the script that completes commands in a shell.
func (p *Program) complete(w io.Writer, shell string, root *kong.Node) error {
	name := "completion/" + shell + ".tmpl"
	t, err := template.New(shell+".tmpl").Funcs(template.FuncMap{"quote": quote, "join": strings.Join}).ParseFS(completions, name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return t.Execute(w, completer{Name: p.Name, Commands: p.completed(root, "")})
}

// completer is what a script knows.
type completer struct {
	Name     string
	Commands []completed
}

// completed is a command, and what can follow it.
type completed struct {
	Path  string // below the program, with spaces; "" for the program
	Words []word // commands below it, or choices of its arguments
	Files bool   // files can follow
	Flags []option
}

type word struct{ Word, Help string }

// option is a flag.
type option struct {
	Long, Short, Help string
	Takes             bool     // a value
	Words             []string // choices of the value; those that end in "=" go on
	Files             bool     // its value can be a file
}

// Keys says that the value is a key of a configuration, after which one goes on typing.
func (o option) Keys() bool { return len(o.Words) > 0 && strings.HasSuffix(o.Words[0], "=") }

// completed lists a command and all below it.
func (p *Program) completed(n *kong.Node, path string) []completed {
	c := completed{Path: path}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			o := option{Long: f.Name, Help: f.Help, Takes: !f.IsBool() && !f.IsCounter()}
			if f.Short != 0 {
				o.Short = string(f.Short)
			}
			if o.Takes {
				o.Words, o.Files = p.choices(f.Value)
			}
			c.Flags = append(c.Flags, o)
		}
	}
	for _, a := range n.Positional {
		words, files := p.choices(a)
		for _, w := range words {
			c.Words = append(c.Words, word{Word: w})
		}
		c.Files = c.Files || files
	}
	var out []completed
	for _, below := range n.Children {
		if !below.Hidden {
			c.Words = append(c.Words, word{below.Name, below.Help})
			out = append(out, p.completed(below, strings.TrimSpace(path+" "+below.Name))...)
		}
	}
	return append([]completed{c}, out...)
}

// choices are what a flag or an argument can be, or whether it can be a file.
func (p *Program) choices(v *kong.Value) (words []string, files bool) {
	switch v.Name {
	case "task":
		return p.taskNames(), false
	case "table":
		return p.tableNames(), false
	case "preset":
		for _, t := range p.Tasks {
			words = append(words, t.Presets()...)
		}
	case "backend":
		return backend.Names(), false
	case "set":
		for _, t := range p.Tasks {
			for _, key := range keysOf(t) {
				words = append(words, key+"=")
			}
		}
	}
	if v.Enum != "" {
		words = v.EnumSlice()
	}
	slices.Sort(words)
	kind := v.Target.Type()
	if kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	return slices.Compact(words), words == nil && kind.Kind() == reflect.String
}

// quote makes text one word of a shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "'", `’`), "\n", " ") + "'"
}
