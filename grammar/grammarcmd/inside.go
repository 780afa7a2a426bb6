package grammarcmd

import (
	"math"
	"strconv"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/treebank"
)

type insideCmd struct {
	grammarArg
	sentenceFlags
	JSON bool `help:"Print one JSON object a line."`
}

// Help implements kong's detailed help.
func (insideCmd) Help() string {
	return `Examples:
  gfnem inside runs/wsj < sentences.txt
  echo "the dog barks" | gfnem inside english.json --json

Prints log p(x) of each sentence, in nats with twelve decimals, all trees added up; -Inf if the grammar has no tree for it.
It is computed in double precision. With --json an object has words, unknown (how many of them the grammar knows only as <unk>)
and log_prob, which is null for -Inf; of a line that is skipped it has line and error.

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
	answer := func(l *parse.Line, logX float64) {
		if l.Answer = formatLog(logX); c.JSON {
			l.Answer = encode(insideJSON{l.Words, unknown(g.Words, l), finite(logX)})
		}
	}
	a := answering{parsers: []parse.Parser{exact}, word: func(l *parse.Line) error {
		answer(l, math.Inf(-1))
		return nil
	}}
	a.several = func(lines []*parse.Line) error {
		logs, err := exact.LogLikelihoods(parse.Sentences(lines))
		for i, v := range logs {
			answer(lines[i], v)
		}
		return err
	}
	if c.JSON {
		a.instead = complaint
	}
	return c.answer(con, g, a)
}

type insideJSON struct {
	Words   []string `json:"words"`
	Unknown int      `json:"unknown"`
	LogProb *float64 `json:"log_prob"`
}

// unknown counts words of a line that a grammar knows only as others.
func unknown(known []string, l *parse.Line) (n int) {
	for _, id := range l.Sentence.Words {
		if treebank.IsUnknown(known[id]) {
			n++
		}
	}
	return n
}

// finite is nil for what JSON cannot write.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// formatLog writes a logarithm with twelve decimals: "-5.371643054000", "-Inf".
func formatLog(v float64) string {
	if v > -5e-13 {
		v = 0 // not -0
	}
	return strconv.FormatFloat(v, 'f', 12, 64)
}
