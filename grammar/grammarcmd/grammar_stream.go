package grammarcmd

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/run"
)

// sentenceFlags say how sentences are read from standard input, as parse.Reading does.
type sentenceFlags struct {
	MaxLength int  `help:"Words of the longest sentence." default:"200"`
	Prepare   bool `help:"Look words up in lower case, and numbers as N, as \"gfnem data treebank\" writes them."`
	SkipBad   bool `help:"Answer a line that cannot be used with an empty line, and go on."`
}

// sentenceHelp describes them.
const sentenceHelp = `Sentences come on standard input, one a line, words separated by spaces; answers come in the same order, some thousand lines
at a time, and progress on standard error. Words that the grammar does not know count as <unk> if it has that. Lines that
cannot be used are errors: empty ones, a single word, more words than --max-length, an unknown word without <unk>, or what is
not UTF-8. With --skip-bad they are counted, and their answer is an empty line, so that line N of the output is always that
of line N of the input.`

// answer answers the sentences on standard input with a grammar and parsers of it.
func (f sentenceFlags) answer(
	c command.Console, g *grammar.Grammar, parsers []parse.Parser, answer func([]*parse.Line) error, instead func(*parse.Line) string,
) error {
	command.TakesMemory("--max-length")
	s, err := parse.NewStream(c.In, g, parse.Reading(f), parsers...)
	if err != nil {
		return err
	}
	bar := run.NewProgress(linesOnly(c), 1, "sentences") // how many there are is found out on the way
	bar.Every = linesEvery
	defer bar.Clear()
	done := 0
	s.Instead = instead
	s.Answer = func(lines []*parse.Line) error {
		bar.Expect(int64(s.Sentences()))
		bar.Set(int64(done), "")
		done += len(lines)
		return bar.During(groupText(lines), func() error { return answer(lines) })
	}
	if f, ok := c.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintln(c.Err, "Type sentences, one a line, and end with Ctrl-D.")
	}
	return s.Run(c.Out, c.Err)
}

// linesEvery is the time between two lines of progress.
var linesEvery = 10 * time.Second

// linesOnly is where progress goes: a bar would get between answers on the same terminal.
func linesOnly(c command.Console) io.Writer {
	if f, ok := c.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return struct{ io.Writer }{c.Err}
	}
	return c.Err
}

// groupText says what is being answered.
func groupText(lines []*parse.Line) string {
	n := parse.Longest(parse.Sentences(lines))
	if len(lines) == 1 {
		return fmt.Sprintf("now 1 sentence of %d words", n)
	}
	return fmt.Sprintf("now %d sentences of up to %d words", len(lines), n)
}
