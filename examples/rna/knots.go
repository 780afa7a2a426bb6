package main

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// across estimates what the beginning of helices h, [N,...], adds to log p(x,z) if they close behind the next claimed base, end,
// besides what that of nested ones adds: as if they could close wherever there are bases behind it. N is the number of bases.
func (p policy) across(t tables, n *Node, h helices, end *Node) *Node {
	length := AddScalar(h.L, -p.Shortest)
	nested := Add(look(t.helix, length), look(t.loop, Sub(h.closing(), Add(h.I, h.L))))
	ways := Log(MaxScalar(ConvertDType(Sub(InsertAxes(n, 1), end), float), 1))
	return Sub(Sub(Add(look(t.bend, length), BroadcastToShape(Squeeze(t.knot, 0), ways.Shape())), ways), nested)
}

// lessBelow estimates how much less the log-probabilities of other choices are below a helix, since another one can begin there
// that crosses it, by the distance to the next claimed base, [N+1].
func (p policy) lessBelow(t tables, stay *Node) *Node {
	fits := GreaterOrEqual(Iota(stay.Graph(), shapes.Make(integer, p.N+1), 0), Scalar(stay.Graph(), integer, p.Shortest))
	return Where(fits, Softplus(Add(stay, BroadcastToDims(Squeeze(t.knot, 0), p.N+1))), ZerosLike(stay))
}
