package induce

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/rng"
)

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name        string
		trees, want []int
		legs        []leg
	}{
		{"from ten words", rising(10), []int{10, 9, 8, 7, 6, 5, 4, 3, 2}, []leg{{12, 2}, {8, math.MaxInt32}}},
		{"one step", backAndForth(1), []int{2}, []leg{{8, math.MaxInt32}}},
		{"nine steps", backAndForth(9), []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 9, 8, 7, 6, 5, 4, 3, 2}, []leg{{8, 7}, {12, 3}, {8, math.MaxInt32}}},
		{"down alone", falling(13), []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, []leg{{8, 7}, {12, 4}, {13, math.MaxInt32}}},
		{"two at once", alongside(rising(9), falling(3)), []int{9, 8, 7, 6, 5, 4, 3, 3}, []leg{{12, 1}, {8, math.MaxInt32}}},
		{"the other is longer", alongside(rising(3), falling(9)), []int{3, 3, 4, 5, 6, 7, 8, 9}, []leg{{8, 7}, {12, math.MaxInt32}}},
		{"nowhere", rising(1), nil, []leg{{13, math.MaxInt32}}},
	} {
		if !slices.Equal(c.trees, c.want) {
			t.Errorf("%s: trees %v, want %v", c.name, c.trees, c.want)
		}
		if got := plan(c.trees, 13); !slices.Equal(got, c.legs) {
			t.Errorf("%s: legs %v, want %v", c.name, got, c.legs)
		}
	}
}

// TestTravel: journeys in legs lead where they lead when they are made at once. Sums are rounded in another order, so the seed is fixed: with
// one in a thousand a choice would be another.
func TestTravel(t *testing.T) {
	const seed, n = 3, 13
	c := smallGFN()
	c.MaxLength, c.DreamLeaves, c.DreamSteps = n, 20, 12
	s := tinySession(t, c)
	w := &eStep{gflownet: s.gfn, seed: seed, batch: longBatch(c.Batch, n)}
	same := func(what string, trees []int, p *program, args ...any) []*tensors.Tensor {
		t.Helper()
		if len(plan(trees, n)) < 2 {
			t.Errorf("%s is made in one leg", what)
		}
		var out [2][]*tensors.Tensor
		for i, way := range [][]int{{n}, trees} { // the first is one leg with a place for every word
			var err error
			if out[i], err = s.gfn.through(way, p, args...); err != nil {
				t.Fatal(err)
			}
		}
		for i := range out[0] {
			if want, got := out[0][i], out[1][i]; want.DType() == dtypes.Float32 {
				for k, v := range widened(want) {
					if g := widened(got)[k]; !(math.Abs(g-v) <= 1e-4*(1+math.Abs(v))) {
						t.Fatalf("%s: element %d of tensor %d is %g, want %g", what, k, i, g, v)
					}
				}
			} else if !want.Equal(got) {
				t.Fatalf("%s: tensor %d is %v, want %v", what, i, got, want)
			}
		}
		return out[0]
	}
	walks := same("wake", rising(n), w.wake, w.key("wake"), w.knobs(), w.batch.words, w.batch.lengths)
	for _, back := range []int{8, 10, 12} {
		same("a move", backAndForth(back), w.move, appendAll([]any{w.key("move"), w.knobs(), int32(back), true}, walks)...)
	}
	same("orders", falling(n), w.move, appendAll([]any{w.key("orders"), onPolicy, int32(n), false}, walks)...)
	d, err := w.dream.Call(w.key("dream"))
	if err != nil {
		t.Fatal(err)
	}
	deepest := min(int(slices.Max(tensors.MustCopyFlatData[int32](d[1])))-1, c.DreamSteps)
	begun := same("wake and sleep", alongside(rising(n), falling(deepest+1)), w.begin,
		appendAll([]any{w.key("begin"), w.knobs(), w.batch.words, w.batch.lengths}, d)...)
	if got := begun[forest.WalkRoot].Shape().Dim(0); got != 2*c.Batch {
		t.Errorf("%d walks", got)
	}
}

// longBatch has sentences of 2 to n words.
func longBatch(rows, n int) batch {
	r := rng.New(0, "long")
	words, lengths := make([]int32, rows*n), make([]int32, rows)
	for i := range words {
		words[i] = int32(r.IntN(3))
	}
	for i := range lengths {
		lengths[i] = int32(max(2, n-3*i))
	}
	return batch{words: tensors.FromFlatDataAndDimensions(words, rows, n), lengths: tensors.FromValue(lengths), size: rows, n: n}
}
