package main

import (
	"fmt"
	"slices"
	"strings"
)

// Kernels makes functions of one instruction set and type of lanes, and fills a table with them.
type Kernels struct {
	*File
	is     isa
	el     elem
	suffix string // of the functions' names
}

// of starts the kernels of a type.
func (g *File) of(is isa, el elem) Kernels { return Kernels{g, is, el, el.name + is.name} }

func (k Kernels) wide() bool { return k.is.width == 64 }

// fn starts a function that is named after what it does.
func (k Kernels) fn(op string, params ...string) *Fn {
	return k.File.fn(op+k.suffix, k.is, k.el, params...)
}

// fill adds a line to the function that fills the table of the type.
func (k Kernels) fill(format string, args ...any) {
	k.File.fill(k.suffix+"(t *Table["+k.el.goT+"])", format, args...)
}

// install fills a place of the table with a function, by a wrapper that is told the type.
func (k Kernels) install(place, wrapper, function string) {
	k.fill("t.%s = %s[%s](%s)", place, wrapper, k.el.goT, function)
}

var pointers = []string{"DI", "SI", "DX", "R8"}

// Step is one vector of a walk.
type Step struct {
	*Block
	sizes  []int // of the elements that pointers point to
	offset int   // in elements, from BX
	S      []V   // scalars, in every lane
}

// Mem is the memory operand of pointer i.
func (s *Step) Mem(i int) string {
	if s.isa.neon() {
		return fmt.Sprintf("%d(R%d)", s.offset*s.sizes[i], i)
	}
	if s.offset == 0 {
		return fmt.Sprintf("(%s)(BX*%d)", pointers[i], s.sizes[i])
	}
	return fmt.Sprintf("%d(%s)(BX*%d)", s.offset*s.sizes[i], pointers[i], s.sizes[i])
}

// In loads from pointer i.
func (s *Step) In(i int) V { return s.Load(s.Mem(i)) }

// walk makes a kernel that calls body for each vector, and returns its name. Its parameters are pointers, then n, then
// scalars: names with spaces between, with a type after a colon where it is not that of the lanes. AVX2's kernels that
// mix bytes with wider lanes take whole vectors, n a multiple of the lanes.
func (k Kernels) walk(op, ptrs, scalars string, unroll int, body func(s *Step)) string {
	var params []string
	var sizes []int
	for p := range strings.FieldsSeq(ptrs) {
		name, typ, ok := strings.Cut(p, ":")
		if !ok {
			typ = k.el.goT
		}
		params = append(params, name+" *"+typ)
		sizes = append(sizes, typeSize(typ))
	}
	params = append(params, "n int")
	for name := range strings.FieldsSeq(scalars) {
		params = append(params, name+" "+k.el.goT)
	}
	f := k.fn(op, params...)
	if k.is.neon() {
		f.neonWalk(sizes, strings.Fields(scalars), unroll, body)
		return f.name
	}
	f.load(append(slices.Clone(pointers[:len(sizes)]), "CX")...)
	var pins []V
	for name := range strings.FieldsSeq(scalars) {
		v := f.Pin()
		f.Text("%s %s, %s", f.broadcast(), f.at(name), f.Reg(v))
		pins = append(pins, v)
	}
	f.Text("constants\nXORQ BX, BX")
	lanes := f.lanes()
	f.loops(unroll, func(i int) {
		f.Block(func(b *Block) { body(&Step{b, sizes, i * lanes, pins}) })
	})
	if !k.wide() && slices.Min(sizes) < k.el.size {
		f.Text("RETURN")
		return f.name
	}
	f.Text("REST")
	tail := f.tailMask("CX")
	f.Block(func(b *Block) {
		b.tail = tail
		body(&Step{b, sizes, 0, pins})
	})
	f.Text("DONE")
	return f.name
}

// loops makes a loop over unroll vectors at a time and one over what is left, vector by vector. BX counts elements.
func (f *Fn) loops(unroll int, body func(i int)) {
	f.loop(f.lanes()*unroll, func() {
		for i := range unroll {
			body(i)
		}
	})
	if unroll > 1 {
		f.loop(f.lanes(), func() { body(0) })
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
func (f *Fn) tailMask(count string) V {
	if f.isa.width == 64 {
		if f.lanes() > 16 {
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
	const comment = "LANE_MASK makes a vector the mask of its first count lanes of so many bytes."
	p.Macro(comment, "LANE_MASK(lanes, size, count, mask)", `
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
