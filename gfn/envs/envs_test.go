package envs_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/gfn/envtest"
)

func open(t testing.TB) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func enumerate(t testing.TB, env gfn.Env) *gfn.DAG {
	t.Helper()
	x := tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)
	d, err := gfn.Enumerate(open(t), env, []*tensors.Tensor{x}, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCounts checks the numbers of states, edges and objects against formulas.
func TestCounts(t *testing.T) {
	for _, c := range []struct {
		env                    gfn.Env
		states, edges, objects int
	}{
		// A grid of n = side^dims cells has 2n states, and n + dims (side-1) side^(dims-1) edges.
		{envs.Hypergrid{Side: 4, Dims: 2}, 32, 16 + 2*3*4, 16},
		{envs.Hypergrid{Side: 3, Dims: 4}, 162, 81 + 4*2*27, 81},
		{envs.Hypergrid{Side: 20, Dims: 2}, 800, 400 + 2*19*20, 400},
		// Sequences make a tree.
		{envs.Uniform(5, 3), 1 + 3 + 9 + 27 + 81 + 243, 3 + 9 + 27 + 81 + 243, 243},
		{envs.Sequence{Sizes: []int{2, 3, 2}}, 1 + 2 + 6 + 12, 2 + 6 + 12, 12},
		{envs.Sequence{Sizes: []int{2, 3, 2}, Order: []int{1, 0, 2}}, 1 + 3 + 6 + 12, 3 + 6 + 12, 12},
		{envs.Sequence{Sizes: []int{3, 3, 3}, Order: []int{2, 0, 1}}, 1 + 3 + 9 + 27, 3 + 9 + 27, 27},
		// Subsets of k elements have n-k children.
		{envs.Subset{Items: 6, Size: 3}, 1 + 6 + 15 + 20, 6 + 6*5 + 15*4, 20},
	} {
		t.Run(fmt.Sprintf("%T%v", c.env, c.env), func(t *testing.T) {
			envtest.Run(t, c.env)
			d := enumerate(t, c.env)
			if d.Len() != c.states || len(d.Edges) != c.edges || len(d.Objects) != c.objects {
				t.Errorf("%d states, %d edges, %d objects; want %d, %d, %d",
					d.Len(), len(d.Edges), len(d.Objects), c.states, c.edges, c.objects)
			}
		})
	}
}

// TestHypergridReward compares with the formula, in fractions: cells on a threshold (sides 9, 11, 21) included.
func TestHypergridReward(t *testing.T) {
	for _, env := range []envs.Hypergrid{{Side: 8, Dims: 2}, {Side: 9, Dims: 2}, {Side: 11, Dims: 2}, {Side: 21, Dims: 1}, {Side: 5, Dims: 3}} {
		d := enumerate(t, env)
		got, err := CallOnce(open(t), func(in []*Node) *Node { return env.LogReward(nil, in) }, d.States()[0], d.States()[1])
		if err != nil {
			t.Fatal(err)
		}
		logR := tensors.MustCopyFlatData[float64](got)
		cells := tensors.MustCopyFlatData[int32](d.States()[0])
		peaks := 0
		for i := range logR {
			outer, ring := true, true
			for _, c := range cells[i*env.Dims : (i+1)*env.Dims] {
				// |c/(side-1) - 1/2| = far / 2(side-1), compared in hundredths.
				far, unit := 100*max(2*int(c)-(env.Side-1), env.Side-1-2*int(c)), 2*(env.Side-1)
				outer = outer && far > 25*unit
				ring = ring && far > 30*unit && far < 40*unit
			}
			want := 0.1
			if outer {
				want += 0.5
			}
			if ring {
				want += 2
				peaks++
			}
			if math.Abs(logR[i]-math.Log(want)) > 1e-12 {
				t.Errorf("side %d, cell %v: reward %g, want %g", env.Side, cells[i*env.Dims:(i+1)*env.Dims], math.Exp(logR[i]), want)
			}
		}
		if env.Side == 8 && peaks != 8 { // four cells, walking and stopped
			t.Errorf("side 8: %d peaks, want 8", peaks)
		}
	}
}

// TestUniform checks that a uniform sequence is a sequence.
func TestUniform(t *testing.T) {
	e := envs.Uniform(3, 7)
	if fmt.Sprint(e.Sizes) != "[7 7 7]" || e.Steps() != 3 || e.Actions() != 7 || e.BackActions() != 1 {
		t.Errorf("Uniform(3, 7) is %v", e)
	}
}

// A set of two out of three elements can be assembled in six ways.
func ExampleSubset() {
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		panic(err)
	}
	x := tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1) // no observation
	d, err := gfn.Enumerate(b, envs.Subset{Items: 3, Size: 2}, []*tensors.Tensor{x}, 100)
	if err != nil {
		panic(err)
	}
	sets := d.States()[0].Value().([][]int32)
	for _, e := range d.Edges {
		fmt.Println(sets[e.From], "+", e.Action, "=", sets[e.To])
	}
	// Output:
	// [0 0 0] + 0 = [1 0 0]
	// [0 0 0] + 1 = [0 1 0]
	// [0 0 0] + 2 = [0 0 1]
	// [1 0 0] + 1 = [1 1 0]
	// [1 0 0] + 2 = [1 0 1]
	// [0 1 0] + 0 = [1 1 0]
	// [0 1 0] + 2 = [0 1 1]
	// [0 0 1] + 0 = [1 0 1]
	// [0 0 1] + 1 = [0 1 1]
}

// A sequence whose order leaves out a position cannot be built.
func TestBadOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {0, 1, 1}, {1, 2, 3}} {
		x := tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)
		_, err := gfn.Enumerate(open(t), envs.Sequence{Sizes: []int{2, 2, 2}, Order: order}, []*tensors.Tensor{x}, 100)
		if err == nil || !strings.Contains(err.Error(), "each of its 3 positions once") {
			t.Errorf("order %v: error %v", order, err)
		}
	}
}
