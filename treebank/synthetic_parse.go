package treebank

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseGrammar makes a grammar of the two tables of text in synthetic_english.go. Nonterminals are what stands left
// of the rules, preterminals left of the words, and each is numbered in the order of the text; so are words. The text
// is our own: where it is no grammar, parseGrammar panics.
func parseGrammar(rules, words string) *Grammar {
	ruleLines, wordLines := parseLines(rules), parseLines(words)
	g := &Grammar{}
	for _, l := range ruleLines {
		if l.symbol != "ROOT" {
			g.Nonterminals = appendNew(g.Nonterminals, l.symbol)
		}
	}
	for _, l := range wordLines {
		g.Preterminals = appendNew(g.Preterminals, l.symbol)
		g.Words = appendNew(g.Words, strings.Fields(l.text)...)
	}
	g.Root = parseWeights(textOf(ruleLines, "ROOT", ""), g.Nonterminals)
	all := slices.Concat(g.Nonterminals, g.Preterminals)
	for _, symbol := range g.Nonterminals {
		var byParent [][][]float64
		for _, parent := range append([]string{"ROOT"}, g.Nonterminals...) {
			flat := parseWeights(textOf(ruleLines, symbol, parent), all, all)
			byParent = append(byParent, slices.Collect(slices.Chunk(flat, len(all))))
		}
		g.Binary = append(g.Binary, byParent)
	}
	for _, symbol := range g.Preterminals {
		var byParent [][]float64
		for _, parent := range g.Nonterminals {
			p := make([]float64, len(g.Words))
			for k, word := range strings.Fields(textOf(wordLines, symbol, parent)) {
				p[slices.Index(g.Words, word)] += 1 / float64(k+2)
			}
			byParent = append(byParent, normalize(p))
		}
		g.Emit = append(g.Emit, byParent)
	}
	return g
}

// grammarLine is "symbol < parent: text".
type grammarLine struct{ symbol, parent, text string }

// parseLines cuts a table into its lines; a line that begins with a space goes on from the one before.
func parseLines(table string) []grammarLine {
	var parsed []grammarLine
	for line := range strings.Lines(table) {
		head, text, ok := strings.Cut(line, ":")
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, " ") && len(parsed) > 0:
			parsed[len(parsed)-1].text += " " + strings.TrimSpace(line)
		case !ok:
			panic(fmt.Errorf("no colon in %q", line))
		default:
			symbol, parent, _ := strings.Cut(head, "<")
			parsed = append(parsed, grammarLine{strings.TrimSpace(symbol), strings.TrimSpace(parent), strings.TrimSpace(text)})
		}
	}
	return parsed
}

// appendNew appends the names that are not there yet.
func appendNew(found []string, names ...string) []string {
	for _, name := range names {
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// textOf returns the text of a symbol below a parent.
func textOf(lines []grammarLine, symbol, parent string) string {
	for _, of := range []string{parent, "*"} {
		for _, l := range lines {
			if l.symbol == symbol && l.parent == of {
				return l.text
			}
		}
	}
	panic(fmt.Errorf("no line for %s below %s", symbol, parent))
}

// parseWeights returns the distribution of "A B 3, C D 1" over tuples of names, the last name varying fastest.
func parseWeights(text string, names ...[]string) []float64 {
	size := 1
	for _, n := range names {
		size *= len(n)
	}
	p := make([]float64, size)
	for entry := range strings.SplitSeq(text, ",") {
		fields := strings.Fields(entry)
		if len(fields) != len(names)+1 {
			panic(fmt.Errorf("%q is not %d symbols and a weight", entry, len(names)))
		}
		at := 0
		for k, n := range names {
			i := slices.Index(n, fields[k])
			if i < 0 {
				panic(fmt.Errorf("unknown symbol %q", fields[k]))
			}
			at = at*len(n) + i
		}
		weight, err := strconv.ParseFloat(fields[len(names)], 64)
		if err != nil || weight < 0 {
			panic(fmt.Errorf("%q is not a weight", fields[len(names)]))
		}
		p[at] += weight
	}
	return normalize(p)
}

func normalize(p []float64) []float64 {
	sum := sumOf(p)
	for i := range p {
		p[i] /= sum
	}
	return p
}
