package rng

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Stream draws random numbers inside a graph. It threads the generator's state from draw to draw, so two draws of
// one Stream are independent and a graph with the same key draws the same numbers.
type Stream struct{ state *Node }

// In starts a stream at a key that was fed to the graph (see Key).
func In(key *Node) *Stream { return &Stream{key} }

// State is the generator's state after what was drawn so far: In continues from it, in the body of a loop for example.
func (s *Stream) State() *Node { return s.state }

// Split returns a second stream, independent of what this one draws later.
func (s *Stream) Split() *Stream {
	a, b := RNGStateSplit(s.state)
	s.state = a
	return &Stream{b}
}

// Uniform draws from [0, 1).
func (s *Stream) Uniform(dtype dtypes.DType, dims ...int) *Node {
	var u *Node
	s.state, u = RandomUniform(s.state, shapes.Make(dtype, dims...))
	return u
}

// Normal draws from the standard normal distribution.
func (s *Stream) Normal(dtype dtypes.DType, dims ...int) *Node {
	var n *Node
	s.state, n = RandomNormal(s.state, shapes.Make(dtype, dims...))
	return n
}

// Bernoulli draws booleans that are true with probability p, elementwise.
func (s *Stream) Bernoulli(p *Node) *Node {
	return LessThan(s.Uniform(p.DType(), p.Shape().Dimensions...), StopGradient(p))
}

// Categorical draws one index per row from unnormalised probabilities [..., A]; the result is int32.
func (s *Stream) Categorical(p *Node) *Node {
	return Choose(s.Uniform(p.DType(), p.Shape().Dimensions...), p)
}

// Choose is Categorical with uniform numbers that were drawn before, in the shape of p.
//
// It is a race of exponential clocks: the arrival times E/p, E ~ Exponential(1), are smallest for index a with
// probability p_a / sum p. Compared with adding Gumbel noise to log p it needs one logarithm less per entry, and an
// entry of probability 0 is never drawn.
func Choose(u, p *Node) *Node {
	p = StopGradient(p)
	// RandomUniform can return 0, an arrival at time 0 that would win with any p.
	clock := Neg(Log1P(Neg(MaxScalar(u, 1.0/(1<<34)))))
	return ArgMax(Div(p, clock), -1, dtypes.Int32)
}
