package nn

import (
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/internal/program"
)

// TestLoops: both kinds of loops double a number and add the round, so many times.
func TestLoops(t *testing.T) {
	b, err := engine.New("")
	if err != nil {
		t.Fatal(err)
	}
	for rounds, want := range []int32{3, 6, 13, 28, 59} {
		type sum struct{ X *Node }
		type counted struct{ X, Round, Rounds *Node }
		type both struct{ Repeated, Looped int }
		type bothNodes struct{ Repeated, Looped *Node }
		step := func(x, round *Node) *Node { return Add(Add(x, x), round) }
		out, err := program.Once[struct{ X int32 }, both](b, nil, "loops", func(in sum) bothNodes {
			g := in.X.Graph()
			repeated := Repeat(rounds, in, func(round *Node, s sum) sum { return sum{step(s.X, round)} })
			looped := Loop(counted{in.X, Const(g, int32(0)), Const(g, int32(rounds))},
				func(s counted) *Node { return LessThan(s.Round, s.Rounds) },
				func(s counted) counted {
					return counted{step(s.X, s.Round), Add(s.Round, Const(g, int32(1))), s.Rounds}
				})
			return bothNodes{repeated.X, looped.X}
		}, struct{ X int32 }{3})
		if err != nil {
			t.Fatal(err)
		}
		if out.Repeated != int(want) || out.Looped != int(want) {
			t.Errorf("%d rounds: %+v, want %d", rounds, out, want)
		}
	}
}

// TestLoopsHaveNoGradient: what a loop returns is a constant to a gradient.
func TestLoopsHaveNoGradient(t *testing.T) {
	b, err := engine.New("")
	if err != nil {
		t.Fatal(err)
	}
	gradient, err := CallOnce(b, func(x *Node) *Node {
		type state struct{ X *Node }
		tripled := Repeat(1, state{x}, func(_ *Node, s state) state { return state{Add(s.X, Add(s.X, s.X))} })
		return Gradient(Mul(x, tripled.X), x)[0]
	}, 2.0)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensors.ToScalar[float64](gradient); got != 6 {
		t.Errorf("the gradient of x*stop(3x) at 2 is %g, want 6", got)
	}
}
