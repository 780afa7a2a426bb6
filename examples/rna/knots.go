package main

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// crossing says what it means for candidates h, [N,K,1], that they cross chosen helices, [N,1,T]: the log odds now, [B,k,K],
// of those that cross the next claimed base, [N,K], are others; and how many cross, for the network.
func (p policy) crossing(t tables, h, chosen helices, next, end, now *Node) (odds *Node, features []*Node) {
	states := func(x *Node) *Node { return Reshape(ConvertDType(x, float), now.Shape().Dimensions...) }
	one := helices{Squeeze(h.I, 2), Squeeze(h.J, 2), Squeeze(h.L, 2)}
	length := AddScalar(one.L, -p.Shortest)
	below := Add(look(t.helix, length), look(t.loop, Sub(one.closing(), Add(one.I, one.L))))
	room := Sub(next, one.I)
	begin := Add(Squeeze(SliceAxis(t.start, 0, AxisElem(1)), 0), Neg(p.fits(t))) // of a helix that does not cross
	ways := Log(MaxScalar(ConvertDType(Sub(InsertAxes(end, 1), next), float), 1))
	across := Sub(Add(look(t.bend, length), BroadcastToShape(Squeeze(t.knot, 0), below.Shape())), ways)
	change := Sub(across, Add(below, look(begin, MinScalar(MaxScalar(room, 0), p.N))))

	ahead := GreaterThan(one.J, next) // it closes behind the next claimed base
	behind := ReduceSum(ConvertDType(all(LessThan(h.I, chosen.I), LessThan(chosen.I, h.closing()), GreaterThan(chosen.J, h.J)), float), 2)
	knot := BroadcastToShape(Squeeze(t.knot, 0), behind.Shape())
	odds = Add(now, states(Where(ahead, change, ZerosLike(change))))
	odds = Add(odds, states(Mul(behind, AddScalar(knot, -2))))
	return odds, []*Node{states(ahead), states(behind)}
}
