package engine

import "github.com/gomlx/compute"

// Steps is the number of steps of a compiled program.
func Steps(e compute.Executable) int { return len(e.(*Executable).prog.steps) }
