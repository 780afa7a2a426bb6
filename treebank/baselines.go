package treebank

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// RightBranching returns the spans of the tree over n words in which every constituent is a word and the rest, in
// the order in which they close.
func RightBranching(n int) []Span {
	var spans []Span
	for first := n - 2; first >= 0; first-- {
		spans = append(spans, Span{first, n - 1})
	}
	return spans
}

// LeftBranching returns the spans of the mirror image of RightBranching.
func LeftBranching(n int) []Span {
	var spans []Span
	for last := 1; last < n; last++ {
		spans = append(spans, Span{0, last})
	}
	return spans
}

// RandomMerges returns the spans of a random binary tree over n words: of neighbours, a pair chosen uniformly is
// merged, until one tree is left.
func RandomMerges(n int, r *rand.Rand) []Span {
	forest := make([]Span, n)
	for i := range forest {
		forest[i] = Span{i, i}
	}
	var spans []Span
	for len(forest) > 1 {
		i := r.IntN(len(forest) - 1)
		forest[i][1] = forest[i+1][1]
		forest = slices.Delete(forest, i+1, i+2)
		spans = append(spans, forest[i])
	}
	return spans
}

// Binarize returns the spans of a binary tree over n words that has all gold spans; constituents of more than two
// parts are divided to the right. No binary tree has a better F1.
func Binarize(gold []Span, n int) []Span {
	byWidth := slices.Clone(gold)
	if n > 1 {
		byWidth = append(byWidth, Span{0, n - 1})
	}
	slices.SortFunc(byWidth, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a[1]-a[0], b[1]-b[0]), cmp.Compare(a[0], b[0]))
	})
	byWidth = slices.Compact(byWidth)
	lastOf := make([]int, n) // of the largest constituent so far that begins with a word
	for i := range lastOf {
		lastOf[i] = i
	}
	var spans []Span
	for _, s := range byWidth {
		var starts []int // of its parts
		for i := s[0]; i <= s[1]; i = lastOf[i] + 1 {
			starts = append(starts, i)
		}
		for k := len(starts) - 2; k >= 0; k-- {
			spans = append(spans, Span{starts[k], s[1]})
		}
		lastOf[s[0]] = s[1]
	}
	return spans
}

// NamedTrees are the spans of a tree for each of some sentences.
type NamedTrees struct {
	Name  string
	Trees [][]Span
}

// TrivialTrees are trees that know nothing of the words, and the best that binary trees can do, for sentences with gold
// spans.
func TrivialTrees(sentences []Sentence, r *rand.Rand) []NamedTrees {
	all := []NamedTrees{{Name: "right-branching"}, {Name: "left-branching"}, {Name: "random merges"}, {Name: "gold, made binary"}}
	for _, s := range sentences {
		n := len(s.Words)
		for i, tree := range [][]Span{RightBranching(n), LeftBranching(n), RandomMerges(n, r), Binarize(s.Gold, n)} {
			all[i].Trees = append(all[i].Trees, tree)
		}
	}
	return all
}
