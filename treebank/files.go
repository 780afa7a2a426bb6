package treebank

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// Names of the files of a data set. Each split has a file of sentences, NAME.txt, and of spans, NAME.spans, if there
// are any.
const (
	manifestName   = "manifest.json"
	vocabularyName = "vocabulary.txt"
	textEnding     = ".txt"
	spansEnding    = ".spans"
)

type namedData struct {
	name string
	data []byte
}

// files returns the files of a data set but its manifest.
func (d *Dataset) files() []namedData {
	files := []namedData{{vocabularyName, []byte(strings.Join(d.Vocabulary.words, "\n") + "\n")}}
	for _, split := range d.Splits {
		var text, spans bytes.Buffer
		for _, s := range split.Sentences {
			text.WriteString(d.Text(s) + "\n")
			spans.WriteString(formatSpans(s.Gold) + "\n")
		}
		files = append(files, namedData{split.Name + textEnding, text.Bytes()})
		if split.Gold {
			files = append(files, namedData{split.Name + spansEnding, spans.Bytes()})
		}
	}
	return files
}

// formatSpans writes spans as "0-1 0-4".
func formatSpans(spans []Span) string {
	parts := make([]string, len(spans))
	for i, s := range spans {
		parts[i] = strconv.Itoa(s[0]) + "-" + strconv.Itoa(s[1])
	}
	return strings.Join(parts, " ")
}

// parseSplit reads the sentences of a split, and their spans if there are any.
func parseSplit(name string, text, spans []byte, v *Vocabulary) ([]Sentence, error) {
	textLines, spanLines := lines(text), lines(spans)
	if spans != nil && len(textLines) != len(spanLines) {
		return nil, badinput.Errorf("%s%s has %d lines, %s%s %d", name, textEnding, len(textLines), name, spansEnding,
			len(spanLines))
	}
	sentences := make([]Sentence, len(textLines))
	for i, line := range textLines {
		words, err := parseWords(line, v)
		if err != nil {
			return nil, badinput.Errorf("%s%s:%d: %w", name, textEnding, i+1, err)
		}
		sentences[i].Words = words
		if spans == nil {
			continue
		}
		if sentences[i].Gold, err = parseSpans(spanLines[i], len(words)); err != nil {
			return nil, badinput.Errorf("%s%s:%d: %w", name, spansEnding, i+1, err)
		}
	}
	return sentences, nil
}

func parseWords(line string, v *Vocabulary) ([]int32, error) {
	fields := strings.Split(line, " ")
	words := make([]int32, len(fields))
	for i, w := range fields {
		id, ok := v.ids[w]
		if !ok {
			return nil, fmt.Errorf("the word %q is not in %s", w, vocabularyName)
		}
		words[i] = id
	}
	return words, nil
}

// parseSpans reads the spans of a sentence of n words and checks what Sentence.Gold promises.
func parseSpans(line string, n int) ([]Span, error) {
	spans := []Span{}
	for _, field := range strings.Fields(line) {
		first, last, _ := strings.Cut(field, "-")
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < 0 || b <= a || b >= n {
			return nil, fmt.Errorf("%q is not a span FIRST-LAST in a sentence of %d words", field, n)
		}
		spans = append(spans, Span{a, b})
	}
	if n > 1 && (len(spans) == 0 || spans[len(spans)-1] != Span{0, n - 1}) {
		return nil, fmt.Errorf("the last span is not the whole sentence, 0-%d", n-1)
	}
	return spans, nil
}

// lines cuts a text at its line ends.
func lines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}
