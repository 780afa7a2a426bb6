package forest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
)

// TestWalkProbabilities compares what a walk says of its paths with the sum over their steps.
func TestWalkProbabilities(t *testing.T) {
	seed := testkit.Seed(t)
	for _, back := range []int32{1, 3, 6} {
		r := newRig(t, seed, dtypes.Float64, 7, 4, 2, 6)
		r.Linear = back == 3 // either attention is the same in both evaluations
		r.UniformBack = back == 6
		got := r.compare(t, seed, back)
		same(t, "what walks say of", got.Walks, got.Steps, 1e-10)
	}
}

// TestSegments: a rollout in segments of one pass, by programs for no more trees than there are, is the one that is
// made at once.
func TestSegments(t *testing.T) {
	seed := testkit.Seed(t)
	for _, back := range []int32{1, 3, 6} {
		r := newRig(t, seed, dtypes.Float64, 7, 4, 2, 6)
		r.Linear, r.Mixes = back == 3, back == 1
		wake, move := r.walk(t, seed, back, plain)
		r.segments = true
		wake2, move2 := r.walk(t, seed, back, plain)
		same(t, fmt.Sprintf("%d steps back: wake", back), wake2, wake, 1e-10)
		same(t, fmt.Sprintf("%d steps back: move", back), move2, move, 1e-10)
	}
}

// pathSums are log-probabilities of what wake made, what a move undid of it, and what it made instead.
type pathSums[T any] struct{ WakeForward, WakeBack, UndoneForward, UndoneBack, MadeForward, MadeBack T }

// comparison is what walks say of their paths, and sums over steps that were scored again.
type comparison[T any] struct{ Walks, Steps pathSums[T] }

// compare makes walks and scores them again.
func (r *rig) compare(t *testing.T, seed uint64, back int32) comparison[*tensors.Tensor] {
	t.Helper()
	wake, move := r.walk(t, seed, back, plain)
	return call[comparison[*tensors.Tensor]](t, r, func(in walked[Sentences, Walk]) comparison[*Node] {
		var all []Histories
		for _, h := range histories(in) {
			all = append(all, Histories{h, r.n - 1})
		}
		s := r.Score(r.scope(), 1000, all...)
		sum := func(x *Node) *Node { return ReduceSum(x, 1) }
		wake, move := in.Wake, in.Move
		return comparison[*Node]{
			Walks: pathSums[*Node]{
				wake.MadeForward, wake.MadeBack, move.UndoneForward, move.UndoneBack, move.MadeForward, move.MadeBack,
			},
			Steps: pathSums[*Node]{
				sum(s[0].LogPF), sum(s[0].LogPB), sum(s[1].LogPF), sum(s[1].LogPB), sum(s[2].LogPF), sum(s[2].LogPB),
			},
		}
	}, r.walked(wake, move))
}

// TestHalf: with products of 16-bit numbers a network says nearly the same, not quite, and walks agree with scores
// nearly as well. Rounding to 8 binary digits changes numbers by a fraction of 2^-9 at most, several times over in a
// path of six steps.
func TestHalf(t *testing.T) {
	seed := testkit.Seed(t)
	for _, linear := range []bool{false, true} {
		full := newRig(t, seed, dtypes.Float32, 7, 4, 2, 6)
		full.Linear = linear
		wake := full.wake(t, seed, plain)
		score := func(half bool) []float64 {
			r := *full
			r.Half = half
			s := call[scoreTensors](t, &r, func(in walked[Sentences, Walk]) gfn.Scores {
				return r.Score(r.scope(), 1000, Histories{in.Wake.Built(in.Sentences.Words), r.n - 1})[0].Scores
			}, r.walked(wake, WalkTensors{}))
			return slices.Concat(float64s(t, s.LogPF), float64s(t, s.LogPB), float64s(t, s.Flow))
		}
		want, apart := score(false), 0.0
		for i, v := range score(true) {
			if apart = max(apart, math.Abs(v-want[i])); !(math.Abs(v-want[i]) <= 0.05) {
				t.Errorf("linear %v: number %d is %g, and %g by 16-bit products", linear, i, want[i], v)
			}
		}
		if apart < 1e-6 {
			t.Errorf("linear %v: 16-bit products change nothing", linear)
		}
		half := newRig(t, seed, dtypes.Float32, 7, 4, 2, 6)
		half.Linear, half.Half = linear, true
		got := half.compare(t, seed, 3)
		same(t, "in 16 bits, what walks say of", got.Walks, got.Steps, 0.02)
	}
}

// TestUniformBack: log P_B of a path is minus the logarithm of the number of trees that could be split, summed over its
// forests. P_F is what it would be otherwise.
func TestUniformBack(t *testing.T) {
	seed := testkit.Seed(t)
	r := newRig(t, seed, dtypes.Float64, 7, 5, 2, 6)
	learned := r.wake(t, seed, plain)
	r.UniformBack = true
	wake := r.wake(t, seed, plain)
	near(t, "log P_F", wake.MadeForward, learned.MadeForward, 1e-12)
	ints := tensors.MustCopyFlatData[int32]
	made, left, right := ints(wake.Made), ints(wake.Forest.Left), ints(wake.Forest.Right)
	for b, n := range tensors.MustCopyFlatData[int32](r.lengths) {
		row := b * (r.n - 1)
		until := make([]int32, n-1) // the step that joins the node of a gap with another
		for gap := range until {
			for _, child := range []int32{left[row+gap], right[row+gap]} {
				if c := int(child) - r.n; c >= 0 {
					until[c] = made[row+gap]
				}
			}
		}
		want := 0.0
		for step := range n - 2 { // the whole tree has one top
			tops := 0.0
			for gap := range until {
				if made[row+gap] <= step && step < until[gap] {
					tops++
				}
			}
			want -= math.Log(tops)
		}
		if got := float64s(t, wake.MadeBack)[b]; !(math.Abs(got-want) <= 1e-10) {
			t.Errorf("sentence %d: log P_B is %g, want %g", b, got, want)
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
	scaled.wake(t, seed, plain) // makes the variables
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
	same(t, "wake", wake, wake2, 1e-10)
	same(t, "move", move, move2, 1e-10)
	if a, b := float64s(t, wake.MadeForward), float64s(t, cold.wake(t, seed, plain).MadeForward); a[0] == b[0] {
		t.Error("tempering changed nothing")
	}
}

// TestBrokenNetwork: a network that says nothing finite makes no trees, but its walks end.
func TestBrokenNetwork(t *testing.T) {
	seed := testkit.Seed(t)
	r := newRig(t, seed, dtypes.Float64, 5, 3)
	r.wake(t, seed, plain)
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
	for i, x := range tensors.MustCopyFlatData[int32](wake.Forest.Label) {
		if x != 0 {
			t.Errorf("label %d at %d", x, i)
		}
	}
}
