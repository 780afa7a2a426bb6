package treebank

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseGrammar makes a grammar of the two tables of text in synthetic_english.go. Nonterminals are what stands left
// of the rules, preterminals left of the words, and each is numbered in the order of the text; so are words.
func parseGrammar(rules, words string) (*Grammar, error) {
	ruleLines, err := parseLines(rules)
	if err != nil {
		return nil, err
	}
	wordLines, err := parseLines(words)
	if err != nil {
		return nil, err
	}
	g := &Grammar{Nonterminals: symbols(ruleLines), Preterminals: symbols(wordLines), Words: distinctWords(wordLines)}
	if g.Root, err = g.parseRoot(ruleLines); err != nil {
		return nil, err
	}
	if g.Binary, err = g.parseBinary(ruleLines); err != nil {
		return nil, err
	}
	if g.Emit, err = g.parseEmit(wordLines); err != nil {
		return nil, err
	}
	return g, g.Check()
}

// grammarLine is "symbol < parent: text".
type grammarLine struct{ symbol, parent, text string }

// parseLines cuts a table into its lines; a line that begins with a space goes on from the one before.
func parseLines(table string) ([]grammarLine, error) {
	var parsed []grammarLine
	for line := range strings.Lines(table) {
		head, text, ok := strings.Cut(line, ":")
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, " ") && len(parsed) > 0:
			parsed[len(parsed)-1].text += " " + strings.TrimSpace(line)
		case !ok:
			return nil, fmt.Errorf("no colon in %q", line)
		default:
			symbol, parent, _ := strings.Cut(head, "<")
			parsed = append(parsed, grammarLine{strings.TrimSpace(symbol), strings.TrimSpace(parent), strings.TrimSpace(text)})
		}
	}
	return parsed, nil
}

// symbols returns the symbols of the lines but ROOT.
func symbols(lines []grammarLine) []string {
	var found []string
	for _, l := range lines {
		if l.symbol != "ROOT" && !slices.Contains(found, l.symbol) {
			found = append(found, l.symbol)
		}
	}
	return found
}

func distinctWords(lines []grammarLine) []string {
	var found []string
	for _, l := range lines {
		for w := range strings.FieldsSeq(l.text) {
			if !slices.Contains(found, w) {
				found = append(found, w)
			}
		}
	}
	return found
}

// lineFor returns the text of a symbol below a parent.
func lineFor(lines []grammarLine, symbol, parent string) (string, error) {
	text, found := "", false
	for _, l := range lines {
		if l.symbol == symbol && l.parent == parent {
			return l.text, nil
		}
		if l.symbol == symbol && l.parent == "*" {
			text, found = l.text, true
		}
	}
	if !found {
		return "", fmt.Errorf("no line for %s below %s", symbol, parent)
	}
	return text, nil
}

// parseWeights adds up the weights of "A B 3, C D 1" at the places that index gives for its names.
func parseWeights(text string, size int, index func(names []string) (int, error)) ([]float64, error) {
	p := make([]float64, size)
	for entry := range strings.SplitSeq(text, ",") {
		fields := strings.Fields(entry)
		if len(fields) < 2 {
			return nil, fmt.Errorf("%q has no weight", entry)
		}
		weight, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return nil, err
		}
		i, err := index(fields[:len(fields)-1])
		if err != nil {
			return nil, err
		}
		p[i] += weight
	}
	return normalize(p), nil
}

func normalize(p []float64) []float64 {
	var sum float64
	for _, v := range p {
		sum += v
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func (g *Grammar) parseRoot(lines []grammarLine) ([]float64, error) {
	text, err := lineFor(lines, "ROOT", "")
	if err != nil {
		return nil, err
	}
	return parseWeights(text, len(g.Nonterminals), func(names []string) (int, error) { return find(g.Nonterminals, names[0]) })
}

func (g *Grammar) parseBinary(lines []grammarLine) ([][][][]float64, error) {
	all := slices.Concat(g.Nonterminals, g.Preterminals)
	parents := append([]string{"ROOT"}, g.Nonterminals...)
	index := func(names []string) (int, error) {
		if len(names) != 2 {
			return 0, fmt.Errorf("%v is not a pair of symbols", names)
		}
		l, err := find(all, names[0])
		if err != nil {
			return 0, err
		}
		r, err := find(all, names[1])
		return l*len(all) + r, err
	}
	binary := make([][][][]float64, len(g.Nonterminals))
	for x, symbol := range g.Nonterminals {
		for _, parent := range parents {
			text, err := lineFor(lines, symbol, parent)
			if err != nil {
				return nil, err
			}
			flat, err := parseWeights(text, len(all)*len(all), index)
			if err != nil {
				return nil, fmt.Errorf("%s below %s: %w", symbol, parent, err)
			}
			binary[x] = append(binary[x], slices.Collect(slices.Chunk(flat, len(all))))
		}
	}
	return binary, nil
}

func (g *Grammar) parseEmit(lines []grammarLine) ([][][]float64, error) {
	emit := make([][][]float64, len(g.Preterminals))
	for t, symbol := range g.Preterminals {
		for _, parent := range g.Nonterminals {
			text, err := lineFor(lines, symbol, parent)
			if err != nil {
				return nil, err
			}
			p := make([]float64, len(g.Words))
			for k, word := range strings.Fields(text) {
				p[slices.Index(g.Words, word)] += 1 / float64(k+2)
			}
			emit[t] = append(emit[t], normalize(p))
		}
	}
	return emit, nil
}

func find(names []string, name string) (int, error) {
	i := slices.Index(names, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown symbol %q", name)
	}
	return i, nil
}
