package main

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
)

// sentenceFlags say how sentences are read from standard input, as parse.Reading does.
type sentenceFlags struct {
	MaxLength int  `help:"Words of the longest sentence." default:"200"`
	Prepare   bool `help:"Look words up in lower case, and numbers as N, as \"gfnem data treebank\" writes them."`
	SkipBad   bool `help:"Answer a line that cannot be used with an empty line, and go on."`
}

// sentenceHelp describes them.
const sentenceHelp = `Sentences come on standard input, one a line, words separated by spaces; answers come in the same order, some thousand lines
at a time. Words that the grammar does not know count as <unk> if it has that. Lines that cannot be used are errors: empty
ones, a single word, more words than --max-length, an unknown word without <unk>, or what is not UTF-8. With --skip-bad
they are counted, and their answer is an empty line, so that line N of the output is always that of line N of the input.`

// answer answers the sentences on standard input with a grammar and parsers of it.
func (f sentenceFlags) answer(
	c console, g *grammar.Grammar, parsers []parse.Parser, answer func([]*parse.Line) error, instead func(*parse.Line) string,
) error {
	takesMemory("--max-length")
	s, err := parse.NewStream(c.in, g, parse.Reading(f), parsers...)
	if err != nil {
		return err
	}
	s.Answer, s.Instead = answer, instead
	if f, ok := c.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintln(c.err, "Type sentences, one a line, and end with Ctrl-D.")
	}
	return s.Run(c.out, c.err)
}
