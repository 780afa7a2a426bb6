package vae

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// ordered is the size with an order.
func (s Size) ordered(order string) Size {
	s.Order = order
	return s
}

var allOrders = []string{orderRaster, orderCenter, orderRandom}

// policies are those of all networks and orders, of a size.
func policies(s Size) map[string]sized {
	out := map[string]sized{}
	for _, order := range allOrders {
		s := s.ordered(order)
		out["features, "+order] = Policy{Size: s}
		out["attention, "+order] = Attentive{Size: s, Width: 8, Layers: 2}
	}
	return out
}

// Orders have each position once; from the centre out, positions are never nearer to it than those before.
func TestOrders(t *testing.T) {
	if s := Paper(8); s.ordered(orderRaster).order() != nil || s.order() != nil {
		t.Error("raster order is a list")
	}
	s := Paper(8).ordered(orderCenter)
	if got := fmt.Sprint(s.order()); got != "[5 6 9 10 1 2 4 7 8 11 13 14 0 3 12 15]" {
		t.Errorf("from the centre out: %s", got)
	}
	random := Paper(8).ordered(orderRandom).order()
	sorted := slices.Sorted(slices.Values(random))
	if slices.IsSorted(random) || sorted[0] != 0 || sorted[15] != 15 || len(slices.Compact(sorted)) != 16 {
		t.Errorf("a random order: %v", random)
	}
	for _, order := range allOrders {
		envtest.Run(t, tiny(2).ordered(order).Env())
		ranks := Paper(8).ordered(order).ranks()
		for i, at := range Paper(8).ordered(order).order() {
			if ranks[at] != i {
				t.Errorf("%s: position %d is number %d", order, at, ranks[at])
			}
		}
	}
}

// q(z|x) of every network and order sums to one.
func TestPoliciesNormalised(t *testing.T) {
	seed := testkit.Seed(t)
	b := open(t)
	for name, p := range policies(tiny(3)) {
		store := newStore(seed)
		x := tiny(3).images(0, 5, 15)
		posteriors(t, b, store, p, x)
		sharpen(t, store, em.Phi, 2)
		for i, logQ := range posteriors(t, b, store, p, x) {
			q := exps(logQ)
			near(t, fmt.Sprintf("%s: image %d: sum of q", name, i), sum(q), 1, 1e-12)
			if most := slices.Max(q); most < 1.2/float64(len(q)) {
				t.Errorf("%s: the most probable of %d latents has q %g: the test shows little", name, len(q), most)
			}
		}
	}
}

// stepScores are log-probabilities of the actions of trajectories: as they were drawn, in one pass, and state by state.
type stepScores[T any] struct {
	Sampled, Along, States T
	ByAlong, ByStates      []T // gradients of the latter two
	Codes                  T
}

// drawnFrom are images, and a key.
type drawnFrom[T any] struct{ X, Key T }

