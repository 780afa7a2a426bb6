package prior

import (
	"fmt"
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestEnergiesInGraphs compares energies of random trees of random lengths, padded, with those of the host, in both
// precisions.
func TestEnergiesInGraphs(t *testing.T) {
	t.Parallel()
	const n, rows = 9, 40
	seed := testkit.Seed(t)
	r := rng.New(seed, "trees")
	trees, lengths := make([]*grammar.Tree, rows), make([]int32, rows)
	for i := range trees {
		all := shapesOf(2 + r.IntN(6))
		z := *all[r.IntN(len(all))]
		z.Label = make([]int, len(z.Left))
		for m := range z.Label {
			z.Label[m] = r.IntN(5) // energies do not see it
		}
		trees[i], lengths[i] = &z, int32(z.Words())
	}
	p := spread(rng.New(seed, "prior"), 5)
	single := make([]float32, len(p))
	for i, v := range p {
		single[i] = float32(v)
	}
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	packed, err := grammar.PackByGaps(trees, n)
	if err != nil {
		t.Fatal(err)
	}
	type in struct {
		Parameters, Lengths *tensors.Tensor
		Trees               grammar.TreeTensors
	}
	type nodes struct {
		Parameters, Lengths *Node
		Trees               grammar.Trees
	}
	type out[T any] struct{ Energies T }
	run := func(parameters *tensors.Tensor) *tensors.Tensor {
		y, err := program.Once[in, out[*tensors.Tensor]](b, nil, "energies", func(in nodes) out[*Node] {
			return out[*Node]{Energies(in.Parameters, in.Trees, in.Lengths)}
		}, in{parameters, tensors.FromValue(lengths), packed})
		if err != nil {
			t.Fatal(err)
		}
		return y.Energies
	}
	inDouble := tensors.MustCopyFlatData[float64](run(tensors.FromValue(p)))
	inSingle := tensors.MustCopyFlatData[float32](run(tensors.FromValue(single)))
	closeTo := func(what string, got, want, within float64) {
		t.Helper()
		if !(math.Abs(got-want) <= within*(1+math.Abs(want))) {
			t.Errorf("%s is %.10g, want %.10g", what, got, want)
		}
	}
	least, most := math.Inf(1), math.Inf(-1)
	for i, z := range trees {
		want := NewNet(p).Energy(chain.NewTree(z))
		closeTo(fmt.Sprintf("energy of %s", z.Shape()), inDouble[i], want, 1e-12)
		closeTo(fmt.Sprintf("energy of %s in single precision", z.Shape()), float64(inSingle[i]), want, 1e-5)
		least, most = min(least, want), max(most, want)
	}
	if !(most-least > 0.1) {
		t.Errorf("all energies are between %g and %g", least, most)
	}
}
