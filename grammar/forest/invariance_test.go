package forest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestUniformWalks: a network that says nothing takes all paths alike, so that a tree comes as often as there are
// orders to make it in.
func TestUniformWalks(t *testing.T) {
	t.Parallel()
	const rows = 6000
	seed := testkit.Seed(t)
	var sentences [][]int32
	for i := range rows {
		sentences = append(sentences, make([]int32, 4+i%2))
	}
	r := tinyRig(t, seed, sentences...)
	r.flat(t)
	begun := r.wake(t, seed, plain)
	shapes, trees := map[int]map[string]int{4: {}, 5: {}}, map[int]map[string]int{4: {}, 5: {}}
	forward := float64s(t, begun.MadeForward)
	for b, p := range pathsOf(r, begun) {
		n := len(p.words)
		z := forests(n, p.steps)[n-1]
		shapes[n][z[0].shape()]++
		trees[n][key(z, n)]++
		checkNumber(t, "log P_F", forward[b], -math.Log(float64(len(allOf[n]))), 1e-12)
		if t.Failed() {
			t.FailNow()
		}
	}
	balanced := float64(shapes[4]["((0 1) (2 3))"]) / (rows / 2)
	checkNumber(t, "fraction of balanced trees of four words", balanced, 1.0/3, 0.05) // nearly six standard deviations
	for n, all := range allOf {
		expected, equal := map[string]float64{}, map[string]float64{}
		for _, path := range all {
			z := forests(n, path)[n-1]
			expected[key(z, n)] += 1 / float64(len(all))
			equal[key(z, n)] = 1
		}
		for k := range equal {
			equal[k] = 1 / float64(len(expected))
		}
		if p := chiSquare(trees[n], expected); p < alpha {
			t.Errorf("%d words: trees have a p-value of %g", n, p)
		}
		if p := chiSquare(trees[n], equal); p > alpha {
			t.Errorf("%d words: trees could all be as frequent, p-value %g", n, p)
		}
	}
}

// allOf are the paths to whole trees of two labels, by the number of words.
var allOf = map[int][][]closing{4: allPaths(4, 2), 5: allPaths(5, 2)}

// surely is a behaviour so cold that it does not depend on random numbers.
var surely = tempered(1e6)

// TestPaddingAndOrder: more columns of padding, with whatever words in them, change neither scores nor walks; and
// sentences in another order have the same of both in that order.
func TestPaddingAndOrder(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	sentences := [][]int32{{0, 1, 2, 0, 1}, {2, 1}, {2, 0, 1, 1}, {0, 1, 2}, {1, 1, 0, 2, 2}, {0, 2, 0, 1}}
	order := rng.New(seed, "order").Perm(len(sentences))
	r := tinyRig(t, seed, sentences...)
	moved := tinyRig(t, seed, permuted(sentences, order)...)
	wide := tinyRig(t, seed, append(slices.Clone(sentences), make([]int32, 8))...) // a longer one that is left out again
	words := tensors.MustCopyFlatData[int32](wide.words)[:len(sentences)*8]
	for b, s := range sentences {
		for i := len(s); i < 8; i++ {
			words[b*8+i] = int32(i % 3)
		}
	}
	wide.words, wide.lengths = tensors.FromFlatDataAndDimensions(words, len(sentences), 8), r.lengths

	start, _ := r.walk(t, seed, 2, plain)
	paths := pathsOf(r, start)
	want := r.describe(t, seed, paths)
	wider := wide.describe(t, seed, paths)
	other := moved.describe(t, seed, permuted(paths, order))
	for b := range sentences {
		sameNumbers(t, fmt.Sprintf("sentence %d with more padding", b), wider[b], want[b])
	}
	for i, b := range order {
		sameNumbers(t, fmt.Sprintf("sentence %d at place %d", b, i), other[i], want[b])
	}
	if len(want[0]) == len(want[1]) {
		t.Error("sentences of different lengths have as many numbers")
	}
}

func permuted[T any](x []T, order []int) (out []T) {
	for _, i := range order {
		out = append(out, x[i])
	}
	return out
}

