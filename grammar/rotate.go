package grammar

// NewChainTree returns a tree that can be changed in place.
func NewChainTree(from *Tree) *ChainTree { return newChainTree(from) }

// Rotate turns inner edge k of the n-2 that a tree over n words has, and returns what turns it back: a lower node y takes the
// place of the node x above it, which becomes its child, and the part of y between them goes to x.
func (t *ChainTree) Rotate(k int) (undo func()) {
	y := t.edge(k)
	x := t.parent[y]
	t.rotateUp(y)
	return func() { t.rotateUp(x) }
}
