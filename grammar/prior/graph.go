package prior

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/nn"
)

// Energies are those of the shapes of whole trees [B] over so many words [B], in a graph.
func Energies(parameters *Node, z grammar.Trees, lengths *Node) *Node {
	b, k := z.Label.Shape().Dim(0), z.Label.Shape().Dim(1)
	layer := func(l dense, x *Node) *Node {
		w := Reshape(SliceAxis(parameters, 0, AxisRange(l.at, l.at+l.in*l.out)), l.out, l.in)
		bias := SliceAxis(parameters, 0, AxisRange(l.at+l.in*l.out, l.at+l.size()))
		y := DotGeneral(x, []int{-1}, nil, w, []int{1}, nil)
		return Add(y, ExpandLeftToRank(bias, y.Rank()))
	}
	all := func(m perceptron, x *Node) *Node {
		return layer(m.third, nn.ELU(layer(m.second, nn.ELU(layer(m.first, x)))))
	}
	live := LessThan(Iota(z.Label.Graph(), z.Label.Shape(), 1), InsertAxes(SubScalar(lengths, 1), -1))
	order := forest.NewPlan(z, live)
	leaf := SliceAxis(parameters, 0, AxisRange(0, width))
	leaves := BroadcastToDims(ExpandLeftToRank(leaf, 3), b, k+1, width)
	nodes := order.Fold(leaves, func(_ int, left, right *Node) *Node {
		return all(compose, Concatenate([]*Node{left, right}, -1))
	})
	return Squeeze(all(readout, order.Top(nodes, lengths)), -1)
}
