package forest

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/testkit"
)

// TestWalkProbabilities compares what a walk says of its paths with the sum over their steps.
func TestWalkProbabilities(t *testing.T) {
	seed := testkit.Seed(t)
	for _, back := range []int32{1, 3, 6} {
		r := newRig(t, seed, dtypes.Float64, 7, 4, 2, 6)
		r.Linear = back == 3 // either attention is the same in both evaluations
		wake, move := r.walk(t, seed, back, plain)
		out := r.run(t, func(in []*Node) []*Node {
			k := len(wake)
			first, second := WalkOf(in[1:1+k]), WalkOf(in[1+k:])
			paths := []Path{first.Path(in[0]), second.UndonePath(first.Forest, in[0]), second.Path(in[0])}
			var all []Batch
			for _, p := range paths {
				all = append(all, Batch{p, r.n - 1})
			}
			s := r.Score(r.scope(), 1000, all...)
			sum := func(x *Node) *Node { return ReduceSum(x, 1) }
			return []*Node{
				first.MadeForward, sum(s[0].LogPF), first.MadeBack, sum(s[0].LogPB),
				second.UndoneForward, sum(s[1].LogPF), second.UndoneBack, sum(s[1].LogPB),
				second.MadeForward, sum(s[2].LogPF), second.MadeBack, sum(s[2].LogPB),
			}
		}, append(append([]any{r.words}, anys(wake)...), anys(move)...)...)
		for i, name := range []string{"wake forward", "wake back", "undone forward", "undone back", "made forward", "made back"} {
			near(t, name, out[2*i], out[2*i+1], 1e-10)
		}
	}
}

// TestTempering: tempered walks are those of a network whose readouts are scaled.
func TestTempering(t *testing.T) {
	const beta = 0.6
	seed := testkit.Seed(t)
	cold := newRig(t, seed, dtypes.Float64, 6, 5, 3)
	wake, move := cold.walk(t, seed, 3, tempered(beta))

	scaled := newRig(t, seed, dtypes.Float64, 6, 5, 3)
	scaled.walk(t, seed, 1, plain) // makes the variables
	for v := range scaled.store.RootScope().IterVariables() {
		if strings.Contains(v.Path(), "/readout/") && !strings.Contains(v.Path(), "/flow/") {
			x := float64s(t, v.MustValue())
			for i := range x {
				x[i] *= beta
			}
			if err := v.SetValue(tensors.FromFlatDataAndDimensions(x, v.Shape().Dimensions...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wake2, move2 := scaled.walk(t, seed, 3, plain)
	for i, name := range []string{"nodes", "undone back", "undone forward", "made forward", "made back"} {
		near(t, "wake "+name, wake[i], wake2[i], 1e-10)
		near(t, "move "+name, move[i], move2[i], 1e-10)
	}
	plainWake, _ := cold.walk(t, seed, 3, plain)
	if a, b := float64s(t, wake[WalkMadeForward]), float64s(t, plainWake[WalkMadeForward]); a[0] == b[0] {
		t.Error("tempering changed nothing")
	}
}

// TestBrokenNetwork: a network that says nothing finite makes no trees, but its walks end.
func TestBrokenNetwork(t *testing.T) {
	seed := testkit.Seed(t)
	r := newRig(t, seed, dtypes.Float64, 5, 3)
	r.walk(t, seed, 1, plain)
	for v := range r.store.RootScope().IterVariables() {
		if strings.HasSuffix(v.Path(), "/readout/bias") {
			x := float64s(t, v.MustValue())
			for i := range x {
				x[i] = math.NaN()
			}
			if err := v.SetValue(tensors.FromFlatDataAndDimensions(x, v.Shape().Dimensions...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wake, _ := r.walk(t, seed, 2, plain)
	for i, x := range tensors.MustCopyFlatData[int32](wake[WalkLabel]) {
		if x != 0 {
			t.Errorf("label %d at %d", x, i)
		}
	}
}
