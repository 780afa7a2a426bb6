package grammarcmd

import (
	"cmp"
	"io"
	"os"
	"slices"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/export"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/run"
)

type grammarCmd struct {
	Export grammarExportCmd `cmd:"" help:"Write the grammar of a run as JSON, as text or for NLTK."`
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
	Format    string  `help:"json, text for people, or nltk for nltk.PCFG.fromstring." default:"json"`
	Threshold float64 `help:"Only rules of at least this probability; in json and nltk also the most probable one of every symbol." default:"0" placeholder:"P"`
	Out       string  `help:"File to write, which appears complete or not at all (default: standard output)." placeholder:"FILE"`
}

// Help implements kong's detailed help.
func (grammarExportCmd) Help() string {
	return `Examples:
  gfnem grammar export runs/wsj --out wsj.json
  gfnem grammar export runs/wsj --format text --threshold 0.05     the rules that matter, to read
  gfnem grammar export runs/wsj --format nltk --threshold 0.001 > wsj.pcfg

Writes the newest checkpoint's grammar as explicit probabilities, in double precision, the most probable rules of every
symbol first. The data set of the run is not needed. "gfnem parse" and "gfnem inside" read the file like the run itself:

  {"kind": "cfg", "nonterminals": ["A"], "preterminals": ["T"], "words": ["w"], "root": {"A": 1},
   "binary": {"A": {"A T": 0.5, "T T": 0.5}}, "emit": {"T": {"w": 1}}}

In an "ncfg" the keys of binary and emit carry the parent after a bar: "A|ROOT", "A|A", "T|A". "prepared" says what new text
goes through before its words are looked up. With --threshold the probabilities of JSON and NLTK sum to one again; those of text
stay as they are.

` + command.FallbackHelp
}

// Run exports a grammar.
func (c grammarExportCmd) Run(con command.Console) error {
	known := []string{"json", "text", "nltk"}
	if !slices.Contains(known, c.Format) {
		return command.Unknown("format", c.Format, known)
	}
	if !(c.Threshold >= 0 && c.Threshold <= 1) {
		return badinput.Errorf("--threshold %v is not between 0 and 1", c.Threshold)
	}
	g, _, err := c.open(con)
	if err != nil {
		return err
	}
	if c.Threshold > 0 && c.Format != "text" {
		g = export.Above(g, c.Threshold)
	}
	write := map[string]func(io.Writer) error{
		"json": g.Write,
		"nltk": func(w io.Writer) error { return export.NLTK(w, g) },
		"text": func(w io.Writer) error { return export.Text(w, g, c.Threshold) },
	}[c.Format]
	if c.Out == "" {
		return write(con.Out)
	}
	return command.WriteWhole(c.Out, write)
}
