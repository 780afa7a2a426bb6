package grammarcmd

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// sentenceFlags say how sentences are read from standard input.
type sentenceFlags struct {
	MaxLength int    `help:"Words of the longest sentence." default:"200"`
	AsIs      bool   `name:"as-is" help:"Look words up as they stand between spaces, whatever the training text went through."`
	Tokens    string `help:"Cut lines in another way than the training text was cut: english or spaces." placeholder:"HOW"`
	Prepare   bool   `help:"With a grammar that does not say what its text went through: look words up in lower case, and numbers as N."`
	SkipBad   bool   `help:"Answer a line that cannot be used with an empty line, and go on."`
}

// sentenceHelp describes them.
const sentenceHelp = `Sentences come on standard input, one a line; answers come in the same order, some thousand lines at a time, and progress on
standard error. Lines go through what the training text of a run went through: cut into tokens, in lower case, numbers as N,
without punctuation; --as-is takes words as they stand between spaces. Words that the grammar does not know count as <unk> if it
has that. Lines that cannot be used are errors: empty ones, more words than --max-length, an unknown word without <unk>, or
what is not UTF-8. With --skip-bad they are counted, and their answer is an empty line, so that line N of the output is always
that of line N of the input. A grammar has sentences of two words or more: of one word there is a tree (X word), with log p(x) = -Inf.`

// reading says how lines become sentences of a grammar.
func (f sentenceFlags) reading(g *grammar.Grammar) (parse.Reading, error) {
	how := parse.Reading{MaxLength: f.MaxLength, Prepare: parse.AsIs, SkipBad: f.SkipBad}
	switch known := []string{treebank.TokensEnglish, treebank.TokensSpaces}; {
	case f.AsIs && (f.Prepare || f.Tokens != ""):
		return how, badinput.Errorf("--as-is excludes --prepare and --tokens")
	case f.AsIs:
		return how, nil
	case f.Tokens != "" && !slices.Contains(known, f.Tokens):
		return how, command.Unknown("way to cut lines", f.Tokens, known)
	case g.Prepared != nil:
		how.Prepare = *g.Prepared
	case f.Prepare:
		how.Prepare.KeepCase, how.Prepare.KeepNumbers = false, false
	}
	if f.Tokens != "" {
		how.Prepare.Tokens = f.Tokens
	}
	return how, nil
}

// answering is what answers sentences.
type answering struct {
	parsers []parse.Parser
	several func([]*parse.Line) error
	word    func(*parse.Line) error  // a line of one word
	instead func(*parse.Line) string // of a line that cannot be used; nil for an empty line
}

// answer answers the sentences on standard input with a grammar.
func (f sentenceFlags) answer(c command.Console, g *grammar.Grammar, a answering) error {
	command.TakesMemory("--max-length")
	how, err := f.reading(g)
	if err != nil {
		return err
	}
	s, err := parse.NewStream(c.In, g, how, a.parsers...)
	if err != nil {
		return err
	}
	bar := run.NewProgress(linesOnly(c), 1, "sentences") // how many there are is found out on the way
	bar.Every = linesEvery
	defer bar.Clear()
	done := 0
	s.Instead, s.Word = a.instead, a.word
	s.Answer = func(lines []*parse.Line) error {
		bar.Expect(int64(s.Sentences()))
		bar.Set(int64(done), "")
		done += len(lines)
		return bar.During(groupText(lines), func() error { return a.several(lines) })
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
