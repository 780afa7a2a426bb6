package chain

import "github.com/gfnem/gfnem/grammar"

// Tree is a tree that changes in place. Words are nodes 0 to n-1; inner nodes are n to 2n-2, in no order.
type Tree struct {
	words               int
	top                 int
	left, right, parent []int // by node; parent of the top is -1
	label               []int // by node; of words it means nothing
}

// Words is n.
func (t *Tree) Words() int { return t.words }

// Top is the node above all others.
func (t *Tree) Top() int { return t.top }

// Children of an inner node (n or above).
func (t *Tree) Children(node int) (left, right int) { return t.left[node], t.right[node] }

// NewTree returns a tree that can be changed in place.
func NewTree(from *grammar.Tree) *Tree {
	n := from.Words()
	t := &Tree{
		words: n, top: 2*n - 2,
		left: make([]int, 2*n-1), right: make([]int, 2*n-1), parent: make([]int, 2*n-1), label: make([]int, 2*n-1),
	}
	for m := range n - 1 {
		l, r := from.Left[m], from.Right[m]
		t.left[n+m], t.right[n+m], t.label[n+m] = l, r, from.Label[m]
		t.parent[l], t.parent[r] = n+m, n+m
	}
	t.parent[t.top] = -1
	return t
}

// Copy returns the tree as it is, with merges in bottom-up order.
func (t *Tree) Copy() *grammar.Tree {
	out := &grammar.Tree{}
	var add func(node int) int
	add = func(node int) int {
		if node < t.words {
			return node
		}
		l, r := add(t.left[node]), add(t.right[node])
		out.Left, out.Right, out.Label = append(out.Left, l), append(out.Right, r), append(out.Label, t.label[node])
		return t.words + len(out.Left) - 1
	}
	add(t.top)
	return out
}

// edge is the lower node of inner edge k of n-2.
func (t *Tree) edge(k int) int {
	node := t.words + k
	if node >= t.top {
		node++
	}
	return node
}

// Rotate turns inner edge k of the n-2 that a tree over n words has, as a step of a chain does, and returns what turns
// it back.
func (t *Tree) Rotate(k int) (undo func()) {
	y := t.edge(k)
	x := t.parent[y]
	t.rotateUp(y)
	return func() { t.rotateUp(x) }
}

// rotateUp turns an edge: y, a child of x, takes the place of x, and x becomes its child. The part of y that was nearer
// to the other child of x goes to x; it is returned. Labels stay with their nodes, so rotateUp(x) undoes it.
func (t *Tree) rotateUp(y int) (moved int) {
	x := t.parent[y]
	above := t.parent[x]
	if t.left[x] == y {
		moved = t.right[y]
		t.left[x], t.right[y] = moved, x
	} else {
		moved = t.left[y]
		t.right[x], t.left[y] = moved, x
	}
	t.parent[moved], t.parent[x], t.parent[y] = x, y, above
	switch {
	case above < 0:
		t.top = y
	case t.left[above] == x:
		t.left[above] = y
	default:
		t.right[above] = y
	}
	return moved
}
