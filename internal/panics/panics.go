// Package panics keeps panics of graph code within GoMLX's rules.
package panics

import "fmt"

// WithError, deferred by functions that build graphs, of a user perhaps, turns any panic into one with an error. GoMLX
// returns such a panic as an error of the call; after any other it would wait for the graph for ever.
func WithError() {
	if r := recover(); r != nil {
		if err, ok := r.(error); ok {
			panic(err)
		}
		panic(fmt.Errorf("%v", r))
	}
}
