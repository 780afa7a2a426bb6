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

// Maxima is the number of products of maxima in a compiled program.
func Maxima(e compute.Executable) (n int) {
	for _, s := range e.(*Executable).prog.steps {
		if o, ok := s.(opaqueStep); ok {
			if _, ok := o.l.opaque.(maxStep); ok {
				n++
			}
		}
	}
	return n
}

// BreakMaxima makes products of maxima wrong: an axis that both operands have, and that is not reduced, counts as rows.
func BreakMaxima() (mend func()) {
	right := part
	part = func(p *maxProduct, inX, inY bool) *[]int { return right(p, inX, inY && !inX) }
	return func() { part = right }
}
