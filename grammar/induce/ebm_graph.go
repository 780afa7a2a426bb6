package induce

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/nn"
)

// energies is the energy of the shapes of whole trees [B] over so many words [B], in a graph, for the parameters of an ebmNet.
func energies(parameters *Node, z grammar.Trees, lengths *Node) *Node {
	b, k := z.Label.Shape().Dim(0), z.Label.Shape().Dim(1)
	layer := func(i int, x *Node) *Node {
		l := ebmLayers[i]
		w := Reshape(SliceAxis(parameters, 0, AxisRange(l.at, l.at+l.in*l.out)), l.out, l.in)
		bias := SliceAxis(parameters, 0, AxisRange(l.at+l.in*l.out, l.at+l.size()))
		y := DotGeneral(x, []int{-1}, nil, w, []int{1}, nil)
		return Add(y, ExpandLeftToRank(bias, y.Rank()))
	}
	three := func(first int, x *Node) *Node {
		return layer(first+2, nn.ELU(layer(first+1, nn.ELU(layer(first, x)))))
	}
	live := LessThan(Iota(z.Label.Graph(), z.Label.Shape(), 1), InsertAxes(SubScalar(lengths, 1), -1))
	order := forest.NewPlan(z, live)
	leaf := SliceAxis(parameters, 0, AxisRange(0, ebmWidth))
	leaves := BroadcastToDims(ExpandLeftToRank(leaf, 3), b, k+1, ebmWidth)
	nodes := order.Fold(leaves, func(_, left, right *Node) *Node { return three(0, Concatenate([]*Node{left, right}, -1)) })
	return Squeeze(three(3, order.Top(nodes, lengths)), -1)
}
