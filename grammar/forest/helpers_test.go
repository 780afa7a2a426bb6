package forest

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/panics"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// rig is a small network with a batch of sentences of several lengths.
type rig struct {
	Network
	b              compute.Backend
	store          *model.Store
	words, lengths *tensors.Tensor
	n              int
	legs           bool // journeys are made in legs of one pass, with no place to spare
}

func newRig(t testing.TB, seed uint64, dtype dtypes.DType, lengths ...int32) *rig {
	b, err := engine.New("")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{b: b, store: nn.NewStore(seed), Network: Network{
		Width: 8, Layers: 2, Heads: 2, FeedForward: 16, Words: 5, Labels: 3, Preterminals: 2, Positions: 9, DType: dtype,
	}}
	for _, l := range lengths {
		r.n = max(r.n, int(l))
	}
	host := rng.New(seed, "words")
	words := make([]int32, len(lengths)*r.n)
	for i := range words {
		words[i] = int32(host.IntN(r.Words))
	}
	r.words = tensors.FromFlatDataAndDimensions(words, len(lengths), r.n)
	r.lengths = tensors.FromValue(lengths)
	return r
}

func (r *rig) scope() *model.Scope { return r.store.Scope("/phi") }

// run builds a program and calls it once.
func (r *rig) run(t testing.TB, f func(in []*Node) []*Node, args ...any) []*tensors.Tensor {
	t.Helper()
	out, err := model.CallOnceN(r.b, r.store, func(_ *model.Scope, in []*Node) []*Node {
		defer panics.WithError()
		return f(in)
	}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// walk makes walks: wake, and a move of so many steps back from there.
func (r *rig) walk(t testing.TB, seed uint64, back int32, how func(g *Graph) gfn.Behaviour) (start, end walkTensors) {
	t.Helper()
	begun := r.byLegs(t, 0, r.run(t, func(in []*Node) []*Node {
		g := in[0].Graph()
		return r.SetOut(r.Begin(r.scope(), in[0], in[1]), rng.In(in[2]), Const(g, int32(0)), Const(g, true), how(g)).List()
	}, r.words, r.lengths, rng.Key(seed, "wake")))
	moved := r.byLegs(t, int(back), r.run(t, func(in []*Node) []*Node {
		g := in[0].Graph()
		return r.SetOut(WalkOf(in[1:]), rng.In(in[0]), Const(g, back), Const(g, true), how(g)).List()
	}, append([]any{rng.Key(seed, "move")}, anys(begun)...)...))
	return begun, moved
}

func (r *rig) journey(t testing.TB, j []*tensors.Tensor) walkTensors {
	t.Helper()
	return r.run(t, func(in []*Node) []*Node { return r.Go(r.scope(), JourneyOf(in)).List() }, anys(j)...)
}

// byLegs makes a journey of so many steps back, or from bare words.
func (r *rig) byLegs(t testing.TB, back int, j []*tensors.Tensor) walkTensors {
	t.Helper()
	if !r.legs {
		return r.journey(t, j)
	}
	trees := 2
	if back == 0 {
		trees, back = r.n, 1
	}
	for pass := 0; trees > 1; pass++ {
		leg := func(in []*Node) []*Node { return r.GoOn(r.scope(), JourneyOf(in[1:]), in[0], trees).List() }
		j = r.run(t, leg, append([]any{int32(1)}, anys(j)...)...)
		if pass < back-1 {
			trees++
		} else {
			trees--
		}
	}
	return j[JourneyWalk:]
}

type walkTensors []*tensors.Tensor

func anys(ts []*tensors.Tensor) []any {
	out := make([]any, len(ts))
	for i, t := range ts {
		out[i] = t
	}
	return out
}

func float64s(t testing.TB, x *tensors.Tensor) []float64 {
	t.Helper()
	switch x.DType() {
	case dtypes.Float64:
		return tensors.MustCopyFlatData[float64](x)
	case dtypes.Float32:
		var out []float64
		for _, v := range tensors.MustCopyFlatData[float32](x) {
			out = append(out, float64(v))
		}
		return out
	}
	t.Fatalf("dtype %s", x.DType())
	return nil
}

// near fails unless two tensors agree to within.
func near(t testing.TB, what string, got, want *tensors.Tensor, within float64) {
	t.Helper()
	a, b := float64s(t, got), float64s(t, want)
	if len(a) != len(b) {
		t.Fatalf("%s: %d values, want %d", what, len(a), len(b))
	}
	for i := range a {
		if !(math.Abs(a[i]-b[i]) <= within*(1+math.Abs(b[i]))) {
			t.Fatalf("%s: element %d of %v is %.15g, want %.15g", what, i, got.Shape(), a[i], b[i])
		}
	}
}

func plain(g *Graph) gfn.Behaviour { return tempered(1)(g) }

func tempered(beta float64) func(g *Graph) gfn.Behaviour {
	return func(g *Graph) gfn.Behaviour {
		return gfn.Behaviour{Beta: Scalar(g, dtypes.Float64, beta), Epsilon: Scalar(g, dtypes.Float64, 0)}
	}
}
