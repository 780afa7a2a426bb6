package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/treebank"
)

// sentenceFlags say how sentences are read from standard input.
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

// maxSentenceBytes is the longest line that is read; more is not a sentence.
const maxSentenceBytes = 1 << 20

// sentence is a line of the input and, later, of the output.
type sentence struct {
	line   int
	words  []string // as they were given
	ids    []int32
	bad    *badLine // why it cannot be used, else nil
	answer string
}

// badLine is what is wrong with a line: a few words to count by, and all of it.
type badLine struct {
	kind string
	err  error
}

// complain marks a sentence as bad.
func (s *sentence) complain(kind, format string, args ...any) {
	s.bad = &badLine{kind, badinput.Errorf("standard input:%d: %w", s.line, fmt.Errorf(format, args...))}
}

// sentenceReader reads sentences without holding more than one line.
type sentenceReader struct {
	sentenceFlags
	in         *bufio.Reader
	vocabulary *treebank.Vocabulary
	limit      int    // words of the longest sentence
	reason     string // for the limit
	line       int
	buffer     []byte
}

func newSentenceReader(in io.Reader, words []string, f sentenceFlags) (*sentenceReader, error) {
	if f.MaxLength < 2 {
		return nil, badinput.Errorf("--max-length %d: a sentence has at least 2 words", f.MaxLength)
	}
	v, err := treebank.NewVocabulary(words)
	if err != nil {
		return nil, err
	}
	r := &sentenceReader{
		sentenceFlags: f, in: bufio.NewReaderSize(in, 1<<16), vocabulary: v, limit: f.MaxLength, reason: "see --max-length",
	}
	if mark, _ := r.in.Peek(3); string(mark) == "\ufeff" {
		r.in.Discard(3)
	}
	return r, nil
}

// next returns the next line, which may be bad, or io.EOF.
func (r *sentenceReader) next() (*sentence, error) {
	text, whole, err := r.readLine()
	if err != nil {
		return nil, err
	}
	r.line++
	s := &sentence{line: r.line}
	switch {
	case !whole:
		s.complain("too long", "the line is longer than %d bytes", maxSentenceBytes)
	case !utf8.Valid(text):
		s.complain("not UTF-8", "the line is not valid UTF-8; convert the text to UTF-8 first")
	case bytes.ContainsFunc(text, isControl):
		s.complain("with control characters", "the line has a control character: this is not a text")
	default:
		r.number(s, strings.FieldsFunc(string(text), isBlank))
	}
	return s, nil
}

// number looks up the words of a sentence.
func (r *sentenceReader) number(s *sentence, words []string) {
	switch n := len(words); {
	case n == 0:
		s.complain("empty", "the line is empty")
		return
	case n == 1:
		s.complain("of one word", "a sentence of one word: no nonterminal covers a single word")
		return
	case n > r.limit:
		s.complain("too long", "the sentence has %d words, the limit is %d (%s)", n, r.limit, r.reason)
		return
	}
	s.words = words
	s.ids = make([]int32, len(words))
	for i, w := range words {
		if r.Prepare {
			w = treebank.Options{}.PrepareWord(w)
		}
		if s.ids[i] = r.vocabulary.ID(w); s.ids[i] < 0 {
			s.complain("with an unknown word", "the grammar does not know the word %.60q, and has no %s", w, treebank.Unknown)
			return
		}
	}
}

// readLine returns a line without its end. A line that is too long is read over; whole is false then.
func (r *sentenceReader) readLine() (text []byte, whole bool, err error) {
	r.buffer = r.buffer[:0]
	whole = true
	for {
		part, err := r.in.ReadSlice('\n')
		if whole = whole && len(r.buffer)+len(part) <= maxSentenceBytes; whole {
			r.buffer = append(r.buffer, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, err == io.EOF && (len(part) > 0 || len(r.buffer) > 0 || !whole):
			return bytes.TrimRight(r.buffer, "\r\n"), whole, nil
		case err == io.EOF:
			return nil, false, err
		default:
			return nil, false, badinput.Errorf("read standard input: %w", err)
		}
	}
}

func isBlank(r rune) bool { return strings.ContainsRune(" \t\r\n\f\v", r) }

func isControl(r rune) bool { return (r < ' ' || r == 0x7f) && !isBlank(r) }
