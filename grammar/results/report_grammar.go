package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/report"
)

// How much of a grammar a report shows.
const (
	shownSymbols = 12
	shownRules   = 4
	shownWords   = 8
)

// usageFigures show how often nonterminals are used.
func (p *parsed) usageFigures() []report.Named {
	out := []report.Named{p.usageFigure("labels", "the most probable derivations", p.usage)}
	if p.gfn != nil {
		out = append(out, p.usageFigure("labels-gfn", "draws of the GFlowNet", p.gfn.labels))
	}
	return out
}

func (p *parsed) usageFigure(name, trees string, counts []float64) report.Named {
	used, perplexity := report.Usage(counts)
	b := report.Bars{
		Axes:   report.Axes{X: report.Axis{Label: "fraction of constituents"}},
		Levels: []report.Level{{Name: "all alike", Value: 1 / float64(len(counts))}},
	}
	share := shares(counts)
	for _, x := range mostFirst(counts) {
		b.Names, b.Values = append(b.Names, p.Nonterminals[x]), append(b.Values, share[x])
	}
	return report.Named{Name: name, Caption: fmt.Sprintf("How often %s of %s use each nonterminal: %d of %d, perplexity %.1f.",
		trees, p.split.Name, used, len(counts), perplexity), Figure: report.NewFigure(b)}
}

// ruleTable lists the most probable rules of the most used nonterminals. Where rules depend on the parent, they are
// those below the most frequent one.
func (p *parsed) ruleTable() *report.Table {
	t := &report.Table{
		Title: "Rules of the most used nonterminals", Columns: report.Columns("symbol", "constituents, %", "most probable rules, %"),
	}
	share, s := shares(p.usage), len(p.Nonterminals)+len(p.Preterminals)
	for _, x := range shown(p.usage) {
		name, parent := p.Nonterminals[x], argmax(p.below[x])
		if p.Kind == grammar.NCFG {
			name += " below " + p.Parent(parent)
		}
		rules := top(p.RuleRow(x, parent), shownRules, func(r int) string { return p.Symbol(r/s) + " " + p.Symbol(r%s) })
		t.Add(report.Text(name), report.Number(100*share[x], 1), report.Text(rules))
	}
	return t
}

// wordTable lists the most probable words of the most used preterminals, below the most frequent nonterminal where
// words depend on that.
func (p *parsed) wordTable() *report.Table {
	t := &report.Table{
		Title: "Words of the most used preterminals", Columns: report.Columns("symbol", "words, %", "most probable words, %"),
	}
	share := shares(p.tagged)
	for _, tag := range shown(p.tagged) {
		name, host := p.Preterminals[tag], argmax(p.host[tag])
		if p.Kind == grammar.NCFG {
			name += " below " + p.Nonterminals[host]
		}
		words := top(p.EmitRow(tag, host), shownWords, func(w int) string { return p.Words[w] })
		t.Add(report.Text(name), report.Number(100*share[tag], 1), report.Text(words))
	}
	return t
}

// top writes the most probable outcomes of a distribution, in percent, but none that would be written as 0.
func top(row []float64, count int, name func(int) string) string {
	var parts []string
	for k, i := range mostFirst(row)[:min(count, len(row))] {
		if k > 0 && row[i] < 0.005 {
			break
		}
		parts = append(parts, fmt.Sprintf("%s: %.0f", name(i), 100*row[i]))
	}
	return strings.Join(parts, " · ")
}

// shown are the numbers of the greatest positive counts.
func shown(counts []float64) []int {
	order := mostFirst(counts)
	return slices.DeleteFunc(order[:min(shownSymbols, len(order))], func(x int) bool { return counts[x] == 0 })
}

// mostFirst are the numbers of values, greatest value first.
func mostFirst(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order
}

func argmax(counts []int) int {
	return slices.Index(counts, slices.Max(counts))
}

// shares are counts as fractions of their sum.
func shares(counts []float64) []float64 {
	total := 0.0
	for _, c := range counts {
		total += c
	}
	out := slices.Clone(counts)
	for i := range out {
		out[i] /= max(total, 1)
	}
	return out
}
