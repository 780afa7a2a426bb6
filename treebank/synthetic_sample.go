package treebank

import "math/rand/v2"

// rule is X → L R with its probability below each parent.
type rule struct {
	left, right int
	p           []float64 // [P]
}

// rules returns the rules of each nonterminal that are possible below some parent.
func (g *Grammar) rules() [][]rule {
	all := make([][]rule, len(g.Binary))
	for x, byParent := range g.Binary {
		for l := range byParent[0] {
			for r := range byParent[0][l] {
				made := rule{l, r, make([]float64, len(byParent))}
				possible := false
				for p := range byParent {
					made.p[p] = byParent[p][l][r]
					possible = possible || made.p[p] > 0
				}
				if possible {
					all[x] = append(all[x], made)
				}
			}
		}
	}
	return all
}

// sampler draws trees from a grammar.
type sampler struct {
	*Grammar
	rules [][]rule
	max   int
	r     *rand.Rand
}

// tree draws a tree of at most max words: trees that would have more are thrown away, so that the rest keep their
// proportions.
func (s sampler) tree() *Tree {
	for {
		x := draw(s.r, len(s.Root), func(i int) float64 { return s.Root[i] })
		size := 2
		if t := s.expand(x, 0, &size); t != nil {
			return t
		}
	}
}

// expand draws what is below nonterminal x with parent p, or returns nil when the sentence gets too long. size is
// the least number of words that the whole sentence can still have.
func (s sampler) expand(x, p int, size *int) *Tree {
	rules := s.rules[x]
	chosen := rules[draw(s.r, len(rules), func(i int) float64 { return rules[i].p[p] })]
	for _, c := range []int{chosen.left, chosen.right} {
		if c < len(s.Nonterminals) {
			*size++
		}
	}
	if *size > s.max {
		return nil
	}
	t := &Tree{Label: s.Nonterminals[x]}
	for _, c := range []int{chosen.left, chosen.right} {
		var child *Tree
		if c < len(s.Nonterminals) {
			child = s.expand(c, x+1, size)
		} else {
			child = s.leaf(c-len(s.Nonterminals), x)
		}
		if child == nil {
			return nil
		}
		t.Children = append(t.Children, child)
	}
	return t
}

func (s sampler) leaf(t, x int) *Tree {
	words := s.Emit[t][x]
	w := draw(s.r, len(words), func(i int) float64 { return words[i] })
	return &Tree{Label: s.Preterminals[t], Word: s.Words[w]}
}

// draw returns an index in proportion to probabilities that sum to 1.
func draw(r *rand.Rand, n int, p func(i int) float64) int {
	u := r.Float64()
	last := 0
	for i := range n {
		if p(i) == 0 {
			continue
		}
		last = i
		if u -= p(i); u < 0 {
			break
		}
	}
	return last
}

// Sample draws trees of at most SyntheticMaxLength words.
func (g *Grammar) Sample(n int, r *rand.Rand) []*Tree {
	s := sampler{g, g.rules(), SyntheticMaxLength, r}
	trees := make([]*Tree, n)
	for i := range trees {
		trees[i] = s.tree()
	}
	return trees
}

// split draws the sentences of a split.
func (g *Grammar) split(name string, n int, v *Vocabulary, r *rand.Rand, o Options) Split {
	s := Split{Name: name, Gold: true, Sentences: make([]Sentence, n)}
	keep := o.tagFilter()
	for i, t := range g.Sample(n, r) {
		words, gold := o.prepareTree(t, keep)
		s.Sentences[i] = Sentence{Words: make([]int32, len(words)), Gold: gold}
		s.Leaves += len(words)
		for j, w := range words {
			s.Sentences[i].Words[j] = v.ID(w)
		}
	}
	inBounds := g.logInBounds()
	var sum float64
	for _, logP := range g.LogProbs(s.Sentences) {
		sum += logP - inBounds
	}
	s.TrueLogProb = &sum
	return s
}
