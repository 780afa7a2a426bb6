package engine

import "github.com/gomlx/compute"

// Steps is the number of steps of a compiled program.
func Steps(e compute.Executable) int { return len(e.(*Executable).prog.steps) }

// Ops lists the operations of a function.
func Ops(f compute.Function) (ops []compute.OpType) {
	for _, n := range f.(*Function).nodes {
		ops = append(ops, n.op)
	}
	return ops
}
