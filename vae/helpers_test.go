package vae

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// tiny is an instance whose latents and images can be listed: 2x2 codes, 2x2 pixels, float64.
func tiny(codes int) Size {
	return Size{Height: 2, Width: 2, Rows: 2, Columns: 2, Codes: codes, Channels: 4, dtype: dtypes.Float64}
}

func open(t testing.TB) compute.Backend {
	t.Helper()
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// eval runs a graph and returns its result as numbers.
func eval[F model.ExecGraphFnOneOutput](t testing.TB, b compute.Backend, store *model.Store, f F, in ...any) []float64 {
	t.Helper()
	out, err := model.CallOnce(b, store, f, in...)
	if err != nil {
		t.Fatal(err)
	}
	return floats(t, out)
}

// call makes a program of a function and calls it once.
func call[Out, In, NodesIn, NodesOut any](
	t testing.TB, b compute.Backend, store *model.Store, f func(NodesIn) NodesOut, in In,
) Out {
	t.Helper()
	out, err := program.Once[In, Out](b, store, "test", f, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// floats returns the numbers of a tensor.
func floats(t testing.TB, x *tensors.Tensor) (out []float64) {
	t.Helper()
	switch x.DType() {
	case dtypes.Float64:
		return tensors.MustCopyFlatData[float64](x)
	case dtypes.Float32:
		for _, v := range tensors.MustCopyFlatData[float32](x) {
			out = append(out, float64(v))
		}
	case dtypes.Int32:
		for _, v := range tensors.MustCopyFlatData[int32](x) {
			out = append(out, float64(v))
		}
	default:
		t.Fatalf("dtype %s", x.DType())
	}
	return out
}

// example is images, or what else is decoded, and latents.
type example[T any] struct{ X, Z T }

// pair is a result and what it is compared with.
type pair[T any] struct{ Got, Want T }

// same fails unless both of a pair have the same numbers, which it returns.
func same(t testing.TB, what string, p pair[*tensors.Tensor], tolerance float64) []float64 {
	t.Helper()
	got, want := floats(t, p.Got), floats(t, p.Want)
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		near(t, fmt.Sprintf("%s, entry %d", what, i), got[i], want[i], tolerance)
	}
	return got
}

// latents lists all latents, [K^n,n], the last position changing fastest.
func (s Size) latents() *tensors.Tensor {
	count := 1
	for range s.Positions() {
		count *= s.Codes
	}
	var flat []int32
	for i := range count {
		z := make([]int32, s.Positions())
		for t, rest := s.Positions()-1, i; t >= 0; t-- {
			z[t] = int32(rest % s.Codes)
			rest /= s.Codes
		}
		flat = append(flat, z...)
	}
	return tensors.FromFlatDataAndDimensions(flat, count, s.Positions())
}

// images lists the images of given numbers, whose bits are pixels; without numbers all.
func (s Size) images(numbers ...int) *tensors.Tensor {
	if numbers == nil {
		for i := range 1 << s.Pixels() {
			numbers = append(numbers, i)
		}
	}
	var flat []float64
	for _, v := range numbers {
		for p := range s.Pixels() {
			flat = append(flat, float64(v>>p&1))
		}
	}
	if s.float() == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(flat, len(numbers), s.Height, s.Width, 1)
	}
	narrow := make([]float32, len(flat))
	for i := range flat {
		narrow[i] = float32(flat[i])
	}
	return tensors.FromFlatDataAndDimensions(narrow, len(numbers), s.Height, s.Width, 1)
}

// noise returns random images with pixels 0 and 1.
func (s Size) noise(r *rand.Rand, count int) *tensors.Tensor {
	flat := make([]float32, count*s.Pixels())
	for i := range flat {
		flat[i] = float32(r.IntN(2))
	}
	return tensors.FromFlatDataAndDimensions(flat, count, s.Height, s.Width, 1)
}

// sized is a policy of any network.
type sized interface {
	encoder
	Env() envs.Sequence
	latents() *tensors.Tensor
}

// logQ is log q(z|x) of latents z that belong to the images x row by row, [B].
func logQ(p sized, scope *model.Scope, x, z *Node) *Node {
	net := gfn.Net{Env: p.Env(), Policy: p, Scope: scope}
	tr := net.Backtrack(rng.In(Const(x.Graph(), []uint64{1, 2, 3})), p.Encode(scope, gfn.Batch{x}), gfn.State{z}, nil, gfn.Behaviour{})
	return ReduceSum(net.Score(tr, gfn.Behaviour{}).LogPF, 1)
}

// posteriors returns log q(z|x) of every latent for every image, by image.
func posteriors(t testing.TB, b compute.Backend, store *model.Store, p sized, x *tensors.Tensor) [][]float64 {
	t.Helper()
	return byImage(x, eval(t, b, store, func(_ *model.Scope, x, z *Node) *Node {
		xs, zs := pairs(x, z)
		return logQ(p, store.Scope(em.Phi), xs, zs)
	}, x, p.latents()))
}

// joints returns log p(x,z) of every latent for every image, by image.
func joints(t testing.TB, b compute.Backend, store *model.Store, m Model, x *tensors.Tensor) [][]float64 {
	t.Helper()
	return byImage(x, eval(t, b, store, func(_ *model.Scope, x, z *Node) *Node {
		xs, zs := pairs(x, z)
		return m.LogJoint(store.Scope(em.Theta), gfn.Batch{xs}, gfn.State{zs})
	}, x, m.latents()))
}

// pairs joins every image with every latent, images first.
func pairs(x, z *Node) (xs, zs *Node) {
	return gfn.Batch{x}.Repeat(z.Shape().Dim(0))[0], gfn.State{z}.Tile(x.Shape().Dim(0))[0]
}

func byImage(x *tensors.Tensor, flat []float64) (rows [][]float64) {
	each := len(flat) / x.Shape().Dim(0)
	for i := range x.Shape().Dim(0) {
		rows = append(rows, flat[i*each:(i+1)*each])
	}
	return rows
}

func exps(logs []float64) []float64 {
	p := make([]float64, len(logs))
	for i, l := range logs {
		p[i] = math.Exp(l)
	}
	return p
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.12g, want %.12g", what, got, want)
	}
}

// sharpen multiplies the initial values of the trainable variables below a scope, so that distributions are far from
// uniform. The variables must exist.
func sharpen(t testing.TB, store *model.Store, scope string, by float64) {
	t.Helper()
	for v := range store.Scope(scope).IterVariables() {
		if !v.Trainable {
			continue
		}
		value, err := v.MustValue().Clone()
		if err != nil {
			t.Fatal(err)
		}
		if v.DType() == dtypes.Float64 {
			tensors.MustMutableFlatData(value, func(flat []float64) { scale(flat, by) })
		} else {
			tensors.MustMutableFlatData(value, func(flat []float32) { scale(flat, float32(by)) })
		}
		if err := v.SetValue(value); err != nil {
			t.Fatal(err)
		}
	}
}

func scale[T float32 | float64](flat []T, by T) {
	for i := range flat {
		flat[i] *= by
	}
}

func newStore(seed uint64) *model.Store { return nn.NewStore(seed) }
