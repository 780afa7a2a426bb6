package induce

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// TestSegments: an E-step and an evaluation whose rollouts run in segments, for as many trees as forests can have, do
// what they do by whole loops, for few trees where that is enough. Bits may differ, since sums have other lengths, so
// the seed is fixed: with one in a thousand a choice would be another.
func TestSegments(t *testing.T) {
	c := smallGFN()
	c.Moves.Count, c.Moves.Steps, c.MaxLength, c.Sleep.Leaves, c.Sleep.Steps = 6, 12, 13, 20, 11
	s := tinySession(t, c)
	for _, longest := range []int{13, 11, 4} { // dreams are deeper than the last
		b := longBatch(c.Batch, longest)
		whole, segments := rollouts(t, s, b, false), rollouts(t, s, b, true)
		if len(whole) < 30 || len(whole) != len(segments) {
			t.Fatalf("%d tensors of rollouts, and %d of those in segments", len(whole), len(segments))
		}
		for name, want := range whole {
			if got := segments[name]; want.DType() == dtypes.Int32 {
				if !want.Equal(got) {
					t.Fatalf("%s, %d words: %v, want %v", name, longest, got, want)
				}
			} else if v, g := widened(want), widened(got); !floats.EqualApprox(v, g, 1e-4) {
				t.Fatalf("%s, %d words: %v, want %v", name, longest, g, v)
			}
		}
	}
}

// rollouts makes all kinds of walks, and returns what they are made of by name.
func rollouts(t *testing.T, s *Session, b parse.Padded, quick bool) map[string]*tensors.Tensor {
	t.Helper()
	defer func(was bool) { s.gfn.Quick = was }(s.gfn.Quick)
	s.gfn.Quick = quick
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]*tensors.Tensor{}
	note := func(kind string, walks any) {
		tensorsOf(walks, func(name string, x *tensors.Tensor) { out[kind+name] = x })
	}
	w := &walker{gflownet: s.gfn, seed: 3, batch: b}
	w.choose(w.stepsBack(true, 0))
	must(w.walk())
	note("wake", w.walks)
	note("sleep", *w.down)
	must(w.moveOn())
	note("moves", w.walks)
	note("trained move", w.learning.Move.After)
	walks, err := w.Draw(w.key("draw"), em.Knobs[*tensors.Tensor]{}, b.SentenceTensors, b.Longest())
	must(err)
	note("draw", walks)
	for k := range 2 {
		back, err := w.Undo(w.key("order", uint64(k)), walks, b.Longest())
		must(err)
		note(fmt.Sprint("order ", k), back.UndoneForward)
		note(fmt.Sprint("order back ", k), back.UndoneBack)
	}
	return out
}

// longBatch has sentences of at most n words.
func longBatch(rows, n int) parse.Padded {
	r := rng.New(0, "long")
	var sentences []treebank.Sentence
	for i := range rows {
		words := make([]int32, max(2, n-3*i))
		for k := range words {
			words[k] = int32(r.IntN(3))
		}
		sentences = append(sentences, treebank.Sentence{Words: words})
	}
	return parse.Batches{Rows: rows, Bucket: n, Most: n}.Pad(sentences)
}

// TestForACard: an E-step by the programs that are made for a card says what one by those for a CPU does.
func TestForACard(t *testing.T) {
	for _, trees := range []string{Labelled, Shapes} {
		t.Run(trees, func(t *testing.T) { testForACard(t, trees) })
	}
}

func testForACard(t *testing.T, trees string) {
	c := smallGFN()
	c.Policy.Trees = trees
	c.Moves.Count, c.Moves.Steps, c.Sleep.Leaves, c.Sleep.Steps = 3, 12, 20, 11
	c.Wake.Replay, c.Optim.Warmup = 1, 40 // the first rate is 0
	cpu, card := tinySession(t, c), tinySession(t, c)
	card.gfn.Quick, card.gfn.Rolled = false, true
	awake(t, cpu, true).remember()
	awake(t, card, true).remember()
	want, got := awake(t, cpu, true), awake(t, card, true)
	for i, v := range widened(want.logAgain) {
		closeTo(t, "the weight of a tree that is replayed", widened(got.logAgain)[i], v, 1e-5)
	}
	if there := got.metrics()["wake/replayed"]; there != 1 {
		t.Errorf("%g of all trees are there", there)
	}
	sameForests(t, got.walks.Forest, want.walks.Forest)
	a, b := got.losses, want.losses
	closeTo(t, "wake", a.Wake, b.Wake, 1e-5)
	closeTo(t, "balance", a.Balance, b.Balance, 1e-5)
	closeTo(t, "sleep", a.Sleep, b.Sleep, 1e-5)
	closeTo(t, "norm of the gradient", a.GradNorm, b.GradNorm, 1e-5)
}
