package treebank

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/gfnem/gfnem/badinput"
)

// Limits of a word and of a line of plain text.
const (
	maxWordBytes = 1 << 12
	maxLineBytes = 1 << 20
)

// text cuts a file into brackets and words, and counts lines.
type text struct {
	name string
	in   *bufio.Reader
	line int
	size int // bytes since it was last set to 0
	atom []byte
}

func newText(r io.Reader, name string) (*text, error) {
	t := &text{name: name, in: bufio.NewReaderSize(r, 1<<16), line: 1}
	if magic, _ := t.in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(t.in)
		if err != nil {
			return nil, t.failed(err)
		}
		t.in = bufio.NewReaderSize(z, 1<<16)
	}
	if mark, _ := t.in.Peek(3); string(mark) == "\ufeff" {
		t.in.Discard(3)
	}
	return t, nil
}

// token returns "(", ")" or what stands between brackets and white space.
func (t *text) token() (string, error) {
	c, err := t.skipSpace()
	if err != nil {
		return "", err
	}
	if c == '(' || c == ')' {
		return string(c), nil
	}
	t.atom = append(t.atom[:0], c)
	for {
		c, err := t.byte()
		if err == io.EOF {
			break
		} else if err != nil {
			return "", err
		}
		if isSpace(c) || c == '(' || c == ')' {
			if err := t.in.UnreadByte(); err != nil {
				return "", err
			}
			break
		}
		if t.atom = append(t.atom, c); len(t.atom) > maxWordBytes {
			return "", t.errorf("a word of more than %d bytes: this is not a file of trees", maxWordBytes)
		}
	}
	t.size += len(t.atom)
	return string(t.atom), t.check(t.atom)
}

func (t *text) skipSpace() (byte, error) {
	for {
		c, err := t.byte()
		if err != nil {
			return 0, err
		}
		t.size++
		if !isSpace(c) {
			return c, nil
		}
		if c == '\n' {
			t.line++
		}
	}
}

func (t *text) byte() (byte, error) {
	c, err := t.in.ReadByte()
	if err != nil && err != io.EOF {
		err = t.failed(err)
	}
	return c, err
}

// check refuses bytes that are not text.
func (t *text) check(s []byte) error {
	if !utf8.Valid(s) {
		return t.errorf("%q is not valid UTF-8; convert the file to UTF-8 first", shorten(string(s)))
	}
	for _, c := range s {
		if c < ' ' && !isSpace(c) || c == 0x7f {
			return t.errorf("control character %#02x: this is not a text file", c)
		}
	}
	return nil
}

func (t *text) errorf(format string, args ...any) error {
	return badinput.Errorf("%s:%d: "+format, append([]any{t.name, t.line}, args...)...)
}

func (t *text) failed(err error) error {
	return badinput.Errorf("read %s: %w", t.name, err)
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

// shorten returns about the first 40 bytes of a text, for a message.
func shorten(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// at names a line of the file.
func (t *text) at(line int) string { return t.name + ":" + strconv.Itoa(line) }
