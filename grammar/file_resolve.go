package grammar

import (
	"strings"
)

// sumTolerance is how far the sum of a distribution in a file may be from one.
const sumTolerance = 1e-6

// grammar makes tables of what was read.
func (p *fileReader) grammar() (*Grammar, error) {
	for _, name := range p.preterminals.list {
		if _, both := p.nonterminals.at[name]; both {
			return nil, p.failAt(0, "%q is both a nonterminal and a preterminal", name)
		}
	}
	n, s, v := len(p.nonterminals.list), len(p.nonterminals.list)+len(p.preterminals.list), len(p.words.list)
	rules, emissions := float64(n)*float64(s)*float64(s), float64(s-n)*float64(v)
	if p.kind == NCFG {
		rules, emissions = rules*float64(n+1), emissions*float64(n)
	}
	if rules > maxEntries || emissions > maxEntries {
		return nil, p.failAt(0, "%d nonterminals, %d preterminals and %d words need tables of %.3g rules and %.3g emissions; at most %d fit",
			n, s-n, v, rules, emissions, maxEntries)
	}
	g := New(p.kind, p.nonterminals.list, p.preterminals.list, p.words.list)
	for _, e := range p.root.entries {
		x, ok := p.nonterminals.at[e.name]
		if !ok {
			return nil, p.failAt(e.offset, "root: %q is not a nonterminal", e.name)
		}
		g.Root[x] = e.p
	}
	for _, r := range p.binary {
		if err := p.fillRules(g, r); err != nil {
			return nil, err
		}
	}
	for _, r := range p.emit {
		if err := p.fillEmissions(g, r); err != nil {
			return nil, err
		}
	}
	if err := g.reachable(); err != nil {
		return nil, p.failAt(0, "%w", err)
	}
	return g, nil
}

// head reads the name of a distribution, "symbol" or in an NCFG "symbol|parent"; ROOT is parent 0.
func (p *fileReader) head(what string, r row, symbols nameList) (symbol, parent int, err error) {
	name, above, bar := strings.Cut(r.name, "|")
	switch {
	case bar && p.kind == CFG:
		return 0, 0, p.failAt(r.offset, "%s: %q names a parent, but the kind is \"cfg\"", what, r.name)
	case !bar && p.kind == NCFG:
		return 0, 0, p.failAt(r.offset, "%s: %q names no parent; write %q or the like", what, r.name, r.name+"|"+p.nonterminals.list[0])
	}
	symbol, ok := symbols.at[name]
	if !ok {
		return 0, 0, p.failAt(r.offset, "%s: unknown symbol %q", what, name)
	}
	if bar && above != RootName {
		x, ok := p.nonterminals.at[above]
		if !ok {
			return 0, 0, p.failAt(r.offset, "%s: the parent %q of %q is not a nonterminal", what, above, name)
		}
		parent = x + 1
	}
	return symbol, parent, nil
}

func (p *fileReader) fillRules(g *Grammar, r row) error {
	x, parent, err := p.head("binary", r, p.nonterminals)
	if err != nil {
		return err
	}
	table := g.RuleRow(x, parent)
	for _, e := range r.entries {
		left, right, ok := strings.Cut(e.name, " ")
		l, okLeft := p.symbol(left)
		s, okRight := p.symbol(right)
		if !ok || !okLeft || !okRight {
			return p.failAt(e.offset, "binary: %q is not two symbols with a space between", e.name)
		}
		table[l*g.symbols()+s] = e.p
	}
	return nil
}

func (p *fileReader) symbol(name string) (int, bool) {
	if x, ok := p.nonterminals.at[name]; ok {
		return x, true
	}
	t, ok := p.preterminals.at[name]
	return t + len(p.nonterminals.list), ok
}

func (p *fileReader) fillEmissions(g *Grammar, r row) error {
	t, parent, err := p.head("emit", r, p.preterminals)
	if err != nil {
		return err
	}
	if p.kind == NCFG && parent == 0 {
		return p.failAt(r.offset, "emit: %q: a preterminal is below a nonterminal", r.name)
	}
	table := g.EmitRow(t, max(parent-1, 0))
	for _, e := range r.entries {
		w, ok := p.words.at[e.name]
		if !ok {
			return p.failAt(e.offset, "emit: unknown word %q", e.name)
		}
		table[w] = e.p
	}
	return nil
}
