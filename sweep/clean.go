package sweep

import (
	"strconv"
	"strings"
	"unicode"
)

// clean writes what a terminal would obey, or not show, as an escape: what comes over the network may have it.
func clean(s string) string {
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	if !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if odd(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cleaned is an error whose text comes over the network.
type cleaned struct{ cause error }

func (c cleaned) Error() string { return clean(c.cause.Error()) }
func (c cleaned) Unwrap() error { return c.cause }
