package main

import "fmt"

// transposeKernels makes two transposes of square blocks in registers. The first does a strip of whole blocks: lanes
// rows of a by count*lanes columns. The second does one block of which only rows by cols elements are there. Strides are
// in bytes.
func (g *File) transposeKernels(is isa, size int) {
	lanes := is.width / size
	el := map[int]elem{4: u32, 8: u64}[size]
	fn := func(name string, sizes ...string) *Fn {
		params := append([]string{"dst *" + el.goT, "a *" + el.goT}, sizes...)
		return g.fn(fmt.Sprintf("%s%d%s", name, size*8, is.name), is, el, append(params, "dstStride int", "aStride int")...)
	}
	f := fn("transpose", "count int")
	f.load("DI", "SI", "CX", "R8", "R9")
	f.Text("loop:\nMOVQ SI, AX\nMOVQ DI, BX")
	for i := range lanes {
		f.Text("VMOVUPS (AX), %s%d\nADDQ R9, AX", is.reg, i)
	}
	for _, c := range f.transposeBlock() {
		f.Text("VMOVUPS %s%d, (BX)\nADDQ R8, BX", is.reg, c)
	}
	// The next block: lanes columns of a on, so lanes rows of dst down.
	f.Text("ADDQ $%d, SI\nMOVQ BX, DI\nDECQ CX\nJNZ loop\nRETURN", is.width)

	f = fn("transposeEdge", "rows int", "cols int")
	f.load("DI", "SI", "CX", "DX", "R8", "R11")
	load, store := "VMOVUP%[1]s.Z (SI), K1, Z%[2]d", "VMOVUP%[1]s Z%[2]d, K1, (DI)"
	setMask := func(count string) { f.tailMask(count) }
	if is.width == 32 {
		m := f.Pin()
		load, store = "VMASKMOVP%[1]s (SI), "+f.Reg(m)+", Y%[2]d", "VMASKMOVP%[1]s Y%[2]d, "+f.Reg(m)+", (DI)"
		setMask = func(count string) { f.tailMaskInto(m, count) }
	}
	setMask("DX")
	for i := range lanes {
		f.Text(load+"\nADDQ R11, SI\nDECQ CX\nJZ loaded", el.letter, i)
	}
	f.Text("loaded:")
	out := f.transposeBlock()
	f.Text("MOVQ %s, CX", f.at("rows"))
	setMask("CX")
	for _, c := range out {
		f.Text(store+"\nADDQ R8, DI\nDECQ DX\nJZ done", el.letter, c)
	}
	f.Text("DONE")
}

// transposeBlock transposes the rows in registers 0, 1, ...; it returns where the new rows are.
func (f *Fn) transposeBlock() []int {
	is, size, lanes := f.isa, f.el.size, f.lanes()
	cur := make([]int, lanes)
	for i := range cur {
		cur[i] = i
	}
	r := func(i int) string { return fmt.Sprintf("%s%d", is.reg, i) }
	free := lanes // a spare register
	pairs := func(a, b int, lo, hi string) {
		spare := r(free)
		f.Text("%s%s, %s, %s", lo, r(cur[b]), r(cur[a]), spare)
		f.Text("%s%s, %s, %s", hi, r(cur[b]), r(cur[a]), r(cur[b]))
		cur[a], free = free, cur[a]
	}
	if size == 4 {
		for i := 0; i < lanes; i += 2 {
			pairs(i, i+1, "VUNPCKLPS ", "VUNPCKHPS ")
		}
		for i := 0; i < lanes; i += 4 {
			pairs(i, i+2, "VUNPCKLPD ", "VUNPCKHPD ")
			pairs(i+1, i+3, "VUNPCKLPD ", "VUNPCKHPD ")
		}
		// Within each four, positions 0,2,1,3 now hold columns 0,1,2,3 of each 128-bit part.
		for i := 0; i < lanes; i += 4 {
			cur[i+1], cur[i+2] = cur[i+2], cur[i+1]
		}
	} else {
		for i := 0; i < lanes; i += 2 {
			pairs(i, i+1, "VUNPCKLPD ", "VUNPCKHPD ")
		}
	}
	four := 16 / size // columns in a 128-bit part
	for d := four; d < lanes; d *= 2 {
		for i := range lanes {
			if i&d != 0 {
				continue
			}
			if is.width == 32 {
				pairs(i, i+d, "VPERM2F128 $0x20, ", "VPERM2F128 $0x31, ")
			} else { // even parts, then odd parts; twice gives each part from all rows
				pairs(i, i+d, "VSHUFF64X2 $0x88, ", "VSHUFF64X2 $0xdd, ")
			}
		}
	}
	return cur
}