func sameNumbers(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		checkNumber(t, fmt.Sprintf("%s: number %d", what, i), got[i], want[i], 1e-9*(1+math.Abs(want[i])))
	}
}

// threeSizes are histories to score together, with room for more words and fewer.
type threeSizes[H any] struct{ Given, Narrow, Wide H }

// describe collects, for each sentence, what the network says of a path, and what walks do that leave nothing to
// chance: their trees, with the embeddings of all nodes, and the probabilities of another way to the same trees.
func (r *rig) describe(t *testing.T, seed uint64, paths []hostPath) [][]float64 {
	t.Helper()
	// Other paths of the same evaluation, over more words and less, do not matter either.
	scores := call[scoreTensors](t, r, func(in threeSizes[History]) gfn.Scores {
		few, many := Histories{in.Narrow, 1}, Histories{in.Wide, r.n + 1}
		return r.Score(r.scope(), 200, few, Histories{in.Given, r.n - 1}, many)[1].Scores
	}, threeSizes[historyTensors]{
		Given:  pack(r.n, paths),
		Narrow: pack(r.n-1, []hostPath{{words: []int32{0, 1}, steps: []closing{{0, 1}}}}),
		Wide:   pack(r.n+2, []hostPath{{words: []int32{2, 1, 1}, steps: []closing{{1, 1}, {0, 0}}}}),
	})
	wake, move := r.walk(t, seed, 3, surely)
	sampled := pathsOf(r, wake)
	out := make([][]float64, len(paths))
	for b, p := range paths {
		n := len(p.words)
		for _, x := range tensorsOf(scores) {
			out[b] = append(out[b], float64s(t, x.Tensor)[b*(r.n-1):][:n-1]...)
		}
		for _, s := range sampled[b].steps {
			out[b] = append(out[b], float64(s.gap), float64(s.label))
		}
		for _, x := range []*tensors.Tensor{wake.MadeForward, wake.MadeBack, move.UndoneBack, move.UndoneForward} {
			out[b] = append(out[b], float64s(t, x)[b])
		}
		for _, w := range []WalkTensors{wake, move} {
			all := float64s(t, w.Nodes)
			for node := range 2*r.n - 1 {
				if node < n || node >= r.n && node < r.n+n-1 {
					out[b] = append(out[b], all[(b*(2*r.n-1)+node)*r.Width:][:r.Width]...)
				}
			}
		}
	}
	return out
}

// TestEmbeddingsSurvive: a tree has one embedding, whether it was made by a walk, computed from nothing, or came back
// to light when the tree above it was split.
func TestEmbeddingsSurvive(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	r := tinyRig(t, seed, []int32{0, 1, 2, 0, 1, 1, 2}, []int32{2, 1}, []int32{2, 0, 1, 1}, []int32{1, 0, 2, 2, 0, 1})
	wake := r.wake(t, seed, plain)
	for _, back := range []int32{0, 1, 3, 6} {
		split := r.back(t, rng.Key(seed, "split"), wake, back, false, plain)
		again := call[WalkTensors](t, r, func(in walked[Sentences, Walk]) Walk {
			return r.Embed(r.scope(), in.Move.Forest, in.Sentences.Words)
		}, r.walked(wake, split))
		before, after, fresh := float64s(t, wake.Nodes), float64s(t, split.Nodes), float64s(t, again.Nodes)
		lengths := tensors.MustCopyFlatData[int32](r.lengths)
		for b, trees := range readForests(split.Forest) {
			length := lengths[b]
			if want := max(1, min(int(back)+1, int(length))); len(trees) != want {
				t.Errorf("%d steps back: sentence %d has %d trees, want %d", back, b, len(trees), want)
			}
			compare := func(node int) {
				at := (b*(2*r.n-1) + node) * r.Width
				what := fmt.Sprintf("%d steps back: node %d of sentence %d", back, node, b)
				sameNumbers(t, what+", made before", after[at:][:r.Width], before[at:][:r.Width])
				sameNumbers(t, what+", computed again", after[at:][:r.Width], fresh[at:][:r.Width])
			}
			for word := range int(length) {
				compare(word)
			}
			visit(trees, func(v, _ *tree) { compare(r.n + v.gap) })
		}
	}
}
