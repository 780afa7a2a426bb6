package nn

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/engine"
)

// TestLoops: both kinds of loops double a number and add the round, so many times.
func TestLoops(t *testing.T) {
	b, err := engine.New("")
	if err != nil {
		t.Fatal(err)
	}
	for rounds, want := range []int32{3, 6, 13, 28, 59} {
		step := func(x, round *Node) *Node { return Add(Add(x, x), round) }
		out, err := CallOnceN(b, func(x *Node) []*Node {
			g := x.Graph()
			n := Const(g, int32(rounds))
			repeated := Repeat(rounds, []*Node{x}, func(round *Node, s []*Node) []*Node { return []*Node{step(s[0], round)} })
			zero := Const(g, int32(0))
			looped := Loop([]*Node{LessThan(zero, n), x, zero, n}, func(s []*Node) []*Node {
				next := Add(s[2], Const(g, int32(1)))
				return []*Node{LessThan(next, s[3]), step(s[1], s[2]), next, s[3]}
			})
			return []*Node{repeated[0], looped[1]}
		}, int32(3))
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"Repeat", "Loop"} {
			if got := tensors.ToScalar[int32](out[i]); got != want {
				t.Errorf("%s, %d rounds: %d, want %d", name, rounds, got, want)
			}
		}
	}
}

// TestLoopsHaveNoGradient: what a loop returns is a constant to a gradient.
func TestLoopsHaveNoGradient(t *testing.T) {
	b, err := engine.New("")
	if err != nil {
		t.Fatal(err)
	}
	out, err := CallOnceN(b, func(x *Node) []*Node {
		tripled := Repeat(1, []*Node{x}, func(_ *Node, s []*Node) []*Node { return []*Node{Add(s[0], Add(s[0], s[0]))} })
		return Gradient(Mul(x, tripled[0]), x)
	}, 2.0)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensors.ToScalar[float64](out[0]); got != 6 {
		t.Errorf("the gradient of x*stop(3x) at 2 is %g, want 6", got)
	}
}
