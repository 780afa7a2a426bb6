package gfn

import . "github.com/gomlx/gomlx/core/graph"

// Product is implemented by environments whose objects are the combinations of independent choices, such as the bits of
// a set: where a posterior can be sought among products of distributions (mean field).
//
// Law: the combinations of the values of the open choices are the objects, each of them once. N are initial states.
type Product interface {
	Env
	// Choices returns the number of values of each choice; nil if not all combinations are objects, as when a set has an
	// upper bound.
	Choices() []int
	// Open marks the choices that there are in objects built from initial states: [N,T] bool.
	Open(initial State) *Node
	// Choose returns the objects that have given values: [N,T] int32, of which those of closed choices do not count.
	Choose(initial State, values *Node) State
}
