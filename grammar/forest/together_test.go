package forest

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/testkit"
)

// TestTogether: walks of two batches come out of their union as they went in, and with room for more words they are the same walks.
func TestTogether(t *testing.T) {
	seed := testkit.Seed(t)
	small, large := newRig(t, seed, dtypes.Float64, 3, 2, 4), newRig(t, seed+1, dtypes.Float64, 7, 5)
	large.b = small.b
	_, a := small.walk(t, seed, 2, plain)
	_, b := large.walk(t, seed, 3, plain)
	out := small.run(t, func(in []*Node) []*Node {
		x, y := WalkOf(in[:WalkSize]), WalkOf(in[WalkSize:])
		p, q := Apart(Together(x, y), 3, small.n, large.n)
		all := append(p.List(), q.List()...)

		return all
	}, append(anys(a), anys(b)...)...)
	want := append(a, b...)
	for i := range want {
		if !out[i].Equal(want[i]) {
			t.Errorf("tensor %d is %v, was %v", i, out[i], want[i])
		}
	}
}
