package forest

import (
	"math"
	"reflect"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
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
	segments       bool // rollouts are made in segments of one pass, by programs for no more trees than there are
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

func (r *rig) sentences() SentenceTensors { return SentenceTensors{r.words, r.lengths} }

// call makes a program of a function and calls it once.
func call[Out, In, NodesIn, NodesOut any](t testing.TB, r *rig, f func(NodesIn) NodesOut, in In) Out {
	t.Helper()
	out, err := program.Once[In, Out](r.b, r.store, "test", f, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// keyed is what rollouts start from, and a random key.
type keyed[T, X any] struct {
	Key  T
	From X
}

// wake makes walks from bare words to whole trees.
func (r *rig) wake(t testing.TB, seed uint64, how func(g *Graph) gfn.Behaviour) WalkTensors {
	t.Helper()
	return r.finish(t, 0, call[RolloutTensors](t, r, func(in keyed[*Node, Sentences]) Rollout {
		g := in.Key.Graph()
		return r.Rollout(r.Begin(r.scope(), in.From), rng.In(in.Key), Const(g, int32(0)), Const(g, true), how(g))
	}, keyed[*tensors.Tensor, SentenceTensors]{rng.Key(seed, "wake"), r.sentences()}))
}

// back makes walks so many steps back, and then forward if they rise.
func (r *rig) back(
	t testing.TB, key *tensors.Tensor, from WalkTensors, back int32, rise bool, how func(g *Graph) gfn.Behaviour,
) WalkTensors {
	t.Helper()
	return r.finish(t, int(back), call[RolloutTensors](t, r, func(in keyed[*Node, Walk]) Rollout {
		g := in.Key.Graph()
		return r.Rollout(in.From, rng.In(in.Key), Const(g, back), Const(g, rise), how(g))
	}, keyed[*tensors.Tensor, WalkTensors]{key, from}))
}

// walk makes walks: wake, and a move of so many steps back from there.
func (r *rig) walk(t testing.TB, seed uint64, back int32, how func(g *Graph) gfn.Behaviour) (start, end WalkTensors) {
	t.Helper()
	start = r.wake(t, seed, how)
	return start, r.back(t, rng.Key(seed, "move"), start, back, true, how)
}

// finish runs rollouts of so many steps back, or from bare words.
func (r *rig) finish(t testing.TB, back int, s RolloutTensors) WalkTensors {
	t.Helper()
	if !r.segments {
		return call[WalkTensors](t, r, func(s Rollout) Walk { return r.Run(r.scope(), s, r.Positions) }, s)
	}
	trees := 2
	if back == 0 {
		trees, back = r.n, 1
	}
	for pass := 0; trees > 1; pass++ {
		one := int32(1)
		s = call[RolloutTensors](t, r, func(in segmentIn[*Node, Rollout]) Rollout {
			return r.Segment(r.scope(), in.Rollout, in.Passes, in.MaxTrees, Part{})
		}, segmentTensors{trees, Part{}, &one, s})
		if pass < back-1 {
			trees++
		} else {
			trees--
		}
	}
	return s.WalkTensors
}

// walked is sentences with walks of wake and of a move, which may be left out.
type walked[S, W any] struct {
	Sentences  S
	Wake, Move W
}

func (r *rig) walked(wake, move WalkTensors) walked[SentenceTensors, WalkTensors] {
	return walked[SentenceTensors, WalkTensors]{r.sentences(), wake, move}
}

// histories are what wake made, what the move undid of it, and what it made instead.
func histories(w walked[Sentences, Walk]) []History {
	words := w.Sentences.Words
	return []History{w.Wake.Built(words), UndoneHistory(w.Move.Undone, w.Wake.Forest, w.Wake.Inside, words), w.Move.Built(words)}
}

// scoreTensors are gfn.Scores on the host.
type scoreTensors struct{ LogPF, LogPB, Flow *tensors.Tensor }

// named is a tensor and the field where it stands.
type named struct {
	*tensors.Tensor
	name string
}

// tensorsOf lists the tensors of a struct.
func tensorsOf(s any) (all []named) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		field, name := v.Field(i).Interface(), v.Type().Field(i).Name
		if x, ok := field.(*tensors.Tensor); ok {
			if x != nil {
				all = append(all, named{x, name})
			}
			continue
		}
		for _, x := range tensorsOf(field) {
			all = append(all, named{x.Tensor, name + "." + x.name})
		}
	}
	return all
}

// same fails unless structs have the same tensors, those of floats to within.
func same[S any](t testing.TB, what string, got, want S, within float64) {
	t.Helper()
	all := tensorsOf(want)
	for i, x := range tensorsOf(got) {
		if x.DType().IsFloat() && within > 0 {
			near(t, what+" "+x.name, x.Tensor, all[i].Tensor, within)
		} else if !x.Equal(all[i].Tensor) {
			t.Errorf("%s %s is %v, want %v", what, x.name, x.Tensor, all[i].Tensor)
		}
	}
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
