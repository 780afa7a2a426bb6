package program

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/memory"
)

// fits refuses a graph whose values need more memory than there is, if its backend is one of GoMLX's that computes them
// one after the other: of ours, compiling it says so, and others have memory of their own.
func fits(name string, g *Graph, outputs []*Node) error {
	if g.Backend().Name() != "Go Backend" {
		return nil
	}
	return memory.Fits("program "+name, most(g.Nodes(), outputs))
}

// most is the greatest size of values that are there at the same time, each from its making to its last use. Parameters
// and outputs are there from beginning to end.
func most(nodes, outputs []*Node) (most float64) {
	last := map[*Node]int{}
	for i, n := range nodes {
		for _, x := range n.Inputs() {
			last[x] = i
		}
	}
	for _, n := range outputs {
		last[n] = len(nodes)
	}
	var now float64
	ends := make([]float64, len(nodes)+1)
	for i, n := range nodes {
		size := 0.0
		if n.NumOutputs() == 1 { // of several, each is a node of its own
			size = float64(n.DType().Size())
			for _, d := range n.Shape().Dimensions {
				size *= float64(d)
			}
		}
		end, used := last[n]
		switch {
		case n.Type() == NodeTypeParameter:
			end = len(nodes)
		case !used:
			end = i
		}
		now += size
		most = max(most, now)
		ends[end] += size
		now -= ends[i]
	}
	return most
}
