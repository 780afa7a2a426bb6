package parse

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

// Reading says how lines of text become sentences.
type Reading struct {
	MaxLength int                  // words of the longest sentence
	Prepare   treebank.Preparation // what lines go through; AsIs for words between spaces that are looked up as they are
	SkipBad   bool                 // go on after a line that cannot be used
}

// AsIs leaves words as they stand between spaces.
var AsIs = treebank.Preparation{Tokens: treebank.TokensSpaces, Punctuation: true, KeepCase: true, KeepNumbers: true}

// maxLineBytes is the longest line that is read; more is not a sentence.
const maxLineBytes = 1 << 20

// Line is a line of text and, later, the answer to it.
type Line struct {
	Number   int
	Words    []string // as they were given, without those that are left out
	Sentence treebank.Sentence
	Answer   string
	Err      error // why it cannot be used

	kind string // the same in a few words, to count by
}

// Complain marks a line as one that cannot be used, and says why: in a few words to count by, and in all of them.
func (l *Line) Complain(kind, format string, args ...any) {
	l.kind, l.Err = kind, badinput.Errorf("standard input:%d: %w", l.Number, fmt.Errorf(format, args...))
}

// Sentences are those of lines.
func Sentences(lines []*Line) []treebank.Sentence {
	out := make([]treebank.Sentence, len(lines))
	for i, l := range lines {
		out[i] = l.Sentence
	}
	return out
}

// lineReader reads sentences without holding more than one line.
type lineReader struct {
	Reading
	in         *bufio.Reader
	vocabulary *treebank.Vocabulary
	limit      int    // words of the longest sentence
	reason     string // for the limit
	line       int
	buffer     []byte
}

func newLineReader(in io.Reader, words []string, how Reading) (*lineReader, error) {
	if how.MaxLength < 2 {
		return nil, badinput.Errorf("--max-length %d: a sentence has at least 2 words", how.MaxLength)
	}
	v, err := treebank.NewVocabulary(words)
	if err != nil {
		return nil, err
	}
	r := &lineReader{
		Reading: how, in: bufio.NewReaderSize(in, 1<<16), vocabulary: v,
		limit: how.MaxLength, reason: "see --max-length",
	}
	if mark, _ := r.in.Peek(3); string(mark) == "\ufeff" {
		r.in.Discard(3)
	}
	return r, nil
}

// next returns the next line, which may be bad, or io.EOF.
func (r *lineReader) next() (*Line, error) {
	text, whole, err := r.readLine()
	if err != nil {
		return nil, err
	}
	r.line++
	l := &Line{Number: r.line}
	switch {
	case !whole:
		l.Complain("too long", "the line is longer than %d bytes", maxLineBytes)
	case !utf8.Valid(text):
		l.Complain("not UTF-8", "the line is not valid UTF-8; convert the text to UTF-8 first")
	case bytes.ContainsFunc(text, isControl):
		l.Complain("with control characters", "the line has a control character: this is not a text")
	default:
		r.number(l, string(text))
	}
	return l, nil
}

// number cuts a line and looks up its words.
func (r *lineReader) number(l *Line, text string) {
	words := r.Prepare.Words(text)
	switch n := len(words); {
	case n == 0 && strings.TrimSpace(text) == "":
		l.Complain("empty", "the line is empty")
		return
	case n == 0:
		l.Complain("empty", "the line has no words, only punctuation")
		return
	case n > r.limit:
		l.Complain("too long", "the sentence has %d words, the limit is %d (%s)", n, r.limit, r.reason)
		return
	}
	l.Words = words
	ids := make([]int32, len(words))
	for i, w := range words {
		if r.Prepare != AsIs {
			w = r.Prepare.Word(w)
		}
		if ids[i] = r.vocabulary.ID(w); ids[i] < 0 {
			l.Complain("with an unknown word", "the grammar does not know the word %.60q, and has no %s", w,
				treebank.Unknown)
			return
		}
	}
	l.Sentence.Words = ids
}

// readLine returns a line without its end. A line that is too long is read over; whole is false then.
func (r *lineReader) readLine() (text []byte, whole bool, err error) {
	r.buffer = r.buffer[:0]
	whole = true
	for {
		part, err := r.in.ReadSlice('\n')
		if whole = whole && len(r.buffer)+len(part) <= maxLineBytes; whole {
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
