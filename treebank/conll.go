package treebank

import (
	"bufio"
	"bytes"
	"errors"
	"regexp"
	"strings"
)

var (
	conllID    = regexp.MustCompile(`^[0-9]+$`)
	conllOther = regexp.MustCompile(`^[0-9]+[-.][0-9]+$`) // several words that are written as one, and words that are not written
)

// readCoNLL reads sentences of CoNLL-U or CoNLL-X: a word a line with its number, form and part of speech in columns 1,
// 2 and 4, an empty line after each sentence, comments after #.
func readCoNLL(t *text, o Options, visit func(raw)) error {
	s, start := raw{}, 0
	end := func() {
		if s.leaves > 0 {
			s.where = t.at(start)
			visit(s)
		}
		s, start = raw{}, 0
	}
	err := t.eachLine(func(line []byte) error {
		if len(bytes.TrimSpace(line)) == 0 {
			end()
			return nil
		} else if line[0] == '#' {
			return nil
		}
		columns := strings.Split(strings.TrimRight(string(line), "\r"), "\t")
		if conllOther.MatchString(columns[0]) {
			return nil
		}
		if len(columns) < 4 || !conllID.MatchString(columns[0]) || strings.TrimSpace(columns[1]) == "" {
			return t.errorf("%q is no line of CoNLL: these have ID, form, lemma and part of speech with tabs between", shorten(string(line)))
		}
		if start == 0 {
			start = t.line
		}
		s.leaves++
		word, tag := columns[1], columns[3]
		if !o.DropPunctuation || tag != "PUNCT" && tag != "PUNC" && !IsPunctuation(word) {
			s.words = append(s.words, o.PrepareWord(word))
		}
		return nil
	})
	if err == nil {
		end()
	}
	return err
}

// eachLine calls do with every line, without its end.
func (t *text) eachLine(do func(line []byte) error) error {
	lines := bufio.NewScanner(t.in)
	lines.Buffer(nil, maxLineBytes+1) // the end of the line counts, too
	for ; lines.Scan(); t.line++ {
		if err := t.check(lines.Bytes()); err != nil {
			return err
		}
		if err := do(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return t.errorf("the line is longer than %d bytes", maxLineBytes)
	} else if err != nil {
		return t.failed(err)
	}
	return nil
}
