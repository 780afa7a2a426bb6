package treebank

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ways to cut a line of text into words, for Options.Tokens.
const (
	TokensSpaces  = "spaces"  // words are what stands between spaces
	TokensEnglish = "english" // punctuation and contractions are cut off, as in the Penn Treebank: do n't, dog 's
	TokensAuto    = "auto"    // spaces, if the text has punctuation that stands alone, else english
)

// english cuts a line into words and punctuation.
func english(line string) (tokens []string) {
	for _, chunk := range words(line) {
		tokens = append(tokens, cut(chunk)...)
	}
	return tokens
}

// words cuts text at its spaces.
func words(line string) []string { return strings.FieldsFunc(line, unicode.IsSpace) }

// plainWords cuts a line at plain spaces alone, so that others can be part of words.
func plainWords(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r < utf8.RuneSelf && isSpace(byte(r)) })
}

var (
	// whole is what has punctuation inside that belongs there: addresses, and words that stand for others.
	whole = regexp.MustCompile(`^(<[\w-]+>|-[LR][RSC]B-|\w+://\S*[\w/]|www\.\S*[\w/]|[\w.+-]+@[\w-]+\.[\w.-]*\w)$`)
	// dotted is letters with a period behind each: U.S., e.g.
	dotted = regexp.MustCompile(`^(\pL\.)+\pL?\.?$`)
	// between is what separates words that no space does. The groups keep numbers like 1,200 and 10:30 whole.
	between = regexp.MustCompile(`--+|\.\.+|` + eachRepeated(`—…"“”«»()[]{},;:?!`))
)

// eachRepeated matches one or more of the same of some runes.
func eachRepeated(runes string) string {
	var parts []string
	for _, r := range runes {
		parts = append(parts, regexp.QuoteMeta(string(r))+"+")
	}
	return strings.Join(parts, "|")
}

// contractions are parts of words that count as words.
var contractions = []string{"n't", "'s", "'m", "'d", "'re", "'ve", "'ll"}

// abbreviations end with a period that ends no sentence.
var abbreviations = map[string]bool{}

func init() {
	for _, w := range strings.Fields(`mr mrs ms dr prof sr jr st vs etc inc ltd co corp fig figs al cf gen col sgt capt lt rev hon
		jan feb mar apr jun jul aug sep sept oct nov dec mt ave rd approx vol pp ed eds eq dept est`) {
		abbreviations[w+"."] = true
	}
}

// abbreviated says whether the period at the end of a word belongs to it.
func abbreviated(w string) bool {
	return w != "I." && (dotted.MatchString(w) && strings.HasSuffix(w, ".") || abbreviations[strings.ToLower(w)])
}

// cut takes what stands between two spaces apart.
func cut(chunk string) (tokens []string) {
	chunk = strings.ReplaceAll(chunk, "’", "'")
	if whole.MatchString(chunk) || slices.Contains(contractions, strings.ToLower(chunk)) {
		return []string{chunk}
	}
	var ends []string
	for chunk != "" {
		r, _ := utf8.DecodeRuneInString(chunk)
		if isWordRune(r) {
			break
		}
		n := len(chunk) - len(strings.TrimLeft(chunk, string(r)))
		tokens, chunk = append(tokens, chunk[:n]), chunk[n:]
	}
	for chunk != "" && !whole.MatchString(chunk) && !abbreviated(chunk) {
		r, _ := utf8.DecodeLastRuneInString(chunk)
		if isWordRune(r) {
			break
		}
		n := len(strings.TrimRight(chunk, string(r)))
		ends, chunk = append(ends, chunk[n:]), chunk[:n]
	}
	if whole.MatchString(chunk) || abbreviated(chunk) {
		tokens, chunk = append(tokens, chunk), ""
	}
	if at := separator(chunk); at != nil {
		tokens = append(append(tokens, cut(chunk[:at[0]])...), chunk[at[0]:at[1]])
		tokens = append(tokens, cut(chunk[at[1]:])...)
	} else if chunk != "" {
		tokens = append(tokens, contracted(chunk)...)
	}
	slices.Reverse(ends)
	return append(tokens, ends...)
}

// separator finds the first punctuation inside that separates words; nil if there is none.
func separator(chunk string) []int {
	for from := 0; ; {
		at := between.FindStringIndex(chunk[from:])
		if at == nil {
			return nil
		}
		at[0], at[1] = at[0]+from, at[1]+from
		if at[0] == 0 || at[1] == len(chunk) || !isDigit(chunk[at[0]-1]) || !isDigit(chunk[at[1]]) {
			return at
		}
		from = at[1]
	}
}

// contracted takes n't, 's and the like off a word, and cannot apart.
func contracted(w string) []string {
	lower := strings.ToLower(w)
	if lower == "cannot" {
		return []string{w[:3], w[3:]}
	}
	for _, c := range contractions {
		if rest := len(w) - len(c); rest > 0 && len(lower) == len(w) && strings.HasSuffix(lower, c) {
			return append(cut(w[:rest]), w[rest:])
		}
	}
	return []string{w}
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

var brackets = regexp.MustCompile(`^-[LR][RSC]B-$`)

// IsPunctuation says whether a word has neither a letter nor a digit. Percent signs and ampersands are words.
func IsPunctuation(w string) bool {
	return w != "%" && w != "&" && !strings.ContainsFunc(w, isWordRune) || brackets.MatchString(w)
}
