package grammar

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
)

// Best trees are the same, to the bit and whatever the threads, as where the engine writes all sums out before it takes
// their maxima. Whole weights make many derivations equally good.
func TestViterbiWithoutSums(t *testing.T) {
	const nt, pt, n, b = 5, 9, 9, 4
	const s = nt + pt
	plain, err := engine.New("nofusion")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Finalize()
	lengths := []int32{n, 2, n - 1, 7}
	seed := testkit.Seed(t)
	for _, dims := range [][2][]int{
		{{nt, s, s}, {b, n, pt}}, {{b, nt, s, s}, {b, n, pt}}, {{nt, nt + 1, s, s}, {b, n, pt, nt}},
	} {
		for _, whole := range []bool{false, true} {
			parse := func(on compute.Backend, threads int) (all []float64) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
				r := rand.New(rand.NewPCG(seed, 1))
				draw := func(dims ...int) *tensors.Tensor {
					x := normal(r, -3, dims...)
					if whole {
						tensors.MustMutableFlatData(x, func(flat []float32) {
							for i := range flat {
								flat[i] = float32(math.Round(float64(flat[i]) / 2))
							}
						})
					}
					return x
				}
				out, err := ExecOnceN(on, func(root, rules, terms, lengths *Node) []*Node {
					return program.Nodes(Potentials{Root: root, Rules: rules, Terms: terms, Lengths: lengths}.Viterbi())
				}, draw(nt), draw(dims[0]...), draw(dims[1]...), tensors.FromValue(lengths))
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range out {
					all = append(all, floats(x)...)
				}
				return all
			}
			want := parse(plain, 1)
			for _, threads := range []int{1, 2, 3, 8} {
				if got := parse(newBackend(), threads); !slices.Equal(got, want) {
					t.Errorf("rules %v, whole weights %v: %d threads find other trees, or other weights of them", dims[0], whole, threads)
				}
			}
		}
	}
}
