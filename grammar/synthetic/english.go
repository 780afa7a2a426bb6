package synthetic

import (
	_ "embed" // tables of the English
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/grammar"
)

//go:embed english.rules
var englishRules string

//go:embed english.words
var englishWords string

// parse makes a grammar of two tables in text. Nonterminals are what stands left of the rules, preterminals left of the
// words, and each is numbered in the order of the text; so are words. The text is our own: where it is no grammar,
// parse panics.
func parse(rules, words string) *grammar.Grammar {
	ruleTable, wordTable := tableOf(rules), tableOf(words)
	var nonterminals, preterminals, vocabulary []string
	for _, l := range ruleTable {
		if l.symbol != grammar.RootName {
			nonterminals = appendNew(nonterminals, l.symbol)
		}
	}
	for _, l := range wordTable {
		preterminals = appendNew(preterminals, l.symbol)
		vocabulary = appendNew(vocabulary, strings.Fields(l.text)...)
	}
	g := grammar.New(grammar.NCFG, nonterminals, preterminals, vocabulary)
	weigh(g.Root, ruleTable.text(grammar.RootName, ""), nonterminals)
	symbols := slices.Concat(nonterminals, preterminals)
	for x, symbol := range nonterminals {
		for p := range len(nonterminals) + 1 {
			weigh(g.RuleRow(x, p), ruleTable.text(symbol, g.Parent(p)), symbols, symbols)
		}
	}
	for t, symbol := range preterminals {
		for x, parent := range nonterminals {
			row := g.EmitRow(t, x)
			for k, word := range strings.Fields(wordTable.text(symbol, parent)) {
				row[slices.Index(vocabulary, word)] += 1 / float64(k+2)
			}
			normalize(row)
		}
	}
	return g
}

// table is lines "symbol < parent: text".
type table []struct{ symbol, parent, text string }

// tableOf cuts text into lines; one that begins with a space goes on from the one before.
func tableOf(text string) (t table) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\n ", " ")) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		head, text, ok := strings.Cut(line, ":")
		if !ok {
			panic(fmt.Errorf("no colon in %q", line))
		}
		symbol, parent, _ := strings.Cut(head, "<")
		t = append(t, struct{ symbol, parent, text string }{strings.TrimSpace(symbol), strings.TrimSpace(parent), text})
	}
	return t
}

// text is that of a symbol below a parent, or below every other one.
func (t table) text(symbol, parent string) string {
	for _, of := range []string{parent, "*"} {
		for _, l := range t {
			if l.symbol == symbol && l.parent == of {
				return l.text
			}
		}
	}
	panic(fmt.Errorf("no line for %s below %s", symbol, parent))
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

// weigh reads the distribution "A B 3, C D 1" over tuples of names, the last name varying fastest.
func weigh(p []float64, text string, names ...[]string) {
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
	normalize(p)
}

func normalize(p []float64) {
	sum := sumOf(p)
	for i := range p {
		p[i] /= sum
	}
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}
