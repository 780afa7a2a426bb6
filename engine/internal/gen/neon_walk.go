package main

import (
	"fmt"
	"math/bits"
)

// Loops over elements for NEON. Pointers move with the elements; a counter says how many are left.

// oneLane is the tail of a block that loads and stores but does not ask for the mask of its lane.
const oneLane V = -2

func log2(n int) int { return bits.TrailingZeros(uint(n)) }

// FReg names the low part of a pinned register.
func (f *Fn) FReg(v V) string { return fmt.Sprintf("F%d", f.vals[v].phys) }

// neonFirst loads and stores one lane.
func (f *Fn) neonFirst() string { return map[int]string{4: "FMOVS", 8: "FMOVD"}[f.el.size] }

// neonLoop makes a loop that is made while step elements are left, by the count in a register, and moves pointers, each
// to elements of so many bytes.
func (f *Fn) neonLoop(step int, count string, pointers []string, sizes []int, body func()) {
	loop, end := f.Label("loop"), f.Label("end")
	f.Text("SUBS $%d, %s, %s\nBLT %s\n%s:", step, count, count, end, loop)
	body()
	for i, p := range pointers {
		f.Text("ADD $%d, %s", step*sizes[i], p)
	}
	f.Text("SUBS $%d, %s, %s\nBGE %s\n%s:\nADD $%d, %s", step, count, count, loop, end, step, count)
}

// neonLoops makes loops over unroll vectors, over one, and over single elements. The last has the tail's mask, of the
// first lane, which is all that is loaded and stored.
func (f *Fn) neonLoops(tail V, unroll int, count string, pointers []string, sizes []int, body func(i int, tail V)) {
	for u := unroll; u > 0; u /= unroll {
		f.neonLoop(u*f.lanes(), count, pointers, sizes, func() {
			for i := range u {
				body(i, none)
			}
		})
		if u == 1 {
			break
		}
	}
	f.neonLoop(1, count, pointers, sizes, func() { body(0, tail) })
}

// neonWalk is the rest of walk for NEON. Pointers are in R0, R1, ..., the count in R4.
func (f *Fn) neonWalk(sizes []int, scalars []string, unroll int, body func(s *Step)) {
	var regs []string
	for i := range sizes {
		regs = append(regs, fmt.Sprintf("R%d", i))
	}
	f.load(append(regs[:len(regs):len(regs)], "R4")...)
	var pins []V
	for _, name := range scalars {
		v := f.Pin()
		f.Text("%s %s, %s", f.neonFirst(), f.at(name), f.FReg(v))
		f.Text("%s", f.dupFirst(v))
		pins = append(pins, v)
	}
	f.Text("constants")
	f.neonLoops(oneLane, unroll, "R4", regs, sizes, func(i int, tail V) {
		f.Block(func(b *Block) {
			b.tail = tail
			body(&Step{b, sizes, i * f.lanes(), pins})
		})
	})
	f.Text("RET")
}

// dupFirst puts the first lane of a pin into all.
func (f *Fn) dupFirst(v V) string {
	r := f.vals[v].phys
	lanes := f.el.lanesOf(f.isa)
	return fmt.Sprintf("dup v%d.%s, v%d.%s[0]", r, lanes, r, lanes[len(lanes)-1:])
}

// firstLane makes a mask of the first lane.
func (f *Fn) firstLane() V {
	v := f.Pin()
	f.Text("MOVD $-1, R4")
	if f.el.size == 4 {
		f.Text("MOVWU R4, R4")
	}
	f.Text("FMOVD R4, %s", f.FReg(v))
	return v
}

// neonRowLoop is rowLoop: R1 is the row, R3 its length. Operands are at R6, results at R7.
func (f *Fn) neonRowLoop(tail V, unroll int, body func(b *Block, mem string, i int)) {
	f.Text("MOVD R1, R6\nMOVD R0, R7\nMOVD R3, R4")
	size := f.el.size
	f.neonLoops(tail, unroll, "R4", []string{"R6", "R7"}, []int{size, size}, func(i int, tail V) {
		f.Block(func(b *Block) {
			b.tail = tail
			body(b, fmt.Sprintf("%d(R6)", i*f.isa.width), i)
		})
	})
}

// neonColumns is the rest of columnKernel: eight vectors of columns at a time, then one, then single columns.
func (f *Fn) neonColumns(r reduction) {
	const wide = 8
	var accs []V
	for range wide {
		accs = append(accs, f.Pin())
	}
	f.Text("constants\nMOVD R3, R4\nLSL $%d, R3, R5", log2(f.el.size))
	size := f.el.size
	columns := func(u, step int, tail V) {
		f.neonLoop(step, "R4", []string{"R0", "R1"}, []int{size, size}, func() {
			each := func(do func(b *Block, i int)) {
				for i := range u {
					f.Block(func(b *Block) {
						b.tail = tail
						do(b, i)
					})
				}
			}
			loop := f.Label("rows")
			each(func(b *Block, i int) { b.Assign(accs[i], b.C(r.neutral)) })
			f.Text("MOVD R1, R6\nMOVD R2, R7\n%s:", loop)
			each(func(b *Block, i int) {
				b.Assign(accs[i], r.f(b, accs[i], b.Load(fmt.Sprintf("%d(R6)", i*f.isa.width))))
			})
			f.Text("ADD R5, R6\nSUBS $1, R7, R7\nBNE %s", loop)
			each(func(b *Block, i int) { b.Store(accs[i], fmt.Sprintf("%d(R0)", i*f.isa.width)) })
		})
	}
	columns(wide, wide*f.lanes(), none)
	columns(1, f.lanes(), none)
	columns(1, 1, oneLane)
	f.Text("RET")
}