// The log-probability of drawn actions is that of one pass over whole trajectories, and that of a pass for each state, with
// the same gradients; also on ways that are padded at their start.
func TestPoliciesScore(t *testing.T) {
	seed := testkit.Seed(t)
	b := open(t)
	s := Size{Height: 7, Width: 8, Rows: 2, Columns: 3, Codes: 3, Channels: 4, dtype: dtypes.Float64}
	for name, p := range policies(s) {
		store := newStore(seed)
		var paths []string
		out := call[stepScores[*tensors.Tensor]](t, b, store, func(in drawnFrom[*Node]) (out stepScores[*Node]) {
			x := ConvertDType(in.X, s.dtype)
			net := gfn.Net{Env: p.Env(), Policy: p, Scope: store.Scope(em.Phi)}
			u := p.Encode(net.Scope, gfn.Batch{x})
			r := rng.In(in.Key)
			tr := net.Rollout(r, u, nil, gfn.Behaviour{})
			back := net.Backtrack(r, u, tr.Last(), Const(x.Graph(), int32(4)), gfn.Behaviour{})
			slow := net
			slow.Policy = stateByState{p}
			both := func(n gfn.Net) *Node {
				return Concatenate([]*Node{n.Score(tr, gfn.Behaviour{}).LogPF, n.Score(back, gfn.Behaviour{}).LogPF}, 1)
			}
			sampled := net.ScoreSampled(tr, gfn.Behaviour{}).LogPF
			rest := SliceAxis(sampled, 1, AxisRange(2, 6)) // the last four steps
			padding := ZerosLike(SliceAxis(sampled, 1, AxisRange(0, 2)))
			out.Sampled = Concatenate([]*Node{sampled, padding, rest}, 1)
			out.Along, out.States, out.Codes = both(net), both(slow), tr.Last()[0]
			paths, out.ByAlong = gradients(ReduceAllSum(out.Along), store, em.Phi)
			_, out.ByStates = gradients(ReduceAllSum(out.States), store, em.Phi)
			return out
		}, drawnFrom[*tensors.Tensor]{s.noise(rand.New(rand.NewPCG(seed, 0)), 5), rng.Key(seed, "rollout")})
		same(t, name+": drawn and in one pass", pair[*tensors.Tensor]{out.Sampled, out.Along}, 1e-11)
		same(t, name+": in one pass and state by state", pair[*tensors.Tensor]{out.Along, out.States}, 1e-11)
		for i, path := range paths {
			both := pair[*tensors.Tensor]{out.ByAlong[i], out.ByStates[i]}
			same(t, name+": gradient of "+path, both, 1e-10)
		}
		if codes := floats(t, out.Codes); slices.Min(codes) < 0 || slices.Max(codes) > 2 {
			t.Errorf("%s: codes %v", name, codes)
		}
	}
}

// stateByState hides that a policy is gfn.Causal.
type stateByState struct{ encoder }

// Step t depends on the codes of all steps before, on none after, and on the image.
func TestAttentiveDependencies(t *testing.T) {
	b := open(t)
	for _, order := range allOrders {
		s := Size{Height: 6, Width: 6, Rows: 2, Columns: 3, Codes: 3, Channels: 3, dtype: dtypes.Float64}.ordered(order)
		p := Attentive{Size: s, Width: 8, Layers: 1}
		n := s.Positions()
		store := newStore(3)
		logits := func(image int, z []int32) []float64 {
			return eval(t, b, store, func(_ *model.Scope, x, z *Node) *Node {
				scope := store.Scope(em.Phi)
				return p.logits(scope, p.Encode(scope, gfn.Batch{x})[0], z)
			}, s.images(image), tensors.FromFlatDataAndDimensions(z, 1, n))
		}
		z := make([]int32, n)
		plain, other := logits(77, z), logits(99, z)
		moves := func(a, b []float64, step int) bool {
			return !slices.Equal(a[step*s.Codes:(step+1)*s.Codes], b[step*s.Codes:(step+1)*s.Codes])
		}
		for step := range n {
			if !moves(plain, other, step) {
				t.Errorf("%s: step %d does not see the image", order, step)
			}
		}
		for at, rank := range s.ranks() {
			changed := slices.Clone(z)
			changed[at] = 2
			with := logits(77, changed)
			for step := range n {
				if got, want := moves(plain, with, step), step > rank; got != want {
					t.Errorf("%s: step %d depends on the code of step %d: %v, want %v", order, step, rank, got, want)
				}
			}
		}
	}
}

