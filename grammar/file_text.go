package grammar

import (
	"errors"
	"io"
	"unicode/utf8"
)

// textReader passes text on, counts its lines, and stops at what is not UTF-8.
type textReader struct {
	r       io.Reader
	read    int64   // bytes passed on
	newline []int64 // where lines end that are not counted yet
	line    int     // the line at the position last asked for
	partial []byte  // the beginning of a character
	bad     error
	badLine int
}

func (t *textReader) Read(buf []byte) (int, error) {
	if t.bad != nil {
		return 0, t.bad
	}
	n, err := t.r.Read(buf)
	for i, c := range buf[:n] {
		if c == '\n' {
			t.newline = append(t.newline, t.read+int64(i))
		}
	}
	if at := t.invalid(buf[:n], err); at >= 0 {
		t.bad, t.badLine = errors.New("the text is not UTF-8"), t.lineAt(t.read+int64(at))
		return 0, t.bad
	}
	t.read += int64(n)
	return n, err
}

// invalid finds the first byte that is no text, or -1. Text may end inside a character, unless there is no more.
func (t *textReader) invalid(text []byte, err error) int {
	total := len(text)
	text = append(t.partial, text...)
	for len(text) > 0 {
		if text[0] < utf8.RuneSelf {
			text = text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			if err == nil && !utf8.FullRune(text) {
				break
			}
			return max(total-len(text), 0)
		}
		text = text[size:]
	}
	t.partial = append([]byte(nil), text...)
	return -1
}

// lineAt is the line of a position. Positions asked for do not go back.
func (t *textReader) lineAt(offset int64) int {
	done := 0
	for done < len(t.newline) && t.newline[done] < offset {
		done++
	}
	t.line += done
	t.newline = t.newline[done:]
	return t.line
}
