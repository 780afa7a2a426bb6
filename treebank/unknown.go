package treebank

import (
	"slices"
	"strings"
	"unicode"
)

// suffixes tell unknown words apart, the longest first.
var suffixes = strings.Fields("ation ment ness able ible ally ity ing ion ers est ous ful ive ed er or ly al en ic th y s")

// UnknownClass names the class of a word that is not in the vocabulary, such as <unk-ing>: by its ending, or <unk-N> if
// it has a digit and <unk-hyphen> if it has a hyphen. A word of none of these is <unk> itself.
func UnknownClass(word string) string {
	lower := strings.ToLower(word)
	switch {
	case word == "N" || strings.ContainsFunc(word, unicode.IsDigit):
		return "<unk-N>"
	case strings.Contains(word, "-"):
		return "<unk-hyphen>"
	}
	i := slices.IndexFunc(suffixes, func(s string) bool { return len(lower) > len(s)+2 && strings.HasSuffix(lower, s) })
	if i < 0 {
		return Unknown
	}
	return "<unk-" + suffixes[i] + ">"
}

// IsUnknown says whether a word of a vocabulary stands for others: <unk>, or the class of some of these.
func IsUnknown(word string) bool {
	return word == Unknown || strings.HasPrefix(word, "<unk-") && strings.HasSuffix(word, ">")
}
