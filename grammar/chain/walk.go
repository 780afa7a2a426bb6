package chain

import (
	"math"

	"github.com/gfnem/gfnem/grammar"
)

// walker is a tree of a chain with the scores of its nodes.
type walker struct {
	*Tree
	*Weights
	terms, shift []float64 // of the sentence
	score        []float64 // by node: the log-probability of its rule, and of its words
	pairs        []float64 // scores of two neighbouring words below a row of rules, [n-1,rows]; NaN if not computed yet

	// What the last proposal changed.
	rotated, changed int // the node to rotate up again, or the node whose label was oldLabel; -1 if neither
	oldLabel         int
	nodes            []int // whose scores changed, and what they were
	scores           []float64
}

// walker starts at a tree of a sentence.
func (s *Weights) walker(sentence int, from *grammar.Tree) *walker {
	w := &walker{Tree: NewTree(from), Weights: s, terms: s.emit[sentence], shift: s.shifts[sentence]}
	n := w.words
	w.score = make([]float64, 2*n-1)
	w.pairs = make([]float64, (n-1)*s.rows())
	for i := range w.pairs {
		w.pairs[i] = math.NaN()
	}
	for v := n; v < 2*n-1; v++ {
		w.score[v] = w.nodeScore(v)
	}
	return w
}

// rows is the number of distributions over rules.
func (s *Weights) rows() int {
	if s.parents {
		return s.nt * (s.nt + 1)
	}
	return s.nt
}

// LogTree is log p(x,z) of a tree of a sentence.
func (s *Weights) LogTree(sentence int, t *grammar.Tree) float64 { return s.walker(sentence, t).logp() }

func (w *walker) logp() float64 {
	total := w.root[w.label[w.top]]
	for _, v := range w.score[w.words:] {
		total += v
	}
	return total
}

// nodeScore is the log-probability of the rule of a node, given its parent, and of the words that are its children;
// their preterminals are summed out.
func (w *walker) nodeScore(v int) float64 {
	x, row := w.label[v], w.label[v]
	if w.parents {
		row = x * (w.nt + 1)
		if p := w.parent[v]; p >= 0 {
			row += w.label[p] + 1
		}
	}
	l, r := w.left[v], w.right[v]
	switch {
	case l >= w.words && r >= w.words:
		return w.nn[(row*w.nt+w.label[l])*w.nt+w.label[r]]
	case l >= w.words:
		word, shift := w.word(r, x)
		return math.Log(dotRows(w.np[(row*w.nt+w.label[l])*w.pt:][:w.pt], word)) + shift
	case r >= w.words:
		word, shift := w.word(l, x)
		return math.Log(dotRows(w.pn[(row*w.nt+w.label[r])*w.pt:][:w.pt], word)) + shift
	}
	at := &w.pairs[l*w.rows()+row]
	if math.IsNaN(*at) {
		*at = w.pairScore(l, x, row)
	}
	return *at
}

// word returns the weights of the preterminals of a word below x, and their shift.
func (w *walker) word(i, x int) (weights []float64, shift float64) {
	at := i
	if w.parents {
		at = i*w.nt + x
	}
	return w.terms[at*w.pt:][:w.pt], w.shift[at]
}

// pairScore is nodeScore of a node x over words i and i+1.
func (w *walker) pairScore(i, x, row int) float64 {
	left, shiftLeft := w.word(i, x)
	right, shiftRight := w.word(i+1, x)
	table := w.pp[row*w.pt*w.pt:][:w.pt*w.pt]
	total := 0.0
	for t, p := range left {
		total += p * dotRows(table[t*w.pt:][:w.pt], right)
	}
	return math.Log(total) + shiftLeft + shiftRight
}

// rotate rotates the edge above y and returns the change of log p(x,z).
func (w *walker) rotate(y int) float64 {
	x := w.parent[y]
	before := w.root[w.label[w.top]]
	moved := w.rotateUp(y)
	w.rotated, w.changed = x, -1
	w.nodes = append(w.nodes[:0], x, y)
	if above := w.parent[y]; above >= 0 && w.label[x] != w.label[y] {
		w.nodes = append(w.nodes, above)
	}
	if w.parents && moved >= w.words {
		w.nodes = append(w.nodes, moved)
	}
	return w.rescore(before)
}

// relabel gives a node a label and returns the change of log p(x,z).
func (w *walker) relabel(v, label int) float64 {
	before := w.root[w.label[w.top]]
	w.rotated, w.changed, w.oldLabel = -1, v, w.label[v]
	w.nodes = w.nodes[:0]
	if label != w.label[v] {
		w.label[v] = label
		w.nodes = append(w.nodes, v)
		if above := w.parent[v]; above >= 0 {
			w.nodes = append(w.nodes, above)
		}
		for _, child := range []int{w.left[v], w.right[v]} {
			if w.parents && child >= w.words {
				w.nodes = append(w.nodes, child)
			}
		}
	}
	return w.rescore(before)
}

// rescore computes the scores of changed nodes anew, keeping the old ones. From an impossible tree every way is up.
func (w *walker) rescore(rootBefore float64) float64 {
	w.scores = w.scores[:0]
	before, after := rootBefore, w.root[w.label[w.top]]
	for _, v := range w.nodes {
		w.scores = append(w.scores, w.score[v])
		before += w.score[v]
		w.score[v] = w.nodeScore(v)
		after += w.score[v]
	}
	if math.IsInf(before, -1) {
		return math.Inf(1)
	}
	return after - before
}

// undo takes the last proposal back.
func (w *walker) undo() {
	if w.rotated >= 0 {
		w.rotateUp(w.rotated)
	}
	if w.changed >= 0 {
		w.label[w.changed] = w.oldLabel
	}
	for i, v := range w.nodes {
		w.score[v] = w.scores[i]
	}
}
