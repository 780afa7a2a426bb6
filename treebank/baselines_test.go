package treebank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// checkBinary fails unless spans are those of a binary tree over n words, each after those inside it.
func checkBinary(t *testing.T, spans []Span, n int) {
	t.Helper()
	if len(spans) != n-1 || spans[n-2] != (Span{0, n - 1}) {
		t.Fatalf("%d words: spans %v", n, spans)
	}
	for i, a := range spans {
		if a[0] < 0 || a[0] >= a[1] || a[1] >= n {
			t.Fatalf("%d words: span %v", n, a)
		}
		for _, b := range spans[i+1:] {
			inside := b[0] <= a[0] && a[1] <= b[1]
			apart := a[1] < b[0] || b[1] < a[0]
			if a == b || !inside && !apart {
				t.Fatalf("%v before %v in %v", a, b, spans)
			}
		}
	}
}

func TestBranching(t *testing.T) {
	if got := fmt.Sprint(RightBranching(4), LeftBranching(4)); got != "[[2 3] [1 3] [0 3]] [[0 1] [0 2] [0 3]]" {
		t.Error(got)
	}
	if len(RightBranching(1))+len(LeftBranching(1))+len(RandomMerges(1, nil))+len(Binarize(nil, 1)) != 0 {
		t.Error("a tree over one word has spans")
	}
	for n := 2; n < 9; n++ {
		checkBinary(t, RightBranching(n), n)
		checkBinary(t, LeftBranching(n), n)
	}
}

// TestRandomMerges compares with the exact distribution over the five trees of four words: of the six orders of
// merging, two give the balanced tree.
func TestRandomMerges(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const n = 12_000
	test := func(tree func() []Span) (chi2 float64) {
		counts := make(map[string]int)
		for range n {
			spans := tree()
			checkBinary(t, spans, 4)
			slices.SortFunc(spans, func(a, b Span) int { return a[0]*10 + a[1] - b[0]*10 - b[1] })
			counts[fmt.Sprint(spans)]++
		}
		expected := map[string]float64{"[[0 1] [0 3] [2 3]]": n / 3., "[[0 1] [0 2] [0 3]]": n / 6., "[[0 2] [0 3] [1 2]]": n / 6.,
			"[[0 3] [1 2] [1 3]]": n / 6., "[[0 3] [1 3] [2 3]]": n / 6.}
		for tree, e := range expected {
			chi2 += math.Pow(float64(counts[tree])-e, 2) / e
		}
		return chi2
	}
	const limit = 24.0 // exceeded with probability 8e-5 by chi-square of 4 degrees of freedom
	if chi2 := test(func() []Span { return RandomMerges(4, r) }); chi2 > limit {
		t.Errorf("chi-square %.1f", chi2)
	}
	trees := [][]Span{{{0, 1}, {2, 3}, {0, 3}}, {{0, 1}, {0, 2}, {0, 3}}, {{1, 2}, {0, 2}, {0, 3}}, {{1, 2}, {1, 3}, {0, 3}}, {{2, 3}, {1, 3}, {0, 3}}}
	if chi2 := test(func() []Span { return slices.Clone(trees[r.IntN(5)]) }); chi2 < limit {
		t.Errorf("uniform trees pass as random merges: chi-square %.1f", chi2)
	}
}

func TestBinarize(t *testing.T) {
	if got := fmt.Sprint(Binarize([]Span{{1, 2}, {0, 4}, {0, 4}}, 5)); got != "[[1 2] [3 4] [1 4] [0 4]]" {
		t.Error(got)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var gold []Span
		n := spansOf(randomTree(r, 4), 0, &gold)
		if n < 2 {
			continue
		}
		spans := Binarize(gold, n)
		checkBinary(t, spans, n)
		for _, g := range gold {
			if !slices.Contains(spans, g) {
				t.Fatalf("%v is not in %v", g, spans)
			}
		}
	}
}
