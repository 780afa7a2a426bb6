package gfn

import "fmt"

// fail stops the building of a graph; the program's Call then returns the error.
func fail(format string, args ...any) { panic(fmt.Errorf("gfn: "+format, args...)) }

// panicWithError, deferred by the functions that build graphs of a user's environment or policy, turns any panic into
// one with an error. GoMLX returns those; others pass through it, and then finalising the program waits forever.
func panicWithError() {
	if r := recover(); r != nil {
		if err, ok := r.(error); ok {
			panic(err)
		}
		panic(fmt.Errorf("%v", r))
	}
}
