package grammarcmd

import (
	"strconv"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar/parse"
)

type insideCmd struct {
	grammarArg
	sentenceFlags
}

// Help implements kong's detailed help.
func (insideCmd) Help() string {
	return `Examples:
  gfnem inside runs/wsj < sentences.txt
  echo "the dog barks" | gfnem inside english.json

Prints log p(x) of each sentence, in nats with twelve decimals, all trees added up; -Inf if the grammar has no tree for it.
It is computed in double precision.

` + sentenceHelp + "\n\n" + command.FallbackHelp
}

// Run prints the likelihood of sentences.
func (c insideCmd) Run(con command.Console) error {
	g, b, err := c.open(con)
	if err != nil {
		return err
	}
	exact := parse.NewExact(b, g)
	defer exact.Close()
	return c.answer(con, g, []parse.Parser{exact}, func(lines []*parse.Line) error {
		logs, err := exact.LogLikelihoods(parse.Sentences(lines))
		for i, v := range logs {
			lines[i].Answer = formatLog(v)
		}
		return err
	}, nil)
}

// formatLog writes a logarithm with twelve decimals: "-5.371643054000", "-Inf".
func formatLog(v float64) string {
	if v > -5e-13 {
		v = 0 // not -0
	}
	return strconv.FormatFloat(v, 'f', 12, 64)
}
