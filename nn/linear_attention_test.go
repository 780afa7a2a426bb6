package nn

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/engine"
)

// TestLinearAttention compares both forms with the sum over pairs, written out.
func TestLinearAttention(t *testing.T) {
	b, err := engine.New("")
	if err != nil {
		t.Fatal(err)
	}
	const batch, n, heads, each = 2, 5, 2, 3
	seen := []bool{true, false, true, true, true, true, true, false, false, true}
	e := MustNewExec(b, func(mask *Node) []*Node {
		g := mask.Graph()
		x := func(k float64) *Node {
			return Sin(MulScalar(IotaFull(g, shapes.Make(dtypes.Float64, batch, n, heads, each)), k))
		}
		q, k, v := x(1.3), x(2.1), x(0.7)
		wide := BroadcastToDims(InsertAxes(mask, 1), batch, n, n)
		return []*Node{q, k, v, LinearAttend(q, k, v, mask), LinearAttendPairs(q, k, v, wide)}
	})
	out := e.MustCall(tensors.FromFlatDataAndDimensions(seen, batch, n))
	var x [5][]float64
	for i := range x {
		x[i] = tensors.MustCopyFlatData[float64](out[i])
	}
	at := func(v []float64, b, i, h, e int) float64 { return v[((b*n+i)*heads+h)*each+e] }
	f := func(v float64) float64 {
		if v > 0 {
			return 1 + v
		}
		return math.Exp(v)
	}
	for b := range batch {
		for i := range n {
			for h := range heads {
				for e := range each {
					sum, total := 0.0, 1e-6
					for j := range n {
						if !seen[b*n+j] {
							continue
						}
						w := 0.0
						for c := range each {
							w += f(at(x[0], b, i, h, c)) * f(at(x[1], b, j, h, c))
						}
						sum, total = sum+w*at(x[2], b, j, h, e), total+w
					}
					for form, got := range x[3:] {
						if v := at(got, b, i, h, e); !(math.Abs(v-sum/total) < 1e-12) {
							t.Fatalf("form %d: %v at %d,%d,%d,%d, want %v", form, v, b, i, h, e, sum/total)
						}
					}
				}
			}
		}
	}
}
