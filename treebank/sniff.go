package treebank

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// sniffed is how much of the beginning of a file is looked at to tell what it holds.
const sniffed = 1 << 16

// The endings of files of trees and of CoNLL; others say nothing.
var (
	treeEndings  = []string{".mrg", ".trees", ".ptb"}
	conllEndings = []string{".conllu", ".conll", ".conllx"}
)

// ending is that of a file's name, the one before it if the file is compressed.
func ending(name string) string {
	return filepath.Ext(strings.TrimSuffix(strings.ToLower(name), ".gz"))
}

// beginning returns the first lines of a file, and takes none.
func (t *text) beginning() ([]byte, error) {
	some, err := t.in.Peek(sniffed)
	if len(some) == sniffed { // the last line may not be whole
		if i := bytes.LastIndexByte(some, '\n'); i >= 0 {
			some = some[:i]
		} else {
			for len(some) > 0 && !utf8.Valid(some) {
				some = some[:len(some)-1]
			}
		}
		err = nil
	}
	if len(some) > 0 || err == nil || errors.Is(err, io.EOF) {
		return some, nil
	}
	return nil, t.failed(err)
}

var conllLine = regexp.MustCompile(`(?m)\A(\s*\n|#.*\n)*[0-9]+([-.][0-9]+)?\t[^\t\n]+\t[^\t\n]*\t`)

// formatOf tells what a file holds by its name, or else by its beginning. A text whose first line starts with a bracket
// is one of trees only if brackets are nearly as many as words.
func formatOf(name string, beginning []byte) string {
	switch e := ending(name); {
	case slices.Contains(treeEndings, e):
		return FormatTrees
	case slices.Contains(conllEndings, e), conllLine.Match(beginning):
		return FormatCoNLL
	}
	start := bytes.TrimSpace(beginning)
	opened, atoms := bytes.Count(start, []byte("(")), len(bytes.FieldsFunc(start, func(r rune) bool {
		return r == '(' || r == ')' || r < utf8.RuneSelf && isSpace(byte(r))
	}))
	if len(start) > 0 && start[0] == '(' && 5*opened >= 2*atoms { // a tree has a bracket for each word, and a label in each
		return FormatTrees
	}
	return FormatText
}

// standing is punctuation, and parts of words, that stand alone in a text with spaces between tokens.
var standing = regexp.MustCompile("^([.,;:?!\"()]|''|``|n't|'(s|m|d|re|ve|ll)|-[LR]RB-|<unk>)$")

// tokensOf tells whether a text has spaces between tokens.
func tokensOf(beginning []byte) string {
	alone, attached := 0, 0
	for _, w := range words(string(beginning)) {
		switch {
		case standing.MatchString(w):
			alone++
		case !abbreviated(w) && len(cut(w)) > 1:
			attached++
		}
	}
	if alone > attached {
		return TokensSpaces
	}
	return TokensEnglish
}

// sentencesOf tells whether there is one sentence a line: whether hardly any ends inside one.
func sentencesOf(beginning []byte) string {
	lines, inside := 0, 0
	for line := range bytes.Lines(beginning) {
		if n := len(split(string(line))); n > 0 {
			lines, inside = lines+1, inside+n-1
		}
	}
	if 10*inside <= lines {
		return SentencesLines
	}
	return SentencesSplit
}

// isWrapped tells whether sentences go on from line to line.
func isWrapped(beginning []byte) bool {
	lines, whole := 0, 0
	for line := range bytes.Lines(beginning) {
		if chunks := words(string(line)); len(chunks) > 0 {
			lines++
			if final(chunks[len(chunks)-1]) {
				whole++
			}
		}
	}
	return 2*whole < lines
}
