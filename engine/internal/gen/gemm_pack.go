package main

import (
	"fmt"
	"strings"
)

// packKernel turns n rows into columns: row j, at p.from[j], becomes column j at p.to. It does p.blocks blocks of n
// columns.
func (g *File) packKernel(el elem, n int) {
	f := g.fn(fmt.Sprintf("%stranspose%d", strings.ToLower(el.letter), n), avx2, el, "p *transposeParams")
	f.load("DI")
	from := []string{"AX", "BX", "CX", "DX", "SI", "R8", "R9", "R10"}[:n]
	for i, r := range from {
		f.Text("MOVQ (transposeParams_from+%d)(DI), %s", 8*i, r)
	}
	f.Text("MOVQ transposeParams_to(DI), R11\nMOVQ transposeParams_step(DI), R12\nMOVQ transposeParams_blocks(DI), R13")
	f.Text("XORQ DI, DI\nloop:")
	// join makes register to of 16 bytes of row i and as many of the row that stands other rows further down.
	join := func(mov string, off, i, other, to int) {
		f.Text("%s %d(%s)(DI*1), X%d", mov, off, from[i], to)
		f.Text("VINSERTF128 $1, %d(%s)(DI*1), Y%d, Y%d", off, from[i+other], to, to)
	}
	class := "Y"
	switch {
	case n*el.size == 16:
		class = "X"
		for i := range 4 {
			f.Text("VMOVUPS (%s)(DI*1), X%d", from[i], i)
		}
		f.Text("TURN4(X0, X1, X2, X3, X8, X9, X10, X11)")
	case el.size == 4:
		// Rows i and i+4 are joined first, so that shuffles stay within halves.
		for i := range 4 {
			join("VMOVUPS", 0, i, 4, i)
			join("VMOVUPS", 16, i, 4, i+4)
		}
		f.Text("TURN4(Y0, Y1, Y2, Y3, Y8, Y9, Y10, Y11)\nTURN4(Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11)")
	default:
		for i := range 2 {
			join("VMOVUPD", 0, i, 2, i)
			join("VMOVUPD", 16, i, 2, i+4)
		}
		f.Text("VUNPCKHPD Y5, Y4, Y3\nVUNPCKLPD Y5, Y4, Y2\nVUNPCKHPD Y1, Y0, Y8\nVUNPCKLPD Y1, Y0, Y0\nVMOVAPD Y8, Y1")
	}
	for i := range n {
		f.Text("VMOVUPS %s%d, (R11)\nADDQ R12, R11", class, i)
	}
	f.Text("ADDQ $%d, DI\nDECQ R13\nJNZ loop\nRETURN", n*el.size)
}

func (p *Package) packMacros() {
	const comment = "TURN4 turns the four rows a to d of four lanes, or those in each half, by way of w to z."
	p.Macro(comment, "TURN4(a, b, c, d, w, x, y, z)", `
		VUNPCKLPS b, a, w
		VUNPCKHPS b, a, x
		VUNPCKLPS d, c, y
		VUNPCKHPS d, c, z
		VUNPCKLPD y, w, a
		VUNPCKHPD y, w, b
		VUNPCKLPD z, x, c
		VUNPCKHPD z, x, d`)
}

// copyKernel copies p.blocks rows of two vectors.
func (g *File) copyKernel(is isa) {
	f := g.fn(fmt.Sprintf("copy%d", is.width*8), is, f32, "p *transposeParams")
	f.load("DI")
	f.Text("MOVQ transposeParams_from(DI), AX\nMOVQ transposeParams_to(DI), R11")
	f.Text("MOVQ transposeParams_step(DI), R12\nMOVQ transposeParams_blocks(DI), R13")
	f.Text(`loop:
		VMOVUPS (AX), %[1]s0
		VMOVUPS %[2]d(AX), %[1]s1
		VMOVUPS %[1]s0, (R11)
		VMOVUPS %[1]s1, %[2]d(R11)
		ADDQ R12, AX
		ADDQ $%[3]d, R11
		DECQ R13
		JNZ loop
		RETURN`, is.reg, is.width, 2*is.width)
}

// peakKernel is a loop of fused multiply-adds that touches no memory: 24 (12) of them each time.
func (g *File) peakKernel(is isa, el elem) {
	n := is.regs * 3 / 4
	f := g.fn(gemmName(is, el, "peak"), is, el, "times int")
	f.load("AX")
	for i := range n + 2 {
		f.Text("VXORPS X%d, X%d, X%d", i%16, i%16, i%16)
		if i >= 16 {
			f.Text("VPXORD Z%d, Z%d, Z%d", i, i, i)
		}
	}
	f.Text("PCALIGN $32\nloop:")
	for i := range n {
		f.Text("VFMADD231P%s %s%d, %s%d, %s%d", el.letter, is.reg, n, is.reg, n+1, is.reg, i)
	}
	f.Text("DECQ AX\nJNZ loop\nRETURN")
}
