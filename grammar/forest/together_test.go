package forest

import (
	"testing"

	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/internal/testkit"
)

// TestTogether: walks of two batches come out of their union as they went in, and with room for more words they are the same walks.
func TestTogether(t *testing.T) {
	seed := testkit.Seed(t)
	small, large := newRig(t, seed, dtypes.Float64, 3, 2, 4), newRig(t, seed+1, dtypes.Float64, 7, 5)
	large.b = small.b
	_, a := small.walk(t, seed, 2, plain)
	_, b := large.walk(t, seed, 3, plain)
	got := call[two[WalkTensors]](t, small, func(in two[Walk]) two[Walk] {
		p, q := Apart(Together(in.A, in.B), 3, small.n, large.n)
		return two[Walk]{p, q}
	}, two[WalkTensors]{a, b})
	same(t, "walks", got, two[WalkTensors]{a, b}, 0)
}

type two[W any] struct{ A, B W }
