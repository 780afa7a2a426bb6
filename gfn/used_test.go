package gfn_test

import (
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestUsed checks that trajectories which are not used change neither the losses of the others nor their gradient,
// also of objectives that compare trajectories; and that these see them where all are used.
func TestUsed(t *testing.T) {
	const groups, each = 4, 4
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 3, Dims: 2}, seed)
	p.randomise(seed)
	mask := make([]bool, groups*each)
	for i := range mask {
		mask[i] = i%each == 0 || i%3 == 0
	}
	for _, o := range []struct {
		name     string
		loss     gfn.Objective
		compares bool
	}{
		{"TB", gfn.TB{}, false}, {"DB", gfn.DB{}, false}, {"SubTB", gfn.SubTB{Lambda: 0.9}, false},
		{"VarGrad of all", gfn.VarGrad{}, true}, {"VarGrad of 4", gfn.VarGrad{Samples: each}, true},
	} {
		results := func(used bool, less float64) (losses, zeta []float64, gradients [][]float64) {
			out := p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node {
				net := p.net()
				tr := net.Rollout(r, x, nil, uniform(x[0].Graph()))
				path := p.path(net, tr, net.Score(tr, gfn.Behaviour{}), false)
				on := Const(x[0].Graph(), mask)
				path.LogR = Where(on, path.LogR, AddScalar(path.LogR, -less))
				if used {
					path.Used = on
				}
				loss := o.loss.Loss(path)
				loss = Where(on, loss, ZerosLike(loss))
				var vars []*Node
				for _, name := range policyVars {
					vars = append(vars, p.variable(x[0].Graph(), name))
				}
				return append([]*Node{loss, path.LogWeights()}, Gradient(ReduceAllSum(loss), vars...)...)
			})(groups*each, rng.Key(seed, "used"))
			return out[0], out[1], out[2:]
		}
		losses, zeta, gradients := results(true, 0)
		other, _, others := results(true, 7)
		if d := farthest(losses, other); !(d < 1e-12) {
			t.Errorf("%s: what is not used changes the losses of others by %g", o.name, d)
		}
		for i := range gradients {
			if d := farthest(gradients[i], others[i]); !(d < 1e-12) {
				t.Errorf("%s: what is not used changes gradient %d by %g", o.name, i, d)
			}
		}
		all, _, _ := results(false, 0)
		changed, _, _ := results(false, 7)
		if d := farthest(all, changed); (d > 1e-3) != o.compares {
			t.Errorf("%s: without a mask the others change it by %g", o.name, d)
		}
		if v, ok := o.loss.(gfn.VarGrad); ok { // by hand
			size := v.Samples
			if size == 0 {
				size = groups * each
			}
			want := make([]float64, len(zeta))
			for from := 0; from < len(zeta); from += size {
				var sum, n float64
				for i := from; i < from+size; i++ {
					if mask[i] {
						sum, n = sum+zeta[i], n+1
					}
				}
				for i := from; i < from+size; i++ {
					if mask[i] {
						want[i] = math.Pow(zeta[i]-sum/n, 2)
					}
				}
			}
			if d := farthest(losses, want); !(d < 1e-9) {
				t.Errorf("%s differs by %g from the mean over what is used", o.name, d)
			}
		}
	}
}

// TestBeside checks that joined trajectories have the losses that they have alone, side by side, and are compared.
func TestBeside(t *testing.T) {
	const b = 3
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 3, Dims: 2}, seed)
	p.randomise(seed)
	for _, ahead := range []bool{false, true} {
		out := p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node {
			net, how := p.net(), uniform(x[0].Graph())
			paths := make([]gfn.Path, 2)
			for i, k := range []int{1, 2} {
				tr := net.Rollout(r, x.Repeat(k), nil, how)
				paths[i] = p.path(net, tr, net.Score(tr, gfn.Behaviour{}), ahead)
			}
			paths[1].Used = Const(x[0].Graph(), []bool{true, false, true, true, true, false})
			var nodes []*Node
			joined := gfn.Beside(b, paths...)
			for _, o := range []gfn.Objective{gfn.TB{}, gfn.DB{}, gfn.SubTB{}} {
				nodes = append(nodes, o.Loss(joined), o.Loss(paths[0]), o.Loss(paths[1]))
			}
			number := ConvertDType(joined.Used, joined.LogR.DType())
			return append(nodes, number, gfn.VarGrad{Samples: 3}.Loss(joined), joined.LogWeights())
		})(b, rng.Key(seed, "beside"))
		for i := 0; i < 9; i += 3 {
			var want []float64
			for row := range b {
				want = append(want, out[i+1][row], out[i+2][2*row], out[i+2][2*row+1])
			}
			if d := farthest(out[i], want); !(d < 1e-12) {
				t.Errorf("losses %d (forward-looking: %t) differ by %g", i/3, ahead, d)
			}
		}
		if want := []float64{1, 1, 0, 1, 1, 1, 1, 1, 0}; !slices.Equal(out[9], want) {
			t.Errorf("used are %v, want %v", out[9], want)
		}
		zeta := out[11]
		if want := math.Pow((zeta[0]-zeta[1])/2, 2); math.Abs(out[10][0]-want) > 1e-9 || math.Abs(out[10][1]-want) > 1e-9 {
			t.Errorf("VarGrad is %v, want %g twice", out[10][:2], want)
		}
	}
}