// The gradient of log q is that of finite differences in float64.
func TestAttentiveGradient(t *testing.T) {
	b := open(t)
	p := Attentive{Size: tiny(2).ordered(orderCenter), Width: 8, Layers: 2}
	store := newStore(2)
	x, z := p.images(5), tensors.FromFlatDataAndDimensions([]int32{1, 0, 1, 1}, 1, 4)
	var paths []string
	grads := call[[]*tensors.Tensor](t, b, store, func(in example[*Node]) []*Node {
		var g []*Node
		paths, g = gradients(ReduceAllSum(logQ(p, store.Scope(em.Phi), in.X, in.Z)), store, em.Phi)
		return g
	}, example[*tensors.Tensor]{x, z})
	value := func() float64 {
		return eval(t, b, store, func(_ *model.Scope, x, z *Node) *Node { return logQ(p, store.Scope(em.Phi), x, z) }, x, z)[0]
	}
	for i, path := range paths {
		variable := store.GetVariable(path)
		flat := floats(t, variable.MustValue())
		gradient := floats(t, grads[i])
		at := 0 // where the gradient is greatest
		for j, v := range gradient {
			if math.Abs(v) > math.Abs(gradient[at]) {
				at = j
			}
		}
		const h = 1e-5
		var sides []float64
		for _, step := range []float64{h, -h} {
			moved := slices.Clone(flat)
			moved[at] += step
			if err := variable.SetValue(tensors.FromFlatDataAndDimensions(moved, variable.Shape().Dimensions...)); err != nil {
				t.Fatal(err)
			}
			sides = append(sides, value())
		}
		if err := variable.SetValue(tensors.FromFlatDataAndDimensions(flat, variable.Shape().Dimensions...)); err != nil {
			t.Fatal(err)
		}
		near(t, "gradient of "+path, gradient[at], (sides[0]-sides[1])/(2*h), 1e-7)
	}
}

// On an instance whose latents can be listed, a trained policy becomes the exact posterior, within a total variation of
// 0.02.
func TestAttentiveLearns(t *testing.T) {
	b := open(t)
	store, spec, m := frozen(t, b, 1, 3, 9)
	p := Attentive{Size: m.Size.ordered(orderRandom), Width: 16, Layers: 1}
	spec.Policy, spec.Env = p, p.Env()
	spec.Wake.Objective = perPosition{gfn.VarGrad{Samples: spec.Wake.Samples}, m.Positions()}
	fall := optim.Fall{From: 300, To: 1100, End: 0.01}
	for i := range spec.Wake.Optimizer.Groups {
		spec.Wake.Optimizer.Groups[i].Rate.Fall = fall
	}
	x := m.images(3, 9)
	before := farthest(t, b, store, p, m, x)
	learn(t, b, store, spec, 1200)
	after := farthest(t, b, store, p, m, x)
	t.Logf("total variation %.3f to %.4f", before, after)
	if before < 0.1 || !(after < 0.02) {
		t.Errorf("total variation %g before and %g after", before, after)
	}
}

// The published network trains in other orders, too; attention does so in the tests of all methods.
func TestOrderedTraining(t *testing.T) {
	c := methods()["best"]
	c.Policy.Order = orderRandom
	s := tinySession(t, c)
	steps(t, s, 3)
	if _, err := s.Evaluate(); err != nil {
		t.Error(err)
	}
}

// How probable codes are, position by position, adds up to log q(z|x), whatever the order.
func TestChoices(t *testing.T) {
	for _, order := range allOrders {
		c := methods()["best"]
		c.Policy.Order, c.Model.Rows, c.Model.Columns = order, 2, 3
		s := tinySession(t, c)
		steps(t, s, 2)
		choices := s.codec.Choices()
		image, z := s.test.Slice(0, 1), Codes{2, 0, 1, 1, 0, 2}
		byPosition, _, err := choices.Of(image, z)
		if err != nil {
			t.Fatal(err)
		}
		got := 0.0
		for at, row := range byPosition {
			got += row[z[at]]
		}
		p := s.policy(s.size).(sized)
		want := eval(t, s.backend, s.store, func(_ *model.Scope, x, z *Node) *Node { return logQ(p, s.store.Scope(em.Phi), x, z) },
			batchOf(image, []int{0}), tensors.FromFlatDataAndDimensions([]int32{2, 0, 1, 1, 0, 2}, 1, 6))
		near(t, order+": log q", got, want[0], 1e-5)
		if (order == orderRaster) != (s.codec.Ranks() == nil) {
			t.Errorf("%s: ranks %v", order, s.codec.Ranks())
		}
	}
}
