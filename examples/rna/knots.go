package main

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// crossing says what changes about the log odds of candidates h, [N,K,1], if they cross chosen helices, [N,1,T]: an estimate,
// [N,K], and how many they cross, for the network. N is the number of bases, [N], and end the next claimed one, [N,K].
func (p policy) crossing(t tables, h, chosen helices, n, end *Node) (change *Node, crossings []*Node) {
	one := helices{Squeeze(h.I, 2), Squeeze(h.J, 2), Squeeze(h.L, 2)}
	length := AddScalar(one.L, -p.Shortest)
	below := Add(look(t.helix, length), look(t.loop, Sub(one.closing(), Add(one.I, one.L))))
	begin := Sub(Squeeze(SliceAxis(t.start, 0, AxisElem(1)), 0), p.fits(t)) // of a helix that does not cross, [N+1]
	below = Add(below, look(begin, Sub(end, one.I)))
	ways := Log(MaxScalar(ConvertDType(Sub(InsertAxes(n, 1), end), float), 1))
	knot := BroadcastToShape(Squeeze(t.knot, 0), below.Shape())
	across := Sub(Add(look(t.bend, length), knot), ways)

	ahead := GreaterThan(one.J, end) // it closes behind the next claimed base
	behind := all(LessThan(h.I, chosen.I), LessThan(chosen.I, h.closing()), GreaterThan(chosen.J, h.J))
	count := ReduceSum(ConvertDType(behind, float), 2)
	change = Where(ahead, Sub(across, below), ZerosLike(below))
	return Add(change, Mul(count, AddScalar(knot, -2))), []*Node{ConvertDType(ahead, float), count}
}
