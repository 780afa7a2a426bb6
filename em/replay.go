package em

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// replay draws latents from the ring, and ways to them, and keeps the fresh ones of observations x from then on. R is
// Replay.Batch, and an entry of the ring is an observation and a latent.
func (g *graphs) replay(r *rng.Stream, x gfn.Batch, w *wakes) gfn.Path {
	spec, fresh, graph := g.Wake.Replay, x.Size(), r.State().Graph()
	next, filled := g.counter("next"), g.counter("filled")
	have := filled.NodeValue(graph)
	used := BroadcastToDims(GreaterThan(have, ZerosLike(have)), spec.Batch)

	u := r.Uniform(dtypes.Float64, spec.Batch)
	at := ConvertDType(Floor(Mul(u, ConvertDType(have, u.DType()))), dtypes.Int32)
	at = MaxScalar(Min(at, AddScalar(have, -1)), 0) // [R]
	filler := modulo(Iota(graph, at.Shape(), 0), fresh)
	many := min(fresh, spec.Size) // of a batch that is larger than the ring, the last ones stay
	to := Add(Iota(graph, shapes.Make(dtypes.Int32, many), 0), next.NodeValue(graph))

	entries := append(slices.Clone(x), w.z...)
	again := make([]*Node, len(entries))
	for i, t := range entries {
		t = StopGradient(t)
		ring := g.kept(replayScope, nameOf(i, len(x)), t, spec.Size)
		again[i] = Where(used, picked(ring.NodeValue(graph), at), picked(t, filler))
		newest := SliceAxis(t, 0, AxisRange(fresh-many, fresh))
		w.keep = append(w.keep, optim.Assignment{Variable: ring, Value: newest, Rows: modulo(to, spec.Size)})
	}
	w.keep = append(w.keep,
		optim.Assignment{Variable: next, Value: modulo(AddScalar(next.NodeValue(graph), many), spec.Size)},
		optim.Assignment{Variable: filled, Value: MinScalar(AddScalar(have, many), spec.Size)})

	seen := gfn.Batch(again[:len(x)])
	p, _ := g.recall(r, seen, g.encode(seen), again[len(x):], used, w)
	return p
}

// nameOf is that of tensor i of the ring, of which the first are those of observations.
func nameOf(i, observations int) string {
	if i < observations {
		return fmt.Sprintf("x%d", i)
	}
	return fmt.Sprintf("z%d", i-observations)
}

// counter is a whole number about the ring, 0 at first: where the next entry goes, or how many there are.
func (g *graphs) counter(name string) *model.Variable {
	return g.store.Scope(replayScope).VariableWithValue(name, int32(0)).SetTrainable(false)
}

func modulo(x *Node, n int) *Node { return Mod(x, Scalar(x.Graph(), x.DType(), n)) }

// MeanOf is the mean of the rows that are used; of all if that is nil.
func MeanOf(x, used *Node) *Node {
	if used == nil {
		return ReduceAllMean(x)
	}
	sum := ReduceAllSum(Where(used, x, ZerosLike(x)))
	return Div(sum, ReduceAllSum(ConvertDType(used, x.DType())))
}
