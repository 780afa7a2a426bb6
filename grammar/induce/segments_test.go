package induce

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// TestTravel: what an E-step and an evaluation do by journeys in legs, or with few places where they are enough, is what they do by whole ones
// with all places. Bits may differ, since sums have other lengths, so the seed is fixed: with one in a thousand a choice would be another.
func TestTravel(t *testing.T) {
	c := smallGFN()
	c.Moves, c.BackSteps, c.MaxLength, c.DreamLeaves, c.DreamSteps = 6, 12, 13, 20, 11
	s := tinySession(t, c)
	for _, longest := range []int{13, 11, 4} { // dreams are deeper than the last
		b := longBatch(c.Batch, longest)
		all, err := s.gfn.way(s.gfn.net.Positions)
		if err != nil {
			t.Fatal(err)
		}
		s.gfn.ways[fewPlaces] = all
		whole := journeys(t, s, b, false)
		delete(s.gfn.ways, fewPlaces)
		for how, onCPU := range map[string]bool{"in legs": true, "with few places": false} {
			got := journeys(t, s, b, onCPU)
			for name, want := range whole {
				if len(want) == 0 {
					t.Fatalf("%s: no journeys", name)
				}
				for i, x := range want {
					if y := got[name][i]; x.DType() == dtypes.Int32 {
						if !x.Equal(y) {
							t.Fatalf("%s %s, %d words: tensor %d is %v, want %v", name, how, longest, i, y, x)
						}
					} else if v, g := widened(x), widened(y); !floats.EqualApprox(v, g, 1e-4) {
						t.Fatalf("%s %s, %d words: tensor %d is %v, want %v", name, how, longest, i, g, v)
					}
				}
			}
		}
		if s.gfn.ways[fewPlaces] == nil {
			t.Errorf("%d words: no journey with few places", longest)
		}
	}
	if len(s.gfn.legs) < 2 {
		t.Errorf("%d programs for legs, want several", len(s.gfn.legs))
	}
}

// journeys makes all kinds of them.
func journeys(t *testing.T, s *session, b batch, onCPU bool) map[string][]*tensors.Tensor {
	t.Helper()
	s.gfn.onCPU = onCPU
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w := &eStep{gflownet: s.gfn, seed: 3, batch: b}
	w.choose(w.stepsBack(true, 0))
	must(w.walk())
	out := map[string][]*tensors.Tensor{"wake": w.walks, "sleep": w.learning.down}
	must(w.moveOn())
	out["moves"], out["trained move"] = w.walks, w.learning.after
	p := newGFNParser(s.gfn)
	d, err := p.draw(b, w.key("draw"))
	must(err)
	out["draw"] = d.walks
	orders, err := p.orders(b, d.walks, 2, func(k int) *tensors.Tensor { return w.key("order", uint64(k)) })
	must(err)
	for _, x := range orders {
		out["orders"] = append(out["orders"], tensors.FromValue([]float32{float32(x[0]), float32(x[1])}))
	}
	return out
}

// longBatch has sentences of at most n words.
func longBatch(rows, n int) batch {
	r := rng.New(0, "long")
	var sentences []treebank.Sentence
	for i := range rows {
		words := make([]int32, max(2, n-3*i))
		for k := range words {
			words[k] = int32(r.IntN(3))
		}
		sentences = append(sentences, treebank.Sentence{Words: words})
	}
	return newBatch(sentences, rows, n, n)
}

// TestForACard: an E-step by the programs that are made for a card says what one by those for a CPU does.
func TestForACard(t *testing.T) {
	c := smallGFN()
	c.Moves, c.BackSteps, c.DreamLeaves, c.DreamSteps = 3, 12, 20, 11
	cpu, card := tinySession(t, c), tinySession(t, c)
	card.gfn.onCPU, card.gfn.net.Rolled = false, true
	want, got := awake(t, cpu, true), awake(t, card, true)
	for i, x := range want.forests() {
		if !x.Equal(got.forests()[i]) {
			t.Error("moves lead to other trees")
		}
	}
	a, b := got.outcome, want.outcome
	closeTo(t, "wake", a.wake, b.wake, 1e-5)
	closeTo(t, "balance", a.balance, b.balance, 1e-5)
	closeTo(t, "sleep", a.sleep, b.sleep, 1e-5)
	closeTo(t, "norm of the gradient", a.norm, b.norm, 1e-5)
}
