package grammar

import (
	"math/rand/v2"
)

// RandomTree merges two random neighbours until one tree is left, each time under a random nonterminal of nt. It is where
// the specification starts a chain.
func RandomTree(r *rand.Rand, n, nt int) *Tree {
	t := &Tree{}
	forest := make([]int, n)
	for i := range forest {
		forest[i] = i
	}
	for m := range n - 1 {
		i := r.IntN(len(forest) - 1)
		t.Left, t.Right, t.Label = append(t.Left, forest[i]), append(t.Right, forest[i+1]), append(t.Label, r.IntN(nt))
		forest[i] = n + m
		forest = append(forest[:i+1], forest[i+2:]...)
	}
	return t
}
