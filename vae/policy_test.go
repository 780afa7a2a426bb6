package vae

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

func TestEnv(t *testing.T) { envtest.Run(t, tiny(3).Env()) }

// floors are those that policies are tested with: none, the published one, and one that cannot be overlooked.
var floors = []float64{0, 1e-9, 0.02}

// q(z|x) sums to one.
func TestNormalised(t *testing.T) {
	seed := testkit.Seed(t)
	b := open(t)
	for _, floor := range floors {
		for _, codes := range []int{2, 3} {
			p := Policy{Size: tiny(codes), Floor: floor}
			store := newStore(seed)
			x := p.images(0, 5, 15)
			posteriors(t, b, store, p, x)
			sharpen(t, store, em.Phi, 3)
			for i, logQ := range posteriors(t, b, store, p, x) {
				q := exps(logQ)
				near(t, fmt.Sprintf("floor %g, %d codes, image %d: sum of q", floor, codes, i), sum(q), 1, 1e-12)
				if most := slices.Max(q); most < 2/float64(len(q)) {
					t.Errorf("floor %g: the most probable of %d latents has q %g: the test shows little", floor, len(q), most)
				}
			}
		}
	}
}

// A state with code k at position t alone has its single 1 at k*n+t.
func TestLayout(t *testing.T) {
	p := Policy{Size: Size{Height: 4, Width: 6, Rows: 2, Columns: 3, Codes: 4, Channels: 2}}
	b := open(t)
	n := p.Positions()
	var states []int32
	for k := range p.Codes {
		for at := range n {
			row := slices.Repeat([]int32{-1}, n)
			row[at] = int32(k)
			states = append(states, row...)
		}
	}
	flat := eval(t, b, newStore(0), func(_ *model.Scope, z *Node) *Node { return p.flatten(z) },
		tensors.FromFlatDataAndDimensions(states, n*p.Codes, n))
	width := n * p.Codes
	for i, v := range flat {
		want := 0.0
		if i/width == i%width { // row k*n+t has its 1 there
			want = 1
		}
		if v != want {
			t.Fatalf("state %d has %g at %d", i/width, v, i%width)
		}
	}
}

// With t positions filled, the logits in use are the K at k*n+t, normalised over the codes; with a floor they are the
// softmax over all pairs plus the floor.
func TestNext(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	s := Size{Height: 4, Width: 6, Rows: 2, Columns: 3, Codes: 4, Channels: 2, dtype: dtypes.Float64}
	b := open(t)
	n := s.Positions()
	var states []int32
	logits := make([]float64, n*n*s.Codes)
	for i := range logits {
		logits[i] = 3 * r.NormFloat64()
	}
	for at := range n {
		row := slices.Repeat([]int32{-1}, n)
		for i := range at {
			row[i] = int32(r.IntN(s.Codes))
		}
		states = append(states, row...)
	}
	next := func(floor float64, logits []float64) []float64 {
		return eval(t, b, newStore(0), func(_ *model.Scope, logits, z *Node) *Node {
			return LogSoftmax(Policy{Size: s, Floor: floor}.next(logits, z), -1)
		}, tensors.FromFlatDataAndDimensions(logits, n, n*s.Codes), tensors.FromFlatDataAndDimensions(states, n, n))
	}
	for _, floor := range floors {
		got := next(floor, logits)
		for at := range n {
			row := logits[at*n*s.Codes : (at+1)*n*s.Codes]
			own := make([]float64, s.Codes)
			all := sum(exps(row))
			for k := range own {
				own[k] = math.Exp(row[k*n+at])
				if floor > 0 {
					own[k] = own[k]/all + floor
				}
			}
			for k := range own {
				near(t, fmt.Sprintf("floor %g: log pi_%d(%d)", floor, at, k), got[at*s.Codes+k], math.Log(own[k]/sum(own)), 1e-12)
			}
		}
	}
	// Without a floor, logits of other positions do not matter; with one they do.
	others := slices.Clone(logits)
	for i := range others {
		if at := i / (n * s.Codes); i%n != at {
			others[i] = r.NormFloat64()
		}
	}
	if !slices.Equal(next(0, logits), next(0, others)) {
		t.Error("logits of other positions change the next code")
	}
	if slices.Equal(next(0.02, logits), next(0.02, others)) {
		t.Error("with a floor, logits of other positions do not matter")
	}
}

