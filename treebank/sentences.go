package treebank

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ways to find the sentences of a text, for Options.Sentences.
const (
	SentencesLines = "lines" // one a line
	SentencesSplit = "split" // they end at . ? or !, and at empty lines; a paragraph may take several lines
	SentencesAuto  = "auto"  // lines, if hardly any sentence ends inside one
)

// split cuts a paragraph into sentences.
func split(paragraph string) (sentences []string) {
	chunks := words(paragraph)
	first := 0
	for i := range chunks {
		if i+1 == len(chunks) || endsBefore(chunks[i], chunks[i+1]) {
			sentences = append(sentences, strings.Join(chunks[first:i+1], " "))
			first = i + 1
		}
	}
	return sentences
}

const (
	closing = `"')]}”’»`
	opening = `"'([{“‘«`
)

// final says whether a word ends a sentence for all that can be seen of it.
func final(w string) bool {
	w = strings.TrimRight(w, closing)
	r, _ := utf8.DecodeLastRuneInString(w)
	return strings.ContainsRune("?!…", r) || r == '.' && !abbreviated(strings.TrimLeft(w, opening))
}

// endsBefore says whether a sentence ends between two words.
func endsBefore(w, next string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(next, opening))
	switch {
	case !final(w), unicode.IsLower(r):
		return false
	case strings.EqualFold(w, "no."):
		return !unicode.IsDigit(r)
	}
	return true
}
