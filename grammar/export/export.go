// Package export writes grammars for people and for NLTK, and leaves out improbable rules.
package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/grammar"
)

// symbols is how many can be below a symbol.
func symbols(g *grammar.Grammar) int { return len(g.Nonterminals) + len(g.Preterminals) }

// rows are all distributions of a grammar.
func rows(g *grammar.Grammar) iter.Seq[[]float64] {
	return func(yield func([]float64) bool) {
		pairs := symbols(g) * symbols(g)
		for _, table := range []struct {
			p    []float64
			size int
		}{{g.Root, len(g.Root)}, {g.Rules, pairs}, {g.Emit, len(g.Words)}} {
			for at := 0; at < len(table.p); at += table.size {
				if !yield(table.p[at:][:table.size]) {
					return
				}
			}
		}
	}
}

// Above returns a grammar with only the rules of at least a probability, and the most probable one of every symbol,
// whose probabilities sum to one again.
func Above(g *grammar.Grammar, least float64) *grammar.Grammar {
	out := *g
	out.Root, out.Rules, out.Emit = slices.Clone(g.Root), slices.Clone(g.Rules), slices.Clone(g.Emit)
	for row := range rows(&out) {
		top, total := slices.Max(row), 0.0
		for i, p := range row {
			if p < least && p < top {
				row[i] = 0
			}
			total += row[i]
		}
		for i := range row {
			if total > 0 {
				row[i] /= total
			}
		}
	}
	return &out
}

// production is a rule: a symbol, the symbols below it, or a word.
type production struct {
	head  string
	below []string
	word  string
	p     float64
}

// productions lists the rules of at least a probability, those of ROOT first, of each symbol the most probable first.
// Where rules depend on the parent, a symbol is named together with it.
func productions(g *grammar.Grammar, least float64, name func(symbol, parent string) string) (out []production) {
	with := func(p []float64, make func(i int) production) {
		first := len(out)
		for i, v := range p {
			if v > 0 && v >= least {
				one := make(i)
				one.p = v
				out = append(out, one)
			}
		}
		slices.SortStableFunc(out[first:], func(a, b production) int { return cmp.Compare(b.p, a.p) })
	}
	with(g.Root, func(x int) production {
		return production{head: grammar.RootName, below: []string{name(g.Nonterminals[x], grammar.RootName)}}
	})
	s := symbols(g)
	parents := len(g.Rules) / (len(g.Nonterminals) * s * s)     // that rules tell apart
	hosts := len(g.Emit) / (len(g.Preterminals) * len(g.Words)) // and words
	for x, symbol := range g.Nonterminals {
		for parent := range parents {
			with(g.RuleRow(x, parent), func(i int) production {
				return production{head: name(symbol, g.Parent(parent)), below: []string{name(g.Symbol(i/s), symbol), name(g.Symbol(i%s), symbol)}}
			})
		}
	}
	for t, symbol := range g.Preterminals {
		for x := range hosts {
			with(g.EmitRow(t, x), func(w int) production {
				return production{head: name(symbol, g.Nonterminals[x]), word: g.Words[w]}
			})
		}
	}
	return out
}

// named names symbols with their parents, if rules depend on these.
func named(g *grammar.Grammar, bar string) func(symbol, parent string) string {
	return func(symbol, parent string) string {
		if g.Kind != grammar.NCFG {
			return symbol
		}
		return symbol + bar + parent
	}
}

// Text writes the rules of at least a probability for a person to read, one a line: A -> B C  0.25.
func Text(w io.Writer, g *grammar.Grammar, least float64) error {
	out := bufio.NewWriter(w) // keeps the first error
	for _, r := range productions(g, least, named(g, "|")) {
		fmt.Fprintf(out, "%s -> %s  %.6g\n", r.head, cmp.Or(strings.Join(r.below, " "), r.word), r.p)
	}
	return out.Flush()
}

// nltkSymbol is what nltk.PCFG.fromstring takes for a nonterminal.
var nltkSymbol = regexp.MustCompile(`^[\w/][\w/^<>-]*$`)

// NLTK writes the grammar as nltk.PCFG.fromstring reads it, as a context-free one: where rules depend on the parent,
// symbols become A^PARENT. Probabilities have twelve decimals, and rules with less are left out.
func NLTK(w io.Writer, g *grammar.Grammar) error {
	for _, symbol := range slices.Concat(g.Nonterminals, g.Preterminals) {
		if !nltkSymbol.MatchString(symbol) {
			return badinput.Errorf("NLTK does not read the symbol %q: it wants letters, digits, - and /", symbol)
		}
	}
	out := bufio.NewWriter(w)
	for _, r := range productions(g, 5e-13, named(g, "^")) {
		below := strings.Join(r.below, " ")
		switch {
		case r.below != nil:
		case !strings.Contains(r.word, "'"):
			below = "'" + r.word + "'"
		default:
			below = `"` + strings.ReplaceAll(r.word, `"`, "''") + `"`
		}
		fmt.Fprintf(out, "%s -> %s [%s]\n", r.head, below, strconv.FormatFloat(r.p, 'f', 12, 64))
	}
	return out.Flush()
}
