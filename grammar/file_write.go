package grammar

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Write writes a grammar in the form that Read reads, the most probable rules first. Probabilities are exact; rules of
// probability 0 are left out.
func (g *Grammar) Write(w io.Writer) error {
	out := bufio.NewWriter(w) // keeps the first error
	fmt.Fprintf(out, "{\"kind\": %s,\n \"nonterminals\": %s,\n \"preterminals\": %s,\n \"words\": %s,\n",
		quote(string(g.Kind)), quoteAll(g.Nonterminals), quoteAll(g.Preterminals), quoteAll(g.Words))
	if g.Prepared != nil {
		text, err := json.Marshal(g.Prepared)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, " \"prepared\": %s,\n", text)
	}
	out.WriteString(" \"root\": ")
	writeRow(out, g.Root, quoted(g.Nonterminals))
	var pairs []string
	for l := range g.symbols() {
		for r := range g.symbols() {
			pairs = append(pairs, g.Symbol(l)+" "+g.Symbol(r))
		}
	}
	comma := ""
	named := func(name string, p []float64, names []string) {
		if !empty(p) {
			fmt.Fprintf(out, "%s\n  %s: ", comma, quote(name))
			writeRow(out, p, names)
			comma = ","
		}
	}
	out.WriteString(",\n \"binary\": {")
	pairs = quoted(pairs)
	for x := range g.Nonterminals {
		for p := range g.parents() {
			named(g.ruleName(x, p), g.RuleRow(x, p), pairs)
		}
	}
	out.WriteString("\n },\n \"emit\": {")
	comma = ""
	words := quoted(g.Words)
	for t := range g.Preterminals {
		for x := range g.hosts() {
			named(g.emitName(t, x), g.EmitRow(t, x), words)
		}
	}
	out.WriteString("\n }}\n")
	return out.Flush()
}

// writeRow writes a distribution, given the quoted names of its outcomes.
func writeRow(out *bufio.Writer, p []float64, names []string) {
	var order []int
	for i, v := range p {
		if v > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[j], p[i]) })
	out.WriteString("{")
	separator := ""
	for _, i := range order {
		out.WriteString(separator + names[i] + ": " + strconv.FormatFloat(p[i], 'g', -1, 64))
		separator = ", "
	}
	out.WriteString("}")
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
