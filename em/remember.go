package em

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// remember draws ways to the remembered latents of observations x, of which the policy sees u and which have the
// given numbers, and keeps the best of these and the fresh ones from then on. K is Memory.Latents; of each
// observation M latents are candidates, the K remembered ones and then the fresh ones.
func (g *graphs) remember(r *rng.Stream, x, u gfn.Batch, numbers *Node, w *wakes) gfn.Path {
	spec, b, k := g.Wake.Memory, x.Size(), g.Wake.Memory.Latents
	checkNumbered(memoryField, b, numbers, spec.Rows == nil)
	graph := numbers.Graph()
	filled := g.kept(memoryScope, "filled", numbers, spec.Data) // [N]
	have := picked(filled.NodeValue(graph), numbers)            // [B]
	slot := Iota(graph, shapes.Make(dtypes.Int32, b, k), 1)
	used := Reshape(LessThan(slot, along(have, 1, k)), b*k)

	old, first := make(gfn.State, len(w.z)), Iota(graph, shapes.Make(dtypes.Int32, b), 0)
	first = MulScalar(first, g.Wake.Samples) // the fresh latent that fills empty slots
	for i, t := range w.z {
		table := picked(g.kept(memoryScope, slotName(i), t, spec.Data, k).NodeValue(graph), numbers) // [B,K,...]
		filler := gfn.State{picked(t, first)}.Repeat(k)[0]
		old[i] = Where(used, Reshape(table, filler.Shape().Dimensions...), filler)
	}
	xs := x.Repeat(k)
	p, start := g.recall(r, xs, u.Repeat(k), old, used, w)
	w.strays.Misplaced = unlike(LogicalOr(LogicalNot(p.Used), gfn.Same(start, gfn.Initial(g.Env, xs))))

	// The best of all, row by row.
	m := k + g.Wake.Samples
	logR := groups(b, p.LogR, ConvertDType(StopGradient(w.logR), p.LogR.DType()))      // [B,M]
	usable := groups(b, p.Used, BroadcastToDims(Const(graph, true), b*g.Wake.Samples)) // [B,M]
	candidates := make(gfn.State, len(old))                                            // [B*M,...]
	for i := range old {
		both := groups(b, old[i], StopGradient(w.z[i]))
		candidates[i] = Reshape(both, append([]int{b * m}, old[i].Shape().Dimensions[1:]...)...)
	}
	chosen, n := bestDistinct(candidates, logR, LogicalAnd(usable, IsFinite(logR)), k) // [B,K], [B]
	from := Add(chosen, MulScalar(Iota(graph, chosen.Shape(), 0), m))
	for i, t := range candidates {
		best := picked(t, Reshape(from, b*k))
		table := g.kept(memoryScope, slotName(i), t, spec.Data, k)
		value := Reshape(best, append([]int{b}, table.Shape().Dimensions[1:]...)...)
		w.keep = append(w.keep, optim.Assignment{Variable: table, Value: value, Rows: numbers})
	}
	w.keep = append(w.keep, optim.Assignment{Variable: filled, Value: n, Rows: numbers})
	return p
}

// slotName is that of tensor i of the remembered latents, [N,K,...].
func slotName(i int) string { return fmt.Sprintf("z%d", i) }

// groups puts rows of the same b observations beside each other, [b,n,...].
func groups(b int, rows ...*Node) *Node {
	var all []*Node
	for _, t := range rows {
		dims := t.Shape().Dimensions
		all = append(all, Reshape(t, append([]int{b, dims[0] / b}, dims[1:]...)...))
	}
	return Concatenate(all, 1)
}

// bestDistinct chooses, of M latents in a row, the k usable ones with the greatest log-rewards, [B,M], that differ
// from each other: their numbers in the row, best first, [B,k], and how many there are, [B]; where they are too few,
// the other numbers mean nothing. Of equal latents and of equal rewards the first comes first.
func bestDistinct(z gfn.State, logR, usable *Node, k int) (chosen, count *Node) {
	graph, b, m := logR.Graph(), logR.Shape().Dim(0), logR.Shape().Dim(1)
	square := shapes.Make(dtypes.Int32, b, m, m) // of each row, a latent by another one
	earlier := LessThan(Iota(graph, square, 2), Iota(graph, square, 1))
	other := make(gfn.State, len(z))
	for i, t := range z {
		dims := t.Shape().Dimensions
		t = along(Reshape(t, append([]int{b, m}, dims[1:]...)...), 1, m) // [B,M,M,...]
		other[i] = Reshape(t, append([]int{b * m * m}, dims[1:]...)...)
	}
	same := Reshape(gfn.Same(z.Repeat(m), other), b, m, m)
	again := LogicalAnd(LogicalAnd(same, earlier), along(usable, 1, m))
	usable = LogicalAnd(usable, IsZero(countLast(again)))
	logR = Where(usable, logR, ZerosLike(logR))

	one, two := along(logR, 2, m), along(logR, 1, m)
	better := LogicalOr(GreaterThan(two, one), LogicalAnd(Equal(two, one), earlier))
	rank := countLast(LogicalAnd(better, along(usable, 1, m))) // [B,M]
	wanted := shapes.Make(dtypes.Int32, b, k, m)
	hit := LogicalAnd(Equal(along(rank, 1, k), Iota(graph, wanted, 1)), along(usable, 1, k))
	chosen = ReduceSum(Where(hit, Iota(graph, wanted, 2), Zeros(graph, wanted)), 2)
	return chosen, MinScalar(countLast(usable), k)
}

// along repeats t n times along a new axis.
func along(t *Node, axis, n int) *Node {
	dims := slices.Insert(slices.Clone(t.Shape().Dimensions), axis, n)
	return BroadcastToDims(InsertAxes(t, axis), dims...)
}

// countLast counts what is true along the last axis.
func countLast(mask *Node) *Node { return ReduceSum(ConvertDType(mask, dtypes.Int32), -1) }
