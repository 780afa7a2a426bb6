package gfn

import "fmt"

// fail stops the building of a graph; the program's Call then returns the error.
func fail(format string, args ...any) { panic(fmt.Errorf("gfn: "+format, args...)) }
