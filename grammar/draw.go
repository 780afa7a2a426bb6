package grammar

import (
	"math"
	"math/rand/v2"
)

// Drawn is a sentence that was drawn from a grammar.
type Drawn struct {
	Words []int32
	Tree  *Tree
	LogP  float64 // log p(x,z,tags): of all that was drawn
}

// Draw draws a sentence with its tree, or returns nil if it has more than so many words. Draws that are thrown away so
// leave the others their proportions.
func (g *Grammar) Draw(r *rand.Rand, longest int) *Drawn {
	d := drawing{Grammar: g, r: r, least: 2, longest: longest}
	d.Tree = &Tree{}
	if top, ok := d.expand(d.pick(g.Root), 0); !ok || top >= 0 {
		return nil
	}
	n := len(d.Drawn.Words)
	for _, children := range [][]int{d.Tree.Left, d.Tree.Right} {
		for i, c := range children {
			if c < 0 {
				children[i] = n - 1 - c
			}
		}
	}
	return &d.Drawn
}

// drawing is a sentence that is being drawn. As long as its words are not all there, merge m is node -1-m.
type drawing struct {
	*Grammar
	Drawn
	r              *rand.Rand
	least, longest int // words that it will have at least, and may have at most
}

// expand draws what is below nonterminal x with a parent, unless the sentence gets too long, and returns its node.
func (d *drawing) expand(x, parent int) (node int, ok bool) {
	n, s := len(d.Nonterminals), d.symbols()
	rule := d.pick(d.RuleRow(x, parent))
	children := []int{rule / s, rule % s}
	for _, c := range children {
		if c < n {
			d.least++
		}
	}
	if d.least > d.longest {
		return 0, false
	}
	var nodes [2]int
	for i, c := range children {
		if c >= n {
			nodes[i] = len(d.Drawn.Words)
			d.Drawn.Words = append(d.Drawn.Words, int32(d.pick(d.EmitRow(c-n, x))))
			d.Tree.Tags = append(d.Tree.Tags, c-n)
		} else if nodes[i], ok = d.expand(c, x+1); !ok {
			return 0, false
		}
	}
	t := d.Tree
	t.Left, t.Right, t.Label = append(t.Left, nodes[0]), append(t.Right, nodes[1]), append(t.Label, x)
	return -len(t.Label), true
}

// pick draws an index in proportion to probabilities that sum to 1.
func (d *drawing) pick(p []float64) (last int) {
	u := d.r.Float64()
	for i, v := range p {
		if v == 0 {
			continue
		}
		last = i
		if u -= v; u < 0 {
			break
		}
	}
	d.LogP += math.Log(p[last])
	return last
}
