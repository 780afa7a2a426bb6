package program_test

import (
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/program"
)

// flat and tree are structs of nodes, of single ones and with all that there can be.
type flat struct {
	First pair[*Node]
	Graph *Graph
	Last  *Node
}

type tree struct {
	Top   *Node
	Count int
	Part  pair[*Node]
	List  []*Node
	Maybe *flat
	None  *Node
	Never *pair[*Node]
}

// some returns so many different nodes.
func some(n int) (all []*Node) {
	for range n {
		all = append(all, &Node{})
	}
	return all
}

func newTree(x []*Node) tree {
	return tree{Top: x[0], Count: 7, Part: pair[*Node]{x[1], x[2]}, List: x[3:5:5], Maybe: &flat{First: pair[*Node]{x[5], nil}, Last: x[6]}}
}

func TestNodesInOrder(t *testing.T) {
	x := some(7)
	s := newTree(slices.Clone(x))
	if !slices.Equal(program.Nodes(s), x) {
		t.Error("nodes come in another order")
	}
	if n := program.Nodes(tree{}); len(n) != 0 {
		t.Errorf("an empty struct has %d nodes", len(n))
	}
	y := some(7)
	var seen []*Node
	for name, other := range map[string]tree{
		"Replace": program.Replace(s, y),
		"Map":     program.Map(s, func(n *Node) *Node { seen = append(seen, n); return y[slices.Index(x, n)] }),
	} {
		if !slices.Equal(program.Nodes(other), y) {
			t.Errorf("%s: other nodes, or in another order", name)
		}
		if other.Count != 7 || other.None != nil || other.Never != nil || other.Maybe.First.B != nil || other.List[0] != y[3] {
			t.Errorf("%s: %+v", name, other)
		}
		if !slices.Equal(program.Nodes(s), x) {
			t.Errorf("%s changed lists or parts of the original", name)
		}
	}
	if !slices.Equal(seen, x) {
		t.Error("Map does not see nodes in order")
	}
}

func TestZip(t *testing.T) {
	x, y, z := some(7), some(7), some(7)
	a, b := newTree(slices.Clone(x)), newTree(slices.Clone(y))
	got := program.Zip(a, b, func(p, q *Node) *Node {
		i := slices.Index(x, p)
		if q != y[i] {
			t.Errorf("node %d does not meet its like", i)
		}
		return z[i]
	})
	if !slices.Equal(program.Nodes(got), z) || !slices.Equal(program.Nodes(a), x) || !slices.Equal(program.Nodes(b), y) {
		t.Error("other nodes, or in another order")
	}
}

func TestOf(t *testing.T) {
	x := some(3)
	got := program.Of[flat](x)
	if got != (flat{First: pair[*Node]{x[0], x[1]}, Last: x[2]}) || !slices.Equal(program.Nodes(got), x) {
		t.Errorf("%v became %v", x, got)
	}
}

func TestNumbersOfNodes(t *testing.T) {
	s := newTree(some(7))
	fewer := s
	fewer.List = nil
	first := func(x, _ *Node) *Node { return x }
	for name, f := range map[string]func(){
		"Of, fewer":      func() { program.Of[flat](some(2)) },
		"Of, more":       func() { program.Of[flat](some(4)) },
		"Replace, fewer": func() { program.Replace(s, some(6)) },
		"Replace, more":  func() { program.Replace(s, some(8)) },
		"Zip, fewer":     func() { program.Zip(s, fewer, first) },
		"Zip, more":      func() { program.Zip(fewer, s, first) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(error); !ok {
					t.Errorf("%s: no panic with an error", name)
				}
			}()
			f()
		}()
	}
}
