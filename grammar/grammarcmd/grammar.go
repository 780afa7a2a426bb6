package grammarcmd

import (
	"cmp"
	"os"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/run"
)

type grammarCmd struct {
	Export grammarExportCmd `cmd:"" help:"Write the grammar of a run as JSON."`
}

// grammarArg names a grammar.
type grammarArg struct {
	Grammar string `arg:"" help:"Folder of a run of \"train grammar\", or a grammar in a JSON file."`
	command.Backend
	command.Fallback
}

// open reads the grammar and opens what computes with it.
func (a grammarArg) open(c command.Console) (*grammar.Grammar, compute.Backend, error) {
	info, err := os.Stat(a.Grammar)
	if err != nil {
		return nil, nil, badinput.Errorf("no run and no grammar file: %w", err)
	}
	b, err := a.Open()
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		g, err := grammar.Load(a.Grammar)
		return g, b, err
	}
	r, err := run.Read(a.Grammar)
	if err != nil {
		return nil, nil, err
	}
	g, warnings, err := induce.ReadGrammar(b, r)
	return g, b, cmp.Or(a.Allow(c, r, warnings), err)
}

type grammarExportCmd struct {
	grammarArg
	Out string `help:"File to write, which appears complete or not at all (default: standard output)." placeholder:"FILE"`
}

// Help implements kong's detailed help.
func (grammarExportCmd) Help() string {
	return `Examples:
  gfnem grammar export runs/wsj --out wsj.json
  gfnem grammar export runs/wsj | cut -c 1-200        the first rules of every symbol

Writes the newest checkpoint's grammar as explicit probabilities, in double precision, the most probable rules of every
symbol first. The data set of the run is not needed. "gfnem parse" and "gfnem inside" read the file like the run itself:

  {"kind": "cfg", "nonterminals": ["A"], "preterminals": ["T"], "words": ["w"], "root": {"A": 1},
   "binary": {"A": {"A T": 0.5, "T T": 0.5}}, "emit": {"T": {"w": 1}}}

In an "ncfg" the keys of binary and emit carry the parent after a bar: "A|ROOT", "A|A", "T|A".

` + command.FallbackHelp
}

// Run exports a grammar.
func (c grammarExportCmd) Run(con command.Console) error {
	g, _, err := c.open(con)
	if err != nil {
		return err
	}
	if c.Out == "" {
		return g.Write(con.Out)
	}
	return command.WriteWhole(c.Out, g.Write)
}
