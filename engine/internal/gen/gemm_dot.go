package main

import "fmt"

// dotKernel makes products of rows of A, contiguous, with the vector B: C, contiguous, gets one number for each. The
// sums of one row are spread over as many registers as are needed to keep the units busy.
func (g *File) dotKernel(is isa, el elem, rows int) {
	f := g.fn(fmt.Sprintf("%s_%d", gemmName(is, el, "dot"), rows), is, el, "p *params")
	f.locals = 8
	p := f.Text
	ps, wide, size, lanes := "P"+el.letter, is.width == 64, is.width, f.lanes()
	unroll := 1
	if rows == 1 {
		unroll = 4
	}
	r := func(i int) string { return fmt.Sprintf("%s%d", is.reg, i) }
	f.load("DI")
	p("OPERANDS\nMOVQ params_tiles(DI), AX\nMOVQ AX, tiles-8(SP)")
	if wide {
		p("MOVQ params_mask(DI), AX\nKMOVW AX, K1")
	} else {
		p("LAST_MASK")
	}
	p("tile:")
	for i := range max(rows, unroll) {
		p("VXORPS X%d, X%d, X%d", i, i, i)
	}
	f.firstOfA(rows)
	p("MOVQ DX, R9\nMOVQ params_k(DI), AX")
	if unroll > 1 {
		p("SUBQ $%d, AX\nJLT few\nmany:", unroll*lanes)
		for u := range unroll {
			p("VMOVU%s %d(R9), %s", ps, u*size, r(8+u))
			p("VFMADD231%s %d(R8), %s, %s", ps, u*size, r(8+u), r(u))
		}
		p("ADDQ $%d, R8\nADDQ $%d, R9\nSUBQ $%d, AX\nJGE many", unroll*size, unroll*size, unroll*lanes)
		p("few:\nADDQ $%d, AX", unroll*lanes)
	}
	p("SUBQ $%d, AX\nJLT rest\nloop:\nVMOVU%s (R9), %s", lanes, ps, r(8))
	for i := range rows {
		p("VFMADD231%s %s, %s, %s", ps, rowOfA(i), r(8), r(i))
	}
	p("ADDQ $%d, R8", size)
	if rows > 6 {
		p("ADDQ $%d, R12", size)
	}
	p("ADDQ $%d, R9\nSUBQ $%d, AX\nJGE loop\nrest:\nADDQ $%d, AX\nJZ total", size, lanes, lanes)
	if wide {
		p("VMOVU%s.Z (R9), K1, %s", ps, r(8))
	} else {
		p("VMASKMOV%s (R9), Y15, %s", ps, r(8))
	}
	for i := range rows {
		if wide {
			p("VFMADD231%s %s, %s, K1, %s", ps, rowOfA(i), r(8), r(i))
		} else {
			p("VMASKMOV%s %s, Y15, %s", ps, rowOfA(i), r(9))
			p("VFMADD231%s %s, %s, %s", ps, r(9), r(8), r(i))
		}
	}
	p("total:")
	if unroll > 1 {
		for _, i := range [][2]int{{0, 1}, {2, 3}, {0, 2}} {
			p("VADD%[1]s %[3]s, %[2]s, %[2]s", ps, r(i[0]), r(i[1]))
		}
	}
	if wide {
		for i := range rows {
			p("VEXTRACTF64X4 $1, Z%[2]d, Y9\nVADD%[1]s Y9, Y%[2]d, Y%[2]d", ps, i)
		}
	}
	f.sumLanes(rows)
	p("DECQ tiles-8(SP)\nJZ done\nADDQ params_aTile(DI), SI\nADDQ $%d, CX\nJMP tile\nDONE", rows*el.size)
}

// sumLanes writes the sums of the lanes of Y0, Y1, ... to C.
func (f *Fn) sumLanes(rows int) {
	ps := "P" + f.el.letter
	pairs := func(a, b int) { f.Text("VHADD%[1]s Y%[3]d, Y%[2]d, Y%[2]d", ps, a, b) }
	fold := func(a int) { f.Text("VEXTRACTF128 $1, Y%[2]d, X9\nVADD%[1]s X9, X%[2]d, X%[2]d", ps, a) }
	if rows == 1 {
		fold(0)
		for n := 16 / f.el.size; n > 1; n /= 2 {
			f.Text("VHADD%s X0, X0, X0", ps)
		}
		f.Text("VMOVS%s X0, (CX)", f.el.letter)
		return
	}
	per := 16 / f.el.size // sums in an X register
	for i := 0; i < rows; i += per {
		for n := 1; n < per; n *= 2 {
			for j := i; j < i+per; j += 2 * n {
				pairs(j, j+n)
			}
		}
		fold(i)
		f.Text("VMOVU%s X%d, %d(CX)", ps, i, i*f.el.size)
	}
}
