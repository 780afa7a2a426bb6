package em

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
)

// Explore says how the policy that acts differs from the one that is trained.
type Explore struct {
	// Beta tempers: logits are multiplied by it. The zero value means 1.
	Beta Linear
	// Epsilon is the probability with which an action is replaced by a uniform one.
	Epsilon Linear
}

// Knobs are the numbers of an Explore at some time, on the host or in a graph.
type Knobs[T any] struct{ Beta, Epsilon T }

func (e Explore) beta() Linear {
	if e.Beta == (Linear{}) {
		return Constant(1)
	}
	return e.Beta
}

func (e Explore) explores() bool { return e.beta() != Constant(1) || e.Epsilon != Linear{} }

// At returns the knobs of an iteration.
func (e Explore) At(iteration uint64) Knobs[float32] {
	return Knobs[float32]{Beta: float32(e.beta().At(iteration)), Epsilon: float32(e.Epsilon.At(iteration))}
}

// Behaviour leaves out what is never turned on.
func (e Explore) Behaviour(k Knobs[*Node]) (how gfn.Behaviour) {
	if b := e.beta(); b.From != 1 || b.To != 1 {
		how.Beta = k.Beta
	}
	if e := e.Epsilon; e.From != 0 || e.To != 0 {
		how.Epsilon = k.Epsilon
	}
	return how
}