// gradients returns a scalar and its gradients with respect to all variables below a scope, by path.
func gradients(loss *Node, store *model.Store, scope string) (paths []string, grads []*Node) {
	var nodes []*Node
	for v := range store.Scope(scope).IterVariables() {
		if v.Trainable && v.InUseByGraph(loss.Graph()) {
			paths = append(paths, v.Path())
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		nodes = append(nodes, store.GetVariable(path).NodeValue(loss.Graph()))
	}
	return paths, Gradient(loss, nodes...)
}

// scoring is a log-probability and its gradients by all variables.
type scoring[T any] struct {
	LogQ      T
	Gradients []T
}

// scorings are two ways to score.
type scorings[T any] struct{ Fast, Slow scoring[T] }

// The image is encoded once and all steps are scored in one pass: value and gradient are those of n passes, each of which
// encodes the image and sees the codes before its position.
func TestEncodeOnce(t *testing.T) {
	seed := testkit.Seed(t)
	b := open(t)
	s := Size{Height: 7, Width: 8, Rows: 2, Columns: 3, Codes: 3, Channels: 4, dtype: dtypes.Float64}
	r := rand.New(rand.NewPCG(seed, 0))
	z := make([]int32, 5*s.Positions())
	for i := range z {
		z[i] = int32(r.IntN(s.Codes))
	}
	for _, floor := range floors {
		p := Policy{Size: s, Floor: floor}
		store := newStore(seed)
		scope := store.Scope(em.Phi)
		slow := func(x, z *Node) *Node {
			total := ScalarZero(x.Graph(), p.float())
			for at := range p.Positions() {
				later := GreaterOrEqual(Iota(x.Graph(), z.Shape(), 1), Scalar(x.Graph(), z.DType(), at))
				before := Where(later, MulScalar(OnesLike(z), -1), z)
				u := p.Encode(scope, gfn.Batch{x})
				logits := Reshape(p.logits(scope, u[0], before), -1, p.Codes, p.Positions())
				mass := Reshape(logits, -1, p.Codes*p.Positions())
				mass = Sub(mass, StopGradient(ReduceAndKeep(mass, ReduceMax, 1)))
				own := SliceAxis(Reshape(Exp(mass), -1, p.Codes, p.Positions()), 2, AxisElem(at)) // [B,K,1]
				if floor > 0 {
					own = AddScalar(Div(own, BroadcastToShape(InsertAxes(ReduceAndKeep(Exp(mass), ReduceSum, 1), 2), own.Shape())), floor)
				}
				own = Squeeze(own, 2)
				pi := Div(own, BroadcastToShape(ReduceAndKeep(own, ReduceSum, 1), own.Shape()))
				code := SliceAxis(z, 1, AxisElem(at))
				total = Add(total, ReduceAllSum(Log(gfn.Pick(pi, Squeeze(code, 1)))))
			}
			return total
		}
		var paths []string
		out := call[scorings[*tensors.Tensor]](t, b, store, func(in example[*Node]) (out scorings[*Node]) {
			x := ConvertDType(in.X, p.float())
			out.Fast.LogQ, out.Slow.LogQ = ReduceAllSum(logQ(p, scope, x, in.Z)), slow(x, in.Z)
			paths, out.Fast.Gradients = gradients(out.Fast.LogQ, store, em.Phi)
			_, out.Slow.Gradients = gradients(out.Slow.LogQ, store, em.Phi)
			return out
		}, example[*tensors.Tensor]{s.noise(r, 5), tensors.FromFlatDataAndDimensions(z, 5, s.Positions())})
		same(t, "log q", pair[*tensors.Tensor]{out.Fast.LogQ, out.Slow.LogQ}, 1e-10)
		for i, path := range paths {
			both := pair[*tensors.Tensor]{out.Fast.Gradients[i], out.Slow.Gradients[i]}
			fast := same(t, fmt.Sprintf("floor %g: gradient of %s", floor, path), both, 1e-10)
			zero := !slices.ContainsFunc(fast, func(v float64) bool { return v != 0 })
			if zero != strings.HasSuffix(path, "zeta") {
				t.Errorf("floor %g: the gradient of %s is zero: %v", floor, path, zero)
			}
		}
	}
}

// Samples of the policy have the probabilities that it says, and greedy ones are the most probable codes, one by one.
func TestRollout(t *testing.T) {
	seed := testkit.Seed(t)
	b := open(t)
	const rows = 40_000
	p := Policy{Size: tiny(3)}
	store := newStore(seed)
	x := p.images(9)
	posteriors(t, b, store, p, x)
	sharpen(t, store, em.Phi, 2)
	logQ := posteriors(t, b, store, p, x)[0]
	counts := func(how gfn.Behaviour) []float64 {
		codes := eval(t, b, store, func(_ *model.Scope, x, key *Node) *Node {
			net := gfn.Net{Env: p.Env(), Policy: p, Scope: store.Scope(em.Phi)}
			u := p.Encode(net.Scope, gfn.Batch{x}).Repeat(rows)
			return net.Rollout(rng.In(key), u, nil, how).Last()[0]
		}, x, rng.Key(seed, "rollout"))
		out := make([]float64, len(logQ))
		for i := range rows {
			number := 0
			for _, c := range codes[i*p.Positions() : (i+1)*p.Positions()] {
				number = number*p.Codes + int(c)
			}
			out[number]++
		}
		return out
	}
	q := exps(logQ)
	if v := chiSquare(counts(gfn.Behaviour{}), q); !(v < quantile(len(q)-1)) {
		t.Errorf("samples: chi-square %g", v)
	}
	flat := make([]float64, len(q))
	for i := range flat {
		flat[i] = 0.9*q[i] + 0.1/float64(len(q))
	}
	if v := chiSquare(counts(gfn.Behaviour{}), flat); v < quantile(len(q)-1) {
		t.Errorf("samples pass for those of another distribution: chi-square %g", v)
	}
	// Latents with a common prefix are neighbours: the greedy code is the most probable of K equal parts, again and again.
	first, part := 0, len(q)
	for range p.Positions() {
		part /= p.Codes
		mass := make([]float64, p.Codes)
		for k := range mass {
			mass[k] = sum(q[first+k*part : first+(k+1)*part])
		}
		first += slices.Index(mass, slices.Max(mass)) * part
	}
	if got := counts(gfn.Behaviour{Greedy: true}); got[first] != rows {
		t.Errorf("greedy latents %v, want number %d", got, first)
	}
}

// chiSquare is the statistic of counts under probabilities.
func chiSquare(counts, p []float64) (v float64) {
	n := sum(counts)
	for i, c := range counts {
		v += (c - n*p[i]) * (c - n*p[i]) / (n * p[i])
	}
	return v
}

// quantile of the chi-square distribution that is passed once in 100,000 times.
func quantile(degrees int) float64 { return distuv.ChiSquared{K: float64(degrees)}.Quantile(1 - 1e-5) }
