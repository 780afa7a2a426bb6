package grammar

import (
	"fmt"
	"strings"
)

// reachable checks that every symbol can come up below ROOT, and that each that does, below each parent that it has,
// has a distribution.
func (g *Grammar) reachable() error {
	n, s := len(g.Nonterminals), g.symbols()
	seen := make([]bool, s)
	type state struct{ symbol, parent int }
	visited := map[state]bool{}
	var queue []state
	push := func(symbol, parent int) {
		seen[symbol] = true
		if g.Kind != NCFG {
			parent = 0
		}
		if at := (state{symbol, parent}); !visited[at] {
			visited[at] = true
			queue = append(queue, at)
		}
	}
	for x, p := range g.Root {
		if p > 0 {
			push(x, 0)
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if at.symbol >= n {
			if t := at.symbol - n; empty(g.EmitRow(t, max(at.parent-1, 0))) {
				return fmt.Errorf("no emissions of %s", g.emitName(t, max(at.parent-1, 0)))
			}
			continue
		}
		row := g.RuleRow(at.symbol, at.parent)
		if empty(row) {
			return fmt.Errorf("no rules of %s", g.ruleName(at.symbol, at.parent))
		}
		for i, p := range row {
			if p > 0 {
				push(i/s, at.symbol+1)
				push(i%s, at.symbol+1)
			}
		}
	}
	var lost []string
	for i, ok := range seen {
		if !ok {
			lost = append(lost, g.Symbol(i))
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("no derivation can reach %s", strings.Join(shorten(lost), ", "))
	}
	return nil
}

func empty(row []float64) bool {
	for _, p := range row {
		if p > 0 {
			return false
		}
	}
	return true
}

// shorten keeps the first of many names.
func shorten(names []string) []string {
	const most = 10
	if len(names) <= most {
		return names
	}
	return append(names[:most:most], fmt.Sprintf("and %d more", len(names)-most))
}
