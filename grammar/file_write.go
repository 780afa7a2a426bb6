package grammar

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Write writes a grammar in the form that Read reads, the most probable rules first. Probabilities are exact; rules of
// probability 0 are left out.
func (g *Grammar) Write(w io.Writer) error {
	out := &fileWriter{Writer: bufio.NewWriter(w)}
	out.text(`{"kind": `, quote(string(g.Kind)))
	out.text(",\n \"nonterminals\": ", quoteAll(g.Nonterminals))
	out.text(",\n \"preterminals\": ", quoteAll(g.Preterminals))
	out.text(",\n \"words\": ", quoteAll(g.Words))
	out.text(",\n \"root\": ")
	out.row(g.Root, quoted(g.Nonterminals))
	var pairs []string
	for l := range g.symbols() {
		for r := range g.symbols() {
			pairs = append(pairs, g.Symbol(l)+" "+g.Symbol(r))
		}
	}
	pairs = quoted(pairs)
	out.text(",\n \"binary\": {")
	for x := range g.Nonterminals {
		for p := range g.parents() {
			out.named(g.ruleName(x, p), g.RuleRow(x, p), pairs)
		}
	}
	out.text("\n },\n \"emit\": {")
	out.rows = 0
	words := quoted(g.Words)
	for t := range g.Preterminals {
		for x := range g.hosts() {
			out.named(g.emitName(t, x), g.EmitRow(t, x), words)
		}
	}
	out.text("\n }}\n")
	return out.Flush()
}

// fileWriter writes JSON; the first error stays in the buffered writer.
type fileWriter struct {
	*bufio.Writer
	rows int
}

func (f *fileWriter) text(parts ...string) {
	for _, p := range parts {
		f.WriteString(p)
	}
}

// named writes a distribution with its name and the quoted names of its outcomes, unless it is all zero.
func (f *fileWriter) named(name string, p []float64, names []string) {
	if empty(p) {
		return
	}
	if f.rows++; f.rows > 1 {
		f.text(",")
	}
	f.text("\n  ", quote(name), ": ")
	f.row(p, names)
}

func (f *fileWriter) row(p []float64, names []string) {
	order := make([]int, 0, len(p))
	for i, v := range p {
		if v > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[j], p[i]) })
	f.text("{")
	for k, i := range order {
		if k > 0 {
			f.text(", ")
		}
		f.text(names[i], ": ", strconv.FormatFloat(p[i], 'g', -1, 64))
	}
	f.text("}")
}

func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string can always be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quote(n)
	}
	return out
}

func quoteAll(names []string) string { return "[" + strings.Join(quoted(names), ", ") + "]" }
