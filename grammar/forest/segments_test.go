package forest

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name        string
		trees, want []int
		segments    []segment
	}{
		{"from ten words", Rising(10), []int{10, 9, 8, 7, 6, 5, 4, 3, 2}, []segment{{12, 2}, {8, math.MaxInt32}}},
		{"one step", BackAndForth(1), []int{2}, []segment{{8, math.MaxInt32}}},
		{
			"nine steps", BackAndForth(9), []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 9, 8, 7, 6, 5, 4, 3, 2},
			[]segment{{8, 7}, {12, 3}, {8, math.MaxInt32}},
		},
		{
			"down alone", Falling(13), []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
			[]segment{{8, 7}, {12, 4}, {13, math.MaxInt32}},
		},
		{
			"two at once", Alongside(Rising(9), Falling(3)), []int{9, 8, 7, 6, 5, 4, 3, 3},
			[]segment{{12, 1}, {8, math.MaxInt32}},
		},
		{"the other is longer", Alongside(Rising(3), Falling(9)), []int{3, 3, 4, 5, 6, 7, 8}, []segment{{8, math.MaxInt32}}},
		{"nowhere", Rising(1), nil, []segment{{13, math.MaxInt32}}},
	} {
		if !slices.Equal(c.trees, c.want) {
			t.Errorf("%s: trees %v, want %v", c.name, c.trees, c.want)
		}
		if got := plan(c.trees, 13); !slices.Equal(got, c.segments) {
			t.Errorf("%s: segments %v, want %v", c.name, got, c.segments)
		}
	}
}

// TestSamplerInSegments: walks that a sampler makes in segments, or by a program for few trees where they are enough,
// are those of whole loops for all trees. Bits may differ, since sums have other lengths, so the seed is fixed: with
// one in a thousand a choice would be another.
func TestSamplerInSegments(t *testing.T) {
	const seed = 3
	for _, c := range []struct{ longest, room int }{{13, 13}, {11, 11}, {9, 13}, {4, 4}} {
		s, x := newSampler(t, seed, c.longest, c.room)
		whole := func(r RolloutTensors, err error) WalkTensors {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			w, err := s.whole.Call(segmentTensors{MaxTrees: s.Positions, Rollout: r})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		drawn := whole(s.start.Call(startTensors{Key: rng.Key(seed, "draw"), Sentences: x}))
		undone := whole(s.undo.Call(undoTensors{rng.Key(seed, "undo"), int32(c.longest), drawn}))
		whereDrawn, whereUndone := readForests(drawn.Forest), readForests(undone.Forest)
		for i, length := range tensors.MustCopyFlatData[int32](x.Lengths) {
			if up, down := len(whereDrawn[i]), len(whereUndone[i]); up != 1 || down != int(length) {
				t.Errorf("sentence %d of %d words: %d trees are drawn, and %d left when that is undone", i, length, up, down)
			}
		}
		for how, quick := range map[string]bool{"in segments": true, "in whole loops": false} {
			s.Quick = quick
			got, err := s.Draw(rng.Key(seed, "draw"), em.Knobs[*tensors.Tensor]{}, x, c.longest)
			if err != nil {
				t.Fatal(err)
			}
			sameWalks(t, "drawn "+how, got, drawn)
			if got, err = s.Undo(rng.Key(seed, "undo"), got, c.longest); err != nil {
				t.Fatal(err)
			}
			sameWalks(t, "undone "+how, got, undone)
		}
	}
}

// newSampler returns one with sentences of at most so many words, the first of which has as many.
func newSampler(t *testing.T, seed uint64, longest, room int) (*Sampler, SentenceTensors) {
	t.Helper()
	var lengths []int32
	for i := range 5 {
		lengths = append(lengths, int32(max(2, longest-3*i)))
	}
	r := newRig(t, seed, dtypes.Float32, append(lengths, int32(room))...)
	r.Layers, r.Positions = 1, 13
	words := tensors.MustCopyFlatData[int32](r.words)[:len(lengths)*room]
	set := program.NewSet(r.b, r.store)
	t.Cleanup(set.Close)
	return NewSampler(set, r.Network, nil), SentenceTensors{
		tensors.FromFlatDataAndDimensions(words, len(lengths), room), tensors.FromValue(lengths),
	}
}

func sameWalks(t *testing.T, what string, got, want WalkTensors) {
	t.Helper()
	all := tensorsOf(want)
	for i, x := range tensorsOf(got) {
		if x.DType() == dtypes.Int32 {
			if !x.Equal(all[i].Tensor) {
				t.Fatalf("%s: %s is %v, want %v", what, x.name, x.Tensor, all[i].Tensor)
			}
		} else if v, g := float64s(t, all[i].Tensor), float64s(t, x.Tensor); !floats.EqualApprox(v, g, 1e-4) {
			t.Fatalf("%s: %s is %v, want %v", what, x.name, g, v)
		}
	}
}

// TestFinish: backends that are quick to compile get programs for several numbers of trees, others for few or all.
func TestFinish(t *testing.T) {
	for _, c := range []struct {
		quick bool
		trees []int
		want  []int
	}{
		{true, BackAndForth(9), []int{8, 12}}, // the first serves again
		{true, nil, []int{13}},
		{false, Rising(13), []int{13}},
		{false, Falling(11), []int{13}},
		{false, Rising(10), []int{fewTrees}},
		{false, BackAndForth(9), []int{fewTrees}},
		{false, nil, []int{13}},
	} {
		s, x := newSampler(t, 1, 13, 13)
		s.Quick = c.quick
		var got []int
		s.segment = program.New[segmentTensors, RolloutTensors](s.Set, "rollout", func(in segmentIn[*Node, Rollout]) Rollout {
			got = append(got, in.MaxTrees)
			return in.Rollout
		})
		s.whole = program.New[segmentTensors, WalkTensors](s.Set, "rollout", func(in segmentIn[*Node, Rollout]) Walk {
			got = append(got, in.MaxTrees)
			return in.Rollout.Walk
		})
		r, err := s.start.Call(startTensors{Key: rng.Key(1, "draw"), Sentences: x})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Finish(c.trees, r); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("quick to compile: %v, trees %v: programs for %v, want %v", c.quick, c.trees, got, c.want)
		}
	}
}
