package engine

import (
	"bytes"

	"github.com/gomlx/compute"
)

// Arena is the memory, in bytes, that a compiled program borrows.
func Arena(e compute.Executable) int {
	p := e.(*Executable).prog
	return p.arena + p.nested
}

// Spoil overwrites the memory that is lent to programs while they run. It returns how many bytes that is.
func Spoil(b compute.Backend) (held int) {
	p := &b.(*Backend).scratch
	p.mu.Lock()
	defer p.mu.Unlock()
	for class, blocks := range p.free {
		for _, m := range blocks {
			copy(bytesAt(m, 1<<class), bytes.Repeat([]byte{0xff}, 1<<class))
		}
	}
	return p.held
}

// Steps is the number of steps of a compiled program.
func Steps(e compute.Executable) int { return len(e.(*Executable).prog.steps) }

// Ops lists the operations of a function.
func Ops(f compute.Function) (ops []compute.OpType) {
	for _, n := range f.(*Function).nodes {
		ops = append(ops, n.op)
	}
	return ops
}
