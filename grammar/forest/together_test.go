package forest

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/testkit"
)

// TestTogether: walks of two batches come out of their union as they went in, and with room for more words they are the
// same walks.
func TestTogether(t *testing.T) {
	seed := testkit.Seed(t)
	small, large := newRig(t, seed, dtypes.Float64, 3, 2, 4), newRig(t, seed+1, dtypes.Float64, 7, 5)
	large.b = small.b
	_, a := small.walk(t, seed, 2, plain)
	_, b := large.walk(t, seed, 3, plain)
	got := call[union[WalkTensors]](t, small, func(in union[Walk]) union[Walk] {
		all := Together(in.A, in.B)
		a, b := Apart(all, 3, small.n, large.n)
		return union[Walk]{a, b, all}
	}, union[WalkTensors]{A: a, B: b})
	same(t, "first batch:", got.A, a, 0)
	same(t, "second batch:", got.B, b, 0)

	inside, before := readForests(got.All.Forest), readForests(a.Forest)
	steps := func(w WalkTensors, n, row, gap int) []int32 {
		ints := tensors.MustCopyFlatData[int32]
		return []int32{ints(w.Undone)[row*(n-1)+gap], ints(w.Made)[row*(n-1)+gap]}
	}
	for row, f := range before {
		if got, want := key(inside[row], large.n), key(f, large.n); got != want {
			t.Errorf("forest %d is %s, was %s", row, got, want)
		}
		for gap := range small.n - 1 {
			if got, want := steps(got.All, large.n, row, gap), steps(a, small.n, row, gap); !slices.Equal(got, want) {
				t.Errorf("walk %d opened and closed gap %d at %v, was %v", row, gap, got, want)
			}
		}
	}
}

// union is two batches of walks and both of them together.
type union[W any] struct{ A, B, All W }
