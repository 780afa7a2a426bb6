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
		r.UniformBack = back == 6
		out := r.compare(t, seed, back)
		for i, name := range walkNames {
			near(t, name, out[2*i], out[2*i+1], 1e-10)
		}
	}
}

// TestLegs: a journey in parts, with no more places than its forests have trees, is the one that is made at once.
func TestLegs(t *testing.T) {
	seed := testkit.Seed(t)
	for _, back := range []int32{1, 3, 6} {
		r := newRig(t, seed, dtypes.Float64, 7, 4, 2, 6)
		r.Linear, r.Mixes = back == 3, back == 1
		wake, move := r.walk(t, seed, back, plain)
		r.legs = true
		wake2, move2 := r.walk(t, seed, back, plain)
		for i := range wake {
			for _, pair := range [][2]*tensors.Tensor{{wake[i], wake2[i]}, {move[i], move2[i]}} {
				if pair[0].DType() == dtypes.Float64 {
					near(t, "a walk", pair[1], pair[0], 1e-10)
				} else if !pair[0].Equal(pair[1]) {
					t.Errorf("%d steps back, tensor %d: %v, want %v", back, i, pair[1], pair[0])
				}
			}
		}
	}
}

var walkNames = []string{"wake forward", "wake back", "undone forward", "undone back", "made forward", "made back"}

// compare makes walks, and returns what they say of their paths, each followed by the sum over steps that were scored again.
func (r *rig) compare(t *testing.T, seed uint64, back int32) []*tensors.Tensor {
	t.Helper()
	wake, move := r.walk(t, seed, back, plain)
	return r.run(t, func(in []*Node) []*Node {
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
}

// TestHalf: with products of 16-bit numbers a network says nearly the same, not quite, and walks agree with scores nearly as well. Rounding
// to 8 binary digits changes numbers by a fraction of 2^-9 at most, several times over in a path of six steps.
func TestHalf(t *testing.T) {
	seed := testkit.Seed(t)
	for _, linear := range []bool{false, true} {
		full := newRig(t, seed, dtypes.Float32, 7, 4, 2, 6)
		full.Linear = linear
		wake, _ := full.walk(t, seed, 1, plain)
		score := func(half bool) []float64 {
			r := *full
			r.Half = half
			return float64s(t, r.run(t, func(in []*Node) []*Node {
				s := r.Score(r.scope(), 1000, Batch{WalkOf(in[1:]).Path(in[0]), r.n - 1})[0]
				return []*Node{Concatenate([]*Node{s.LogPF, s.LogPB, s.Flow}, 0)}
			}, append([]any{r.words}, anys(wake)...)...)[0])
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
		out := half.compare(t, seed, 3)
		for i, name := range walkNames {
			near(t, name+" in 16 bits", out[2*i], out[2*i+1], 0.02)
		}
	}
}

// TestUniformBack: log P_B of a path is minus the logarithm of the number of trees that could be split, summed over its forests. P_F is what
// it would be otherwise.
func TestUniformBack(t *testing.T) {
	seed := testkit.Seed(t)
	r := newRig(t, seed, dtypes.Float64, 7, 5, 2, 6)
	learned, _ := r.walk(t, seed, 1, plain)
	r.UniformBack = true
	wake, _ := r.walk(t, seed, 1, plain)
	near(t, "log P_F", wake[WalkMadeForward], learned[WalkMadeForward], 1e-12)
	ints := func(i int) []int32 { return tensors.MustCopyFlatData[int32](wake[i]) }
	made, left, right := ints(WalkMade), ints(WalkLeft), ints(WalkRight)
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
		if got := float64s(t, wake[WalkMadeBack])[b]; !(math.Abs(got-want) <= 1e-10) {
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
