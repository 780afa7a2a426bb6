package main

import "fmt"

var pointers = []string{"DI", "SI", "DX", "R8"}

// arg is a parameter of a kernel: a pointer to elements of a type, or a scalar.
type arg struct {
	name string
	el   elem
}

// shape says how a kernel walks: pointers, then n, then scalars.
type shape struct {
	ptrs    []arg
	scalars []arg
	unroll  int
	whole   bool // n is a multiple of the lanes: no tail
}

// Step is one vector of a walk.
type Step struct {
	*Block
	sh     shape
	offset int // in elements, from BX
	S      []V // scalars, in every lane
}

// Mem is the memory operand of pointer i.
func (s *Step) Mem(i int) string {
	size := s.sh.ptrs[i].el.size
	if s.offset == 0 {
		return fmt.Sprintf("(%s)(BX*%d)", pointers[i], size)
	}
	return fmt.Sprintf("%d(%s)(BX*%d)", s.offset*size, pointers[i], size)
}

// In loads from pointer i.
func (s *Step) In(i int) V { return s.Load(s.Mem(i)) }

// walk makes a kernel that calls body for each vector; lanes is how many elements a vector has.
func (g *File) walk(name string, is isa, el elem, lanes int, sh shape, body func(s *Step)) {
	var params []string
	for _, p := range sh.ptrs {
		params = append(params, p.name+" *"+p.el.goT)
	}
	params = append(params, "n int")
	for _, p := range sh.scalars {
		params = append(params, p.name+" "+p.el.goT)
	}
	f := g.fn(name, is, el, params...)
	for i, p := range sh.ptrs {
		f.Text("MOVQ %s, %s", f.at(p.name), pointers[i])
	}
	f.Text("MOVQ %s, CX", f.at("n"))
	var scalars []V
	for _, p := range sh.scalars {
		v := f.Pin()
		f.Text("%s %s, %s", f.broadcast(), f.at(p.name), f.Reg(v))
		scalars = append(scalars, v)
	}
	f.Text("constants")
	f.Text("XORQ BX, BX")
	f.loops(lanes, sh.unroll, func(i int) {
		f.Block(func(b *Block) {
			b.tail = none
			body(&Step{b, sh, i * lanes, scalars})
		})
	})
	if sh.whole {
		f.Text("RETURN")
		return
	}
	f.Text("REST")
	tail := f.tailMask(lanes, "CX")
	f.Block(func(b *Block) {
		b.tail = tail
		body(&Step{b, sh, 0, scalars})
	})
	f.Text("DONE")
}

// loops makes a loop over unroll vectors at a time and one over what is left, vector by vector. BX counts elements.
func (f *Fn) loops(lanes, unroll int, body func(i int)) {
	f.loop(lanes*unroll, func() {
		for i := range unroll {
			body(i)
		}
	})
	if unroll > 1 {
		f.loop(lanes, func() { body(0) })
	}
}

// loop makes a loop over elements, step at a time.
func (f *Fn) loop(step int, body func()) {
	loop, end := f.Label("loop"), f.Label("end")
	f.Text("WHILE(%d, %s, %s)", step, loop, end)
	body()
	f.Text("NEXT(%d, %s, %s)", step, loop, end)
}

// tailMask makes the mask of the first lanes, as many as the register says; it clobbers R9 and R10.
func (f *Fn) tailMask(lanes int, count string) V {
	if f.isa.width == 64 {
		if lanes > 16 {
			f.Text("FIRST_BYTES(%s)", count)
		} else {
			f.Text("FIRST_LANES(%s)", count)
		}
		return f.K(1)
	}
	v := f.Pin()
	f.tailMaskInto(v, count)
	return v
}

func (f *Fn) tailMaskInto(v V, count string) {
	f.Text("LANE_MASK(%d, %d, %s, %s)", f.lanes(), f.el.size, count, f.Reg(v))
}

// walkMacros are the parts of loops over elements. CX is how many there are, BX how many are done.
func (p *Package) walkMacros() {
	p.Macro("WHILE starts a loop that is made while step elements are left.", "WHILE(step, loop, end)", `
		LEAQ -step(CX), R9
		CMPQ BX, R9
		JGT end
		loop:`)
	p.Macro("NEXT ends it.", "NEXT(step, loop, end)", `
		ADDQ $step, BX
		CMPQ BX, R9
		JLE loop
		end:`)
	p.Macro("REST makes CX the elements that are left, if there are any.", "REST", `
		SUBQ BX, CX
		JZ done`)
	p.Macro("FIRST_LANES makes K1 the mask of the first count of up to 16 lanes.", "FIRST_LANES(count)", `
		MOVQ $-1, R9
		BZHIQ count, R9, R9
		KMOVW R9, K1`)
	p.Macro("FIRST_BYTES makes K1 the mask of the first count of 64 lanes.", "FIRST_BYTES(count)", `
		MOVQ $-1, R9
		BZHIQ count, R9, R9
		KMOVQ R9, K1`)
	p.Macro("LANE_MASK makes a vector the mask of its first count lanes of so many bytes.", "LANE_MASK(lanes, size, count, mask)", `
		MOVQ $lanes, R9
		SUBQ count, R9
		LEAQ tailmask<>(SB), R10
		VMOVDQU (R10)(R9*size), mask`)
}

// endMacros are the ends of functions.
func (p *Package) endMacros() {
	p.Macro("RETURN ends a function.", "RETURN", `
		VZEROUPPER
		RET`)
	p.Macro("DONE is where a function ends.", "DONE", `
		done:
		RETURN`)
}
