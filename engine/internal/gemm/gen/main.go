//go:build ignore

// Command main writes the assembly of package gemm: zz_kernels_amd64.s and zz_kernels_amd64.go. Run it with
// go generate in the folder above.
//
// A kernel computes p.tiles tiles of C, one after the other, each with all its sums in registers. It reads elements of A
// one by one with any strides (they are broadcast), rows of B as vectors, and ends with what the flags ask for.
// Registers:
//
//	DI params   SI, DX, CX first element of A, B, C of this tile   AX counter
//	BX, R10, R11 one, three and five rows of A   R13 one row of B
//	R8, R12 element of A in rows 0 and 6   R9 row of B
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
)

// Offsets of the fields of params, in kernels.go.
const (
	pK = 8 * iota
	pA
	pARow
	pACol
	pB
	pBRow
	pC
	pCRow
	pBias
	pRowBias
	pFlags
	pMask
	pLast
	pCols
	pSlope
	pTiles
	pATile
	pBTile
	pCTile
	pBiasTile
	pRowBiasTile
)

var asm, decl bytes.Buffer

func p(f string, args ...any)     { fmt.Fprintf(&asm, "\t"+f+"\n", args...) }
func label(f string, args ...any) { fmt.Fprintf(&asm, f+":\n", args...) }

func begin(name string, frame int) {
	fmt.Fprintf(&asm, "\n// func %s(p *params)\nTEXT ·%s(SB), NOSPLIT, $%d-8\n", name, name, frame)
	fmt.Fprintf(&decl, "//go:noescape\nfunc %s(p *params)\n\n", name)
	p("MOVQ p+0(FP), DI")
}

func end() {
	p("VZEROUPPER")
	p("RET")
}

// kind is an element type: its letter in instructions and its size.
type kind struct {
	letter string // S or D
	name   string // s or d
	size   int
}

var kinds = []kind{{"S", "s", 4}, {"D", "d", 8}}

// row is the address of row i of A, from R8 (rows 0-5) or R12 (rows 6-11).
func row(i int) string {
	base := "(R8)"
	if i >= 6 {
		base, i = "(R12)", i-6
	}
	return base + [...]string{"", "(BX*1)", "(BX*2)", "(R10*1)", "(BX*4)", "(R11*1)"}[i]
}

// rowsOfA sets the registers that row uses, for rows rows from SI.
func rowsOfA(rows int) {
	p("MOVQ SI, R8")
	if rows > 6 {
		p("LEAQ (SI)(R10*2), R12")
	}
}

func steps() {
	p("MOVQ %d(DI), SI", pA)
	p("MOVQ %d(DI), DX", pB)
	p("MOVQ %d(DI), CX", pC)
	p("MOVQ %d(DI), BX", pARow)
	p("LEAQ (BX)(BX*2), R10")
	p("LEAQ (BX)(BX*4), R11")
}

// kernel writes one kernel of rows x vecs, where vecs lists the vectors of a row of the tile: Y or Z registers.
// With wide, masks are in K registers and there are 32 vector registers; otherwise only the last vector is masked.
func kernel(t kind, rows int, vecs []string, wide bool) string {
	cols, lanes, offset := 0, make([]int, len(vecs)), make([]int, len(vecs))
	for v, class := range vecs {
		lanes[v] = map[string]int{"Y": 32, "Z": 64}[class] / t.size
		offset[v] = cols * t.size
		cols += lanes[v]
	}
	bits, n := "256", len(vecs)
	if wide {
		bits = "512"
	}
	name := fmt.Sprintf("%sgemm%s_%dx%d", t.name, bits, rows, cols)
	ps := "P" + t.letter // packed
	bcast := "VBROADCASTS" + t.letter
	// Registers: sums first; at the other end, a row of B, then one for a broadcast, then the mask.
	sum := func(i, v int) string { return fmt.Sprintf("%s%d", vecs[v], i*n+v) }
	top := 15
	if wide {
		top = 31
	}
	mask := fmt.Sprintf("Y%d", top) // narrow only
	temp := func(class string, i int) string { return fmt.Sprintf("%s%d", class, top-1-i) }
	b := func(v int) string { return temp(vecs[v], 1+v) }
	k := func(v int) string { return fmt.Sprintf("K%d", v+1) }
	masked := func(v int) bool { return wide || v == n-1 }
	load := func(address string, v int, to string) {
		switch {
		case wide:
			p("VMOVU%s.Z %s, %s, %s", ps, address, k(v), to)
		case masked(v):
			p("VMASKMOV%s %s, %s, %s", ps, address, mask, to)
		default:
			p("VMOVU%s %s, %s", ps, address, to)
		}
	}

	begin(name, 24)
	if wide {
		p("MOVQ %d(DI), AX", pMask)
		for v := range vecs {
			p("KMOVW AX, %s", k(v))
			if v < n-1 {
				p("SHRQ $%d, AX", lanes[v])
			}
		}
	} else {
		p("MOVQ $32, AX")
		p("MOVQ %d(DI), R8", pLast)
		p("SHLQ $%d, R8", map[int]int{4: 2, 8: 3}[t.size])
		p("SUBQ R8, AX")
		p("LEAQ lanes<>(SB), R8")
		p("VMOVUPS (R8)(AX*1), %s", mask)
	}
	steps()
	p("MOVQ %d(DI), R13", pBRow)
	p("MOVQ %d(DI), AX", pTiles)
	p("MOVQ AX, tiles-8(SP)")
	p("MOVQ %d(DI), AX", pBias)
	p("MOVQ AX, bias-16(SP)")
	p("MOVQ %d(DI), AX", pRowBias)
	p("MOVQ AX, rowBias-24(SP)")

	label("tile")
	for i := range rows {
		for v := range vecs {
			if wide {
				// Clearing the low part clears the register.
				p("VPXORD X%d, X%d, X%d", i*n+v, i*n+v, i*n+v)
			} else {
				p("VXORPS %s, %s, %s", sum(i, v), sum(i, v), sum(i, v))
			}
		}
	}
	rowsOfA(rows)
	p("MOVQ DX, R9")
	p("MOVQ %d(DI), AX", pK)
	p("PCALIGN $32")
	label("loop")
	for v := range vecs {
		load(fmt.Sprintf("%d(R9)", offset[v]), v, b(v))
	}
	for i := range rows {
		if n == 1 && wide {
			p("VFMADD231%s.BCST %s, %s, %s", ps, row(i), b(0), sum(i, 0))
			continue
		}
		done := map[string]bool{}
		for v, class := range vecs {
			if !done["Z"] && !done[class] {
				p("%s %s, %s", bcast, row(i), temp(class, 0))
				done[class] = true
			}
			p("VFMADD231%s %s, %s, %s", ps, temp(class, 0), b(v), sum(i, v))
		}
	}
	p("ADDQ %d(DI), R8", pACol)
	if rows > 6 {
		p("ADDQ %d(DI), R12", pACol)
	}
	p("ADDQ R13, R9")
	p("DECQ AX")
	p("JNZ loop")

	epilogue(t, rows, vecs, wide, ps, offset, sum, b, k, temp, load)

	// Next tile.
	p("DECQ tiles-8(SP)")
	p("JZ done")
	p("ADDQ %d(DI), SI", pATile)
	p("ADDQ %d(DI), DX", pBTile)
	p("ADDQ %d(DI), CX", pCTile)
	p("MOVQ %d(DI), AX", pBiasTile)
	p("ADDQ AX, bias-16(SP)")
	p("MOVQ %d(DI), AX", pRowBiasTile)
	p("ADDQ AX, rowBias-24(SP)")
	p("JMP tile")
	label("done")
	end()
	return name
}

func epilogue(t kind, rows int, vecs []string, wide bool, ps string, offset []int, sum func(i, v int) string,
	b, k func(v int) string, temp func(class string, i int) string, load func(address string, v int, to string)) {
	n := len(vecs)
	each := func(do func(i, v int)) {
		for i := range rows {
			for v := range vecs {
				do(i, v)
			}
		}
	}
	class := vecs[0] // the widest: Z when there is one
	p("MOVQ %d(DI), AX", pFlags)
	p("TESTQ AX, AX")
	p("JZ store")

	p("TESTQ $1, AX") // flagAdd
	p("JZ bias")
	p("MOVQ CX, R8")
	for i := range rows {
		for v := range vecs {
			address := fmt.Sprintf("%d(R8)", offset[v])
			if wide {
				p("VADD%s %s, %s, %s, %s", ps, address, sum(i, v), k(v), sum(i, v))
			} else {
				load(address, v, temp("Y", 0))
				p("VADD%s %s, %s, %s", ps, temp("Y", 0), sum(i, v), sum(i, v))
			}
		}
		if i < rows-1 {
			p("ADDQ %d(DI), R8", pCRow)
		}
	}
	label("bias")
	p("TESTQ $2, AX") // flagBias
	p("JZ rowBias")
	p("MOVQ bias-16(SP), R8")
	for v := range vecs {
		load(fmt.Sprintf("%d(R8)", offset[v]), v, b(v))
	}
	each(func(i, v int) { p("VADD%s %s, %s, %s", ps, b(v), sum(i, v), sum(i, v)) })
	label("rowBias")
	p("TESTQ $4, AX") // flagRowBias
	p("JZ relu")
	p("MOVQ rowBias-24(SP), R8")
	for i := range rows {
		p("VBROADCASTS%s %d(R8), %s", t.letter, i*t.size, temp(class, 0))
		for v := range vecs {
			p("VADD%s %s, %s, %s", ps, temp(vecs[v], 0), sum(i, v), sum(i, v))
		}
	}
	label("relu")
	p("TESTQ $8, AX") // flagReLU
	p("JZ leaky")
	p("VXORPS X%[1]s, X%[1]s, X%[1]s", temp("", 0))
	each(func(i, v int) { p("VMAX%s %s, %s, %s", ps, sum(i, v), temp(vecs[v], 0), sum(i, v)) })
	label("leaky")
	p("TESTQ $16, AX") // flagLeaky
	p("JZ store")
	p("VXORPS X%[1]s, X%[1]s, X%[1]s", temp("", 0))
	p("VBROADCASTS%s %d(DI), %s", t.letter, pSlope, temp(class, 1))
	each(func(i, v int) {
		zero, slope := temp(vecs[v], 0), temp(vecs[v], 1)
		if wide {
			p("VCMP%s $0x11, %s, %s, K6", ps, zero, sum(i, v))
			p("VMUL%s %s, %s, K6, %s", ps, slope, sum(i, v), sum(i, v))
			return
		}
		low := temp("Y", 2)
		p("VMIN%s %s, %s, %s", ps, sum(i, v), zero, low)
		p("VMAX%s %s, %s, %s", ps, sum(i, v), zero, sum(i, v))
		p("VFMADD231%s %s, %s, %s", ps, low, slope, sum(i, v))
	})

	label("store")
	p("MOVQ CX, R8")
	store := func(full bool) {
		for i := range rows {
			for v := range vecs {
				address := fmt.Sprintf("%d(R8)", offset[v])
				switch {
				case full || !wide && v < n-1:
					p("VMOVU%s %s, %s", ps, sum(i, v), address)
				case wide:
					p("VMOVU%s %s, %s, %s", ps, sum(i, v), k(v), address)
				default:
					p("VMASKMOV%s %s, Y15, %s", ps, sum(i, v), address)
				}
			}
			if i < rows-1 {
				p("ADDQ %d(DI), R8", pCRow)
			}
		}
	}
	p("CMPQ %d(DI), $%d", pLast, map[string]int{"Y": 32, "Z": 64}[vecs[n-1]]/t.size)
	p("JNE partial")
	store(true)
	p("JMP next")
	label("partial")
	store(false)
	label("next")
}

// dot writes a kernel of products of rows rows of A, contiguous, with the vector B: C, contiguous, gets one number for
// each. The sums of one row are spread over as many registers as are needed to keep the units busy.
func dot(t kind, rows int, wide bool) string {
	class, bits, size := "Y", "256", 32
	if wide {
		class, bits, size = "Z", "512", 64
	}
	name := fmt.Sprintf("%sdot%s_%d", t.name, bits, rows)
	ps := "P" + t.letter
	unroll := 1
	if rows == 1 {
		unroll = 4
	}
	lanes := size / t.size
	r := func(i int) string { return fmt.Sprintf("%s%d", class, i) }
	shift := map[int]int{4: 2, 8: 3, 16: 4}
	begin(name, 8)
	steps()
	p("MOVQ %d(DI), AX", pTiles)
	p("MOVQ AX, tiles-8(SP)")
	if wide {
		p("MOVQ %d(DI), AX", pMask)
		p("KMOVW AX, K1")
	} else {
		p("MOVQ $32, AX")
		p("MOVQ %d(DI), R8", pLast)
		p("SHLQ $%d, R8", shift[t.size])
		p("SUBQ R8, AX")
		p("LEAQ lanes<>(SB), R8")
		p("VMOVUPS (R8)(AX*1), Y15")
	}
	label("tile")
	for i := range max(rows, unroll) {
		p("VXORPS X%d, X%d, X%d", i, i, i)
	}
	rowsOfA(rows)
	p("MOVQ DX, R9")
	p("MOVQ %d(DI), AX", pK)
	if unroll > 1 {
		p("SUBQ $%d, AX", unroll*lanes)
		p("JLT few")
		label("many")
		for u := range unroll {
			p("VMOVU%s %d(R9), %s", ps, u*size, r(8+u))
			p("VFMADD231%s %d(R8), %s, %s", ps, u*size, r(8+u), r(u))
		}
		p("ADDQ $%d, R8", unroll*size)
		p("ADDQ $%d, R9", unroll*size)
		p("SUBQ $%d, AX", unroll*lanes)
		p("JGE many")
		label("few")
		p("ADDQ $%d, AX", unroll*lanes)
	}
	p("SUBQ $%d, AX", lanes)
	p("JLT rest")
	label("loop")
	p("VMOVU%s (R9), %s", ps, r(8))
	for i := range rows {
		p("VFMADD231%s %s, %s, %s", ps, row(i), r(8), r(i))
	}
	p("ADDQ $%d, R8", size)
	if rows > 6 {
		p("ADDQ $%d, R12", size)
	}
	p("ADDQ $%d, R9", size)
	p("SUBQ $%d, AX", lanes)
	p("JGE loop")
	label("rest")
	p("ADDQ $%d, AX", lanes)
	p("JZ total")
	if wide {
		p("VMOVU%s.Z (R9), K1, %s", ps, r(8))
	} else {
		p("VMASKMOV%s (R9), Y15, %s", ps, r(8))
	}
	for i := range rows {
		if wide {
			p("VFMADD231%s %s, %s, K1, %s", ps, row(i), r(8), r(i))
		} else {
			p("VMASKMOV%s %s, Y15, %s", ps, row(i), r(9))
			p("VFMADD231%s %s, %s, %s", ps, r(9), r(8), r(i))
		}
	}
	label("total")
	if unroll > 1 {
		p("VADD%s %s, %s, %s", ps, r(1), r(0), r(0))
		p("VADD%s %s, %s, %s", ps, r(3), r(2), r(2))
		p("VADD%s %s, %s, %s", ps, r(2), r(0), r(0))
	}
	if wide {
		for i := range rows {
			p("VEXTRACTF64X4 $1, Z%d, Y9", i)
			p("VADD%s Y9, Y%d, Y%d", ps, i, i)
		}
	}
	h := func(a, b, to int) { p("VHADD%s Y%d, Y%d, Y%d", ps, b, a, to) }
	fold := func(a int) {
		p("VEXTRACTF128 $1, Y%d, X9", a)
		p("VADD%s X9, X%d, X%d", ps, a, a)
	}
	switch {
	case rows == 1:
		fold(0)
		p("VHADD%s X0, X0, X0", ps)
		if t.size == 4 {
			p("VHADDPS X0, X0, X0")
		}
		p("VMOVS%s X0, (CX)", t.letter)
	case t.size == 4:
		for g := 0; g < rows; g += 4 {
			h(g, g+1, g)
			h(g+2, g+3, g+2)
			h(g, g+2, g)
			fold(g)
			p("VMOVUPS X%d, %d(CX)", g, g*4)
		}
	default:
		for g := 0; g < rows; g += 2 {
			h(g, g+1, g)
			fold(g)
			p("VMOVUPD X%d, %d(CX)", g, g*8)
		}
	}
	p("DECQ tiles-8(SP)")
	p("JZ done")
	p("ADDQ %d(DI), SI", pATile)
	p("ADDQ $%d, CX", rows*t.size)
	p("JMP tile")
	label("done")
	end()
	return name
}

// transpose writes the kernel that turns n rows into columns: row j, at p.from[j], becomes column j at p.to. It does
// p.blocks blocks of n columns.
func transpose(t kind, n int) {
	name := fmt.Sprintf("%stranspose%d", t.name, n)
	fmt.Fprintf(&asm, "\n// func %s(p *transposeParams)\nTEXT ·%s(SB), NOSPLIT, $0-8\n", name, name)
	fmt.Fprintf(&decl, "//go:noescape\nfunc %s(p *transposeParams)\n\n", name)
	p("MOVQ p+0(FP), DI")
	from := []string{"AX", "BX", "CX", "DX", "SI", "R8", "R9", "R10"}[:n]
	for i, r := range from {
		p("MOVQ %d(DI), %s", 8*i, r)
	}
	p("MOVQ 64(DI), R11") // to
	p("MOVQ 72(DI), R12") // step
	p("MOVQ 80(DI), R13") // blocks
	p("XORQ DI, DI")
	label("loop")
	// four turns the four rows in registers o to o+3, or in each half of them.
	four := func(class string, o int) {
		p("VUNPCKLPS %[1]s%[2]d, %[1]s%[3]d, %[1]s8", class, o+1, o)
		p("VUNPCKHPS %[1]s%[2]d, %[1]s%[3]d, %[1]s9", class, o+1, o)
		p("VUNPCKLPS %[1]s%[2]d, %[1]s%[3]d, %[1]s10", class, o+3, o+2)
		p("VUNPCKHPS %[1]s%[2]d, %[1]s%[3]d, %[1]s11", class, o+3, o+2)
		p("VUNPCKLPD %[1]s10, %[1]s8, %[1]s%[2]d", class, o)
		p("VUNPCKHPD %[1]s10, %[1]s8, %[1]s%[2]d", class, o+1)
		p("VUNPCKLPD %[1]s11, %[1]s9, %[1]s%[2]d", class, o+2)
		p("VUNPCKHPD %[1]s11, %[1]s9, %[1]s%[2]d", class, o+3)
	}
	class := "Y"
	switch {
	case n*t.size == 16:
		class = "X"
		for i := range 4 {
			p("VMOVUPS (%s)(DI*1), X%d", from[i], i)
		}
		four("X", 0)
	case t.size == 4:
		// Rows i and i+4 are joined first, so that shuffles stay within halves.
		for i := range 4 {
			p("VMOVUPS (%s)(DI*1), X%d", from[i], i)
			p("VINSERTF128 $1, (%s)(DI*1), Y%d, Y%d", from[i+4], i, i)
			p("VMOVUPS 16(%s)(DI*1), X%d", from[i], i+4)
			p("VINSERTF128 $1, 16(%s)(DI*1), Y%d, Y%d", from[i+4], i+4, i+4)
		}
		four("Y", 0)
		four("Y", 4)
	default:
		for i := range 2 {
			p("VMOVUPD (%s)(DI*1), X%d", from[i], i)
			p("VINSERTF128 $1, (%s)(DI*1), Y%d, Y%d", from[i+2], i, i)
			p("VMOVUPD 16(%s)(DI*1), X%d", from[i], i+4)
			p("VINSERTF128 $1, 16(%s)(DI*1), Y%d, Y%d", from[i+2], i+4, i+4)
		}
		p("VUNPCKHPD Y5, Y4, Y3")
		p("VUNPCKLPD Y5, Y4, Y2")
		p("VUNPCKHPD Y1, Y0, Y8")
		p("VUNPCKLPD Y1, Y0, Y0")
		p("VMOVAPD Y8, Y1")
	}
	for i := range n {
		p("VMOVUPS %s%d, (R11)", class, i)
		p("ADDQ R12, R11")
	}
	p("ADDQ $%d, DI", n*t.size)
	p("DECQ R13")
	p("JNZ loop")
	end()
}

// strips writes the kernel that copies p.blocks rows of the given number of bytes.
func strips(bits int) {
	name := fmt.Sprintf("copy%d", bits)
	class, size := "Y", 32
	if bits == 512 {
		class, size = "Z", 64
	}
	fmt.Fprintf(&asm, "\n// func %s(p *transposeParams)\nTEXT ·%s(SB), NOSPLIT, $0-8\n", name, name)
	fmt.Fprintf(&decl, "//go:noescape\nfunc %s(p *transposeParams)\n\n", name)
	p("MOVQ p+0(FP), DI")
	p("MOVQ (DI), AX")
	p("MOVQ 64(DI), R11")
	p("MOVQ 72(DI), R12") // step between rows of the source
	p("MOVQ 80(DI), R13")
	label("loop")
	p("VMOVUPS (AX), %s0", class)
	p("VMOVUPS %d(AX), %s1", size, class)
	p("VMOVUPS %s0, (R11)", class)
	p("VMOVUPS %s1, %d(R11)", class, size)
	p("ADDQ R12, AX")
	p("ADDQ $%d, R11", 2*size)
	p("DECQ R13")
	p("JNZ loop")
	end()
}

// peak writes a loop of fused multiply-adds that touches no memory: 24 (12) of them each time.
func peak(t kind, wide bool) {
	class, bits, n := "Y", 256, 12
	if wide {
		class, bits, n = "Z", 512, 24
	}
	name := fmt.Sprintf("%speak%d", t.name, bits)
	fmt.Fprintf(&asm, "\n// func %s(times int)\nTEXT ·%s(SB), NOSPLIT, $0-8\n", name, name)
	fmt.Fprintf(&decl, "func %s(times int)\n\n", name)
	p("MOVQ times+0(FP), AX")
	for i := range n + 2 {
		p("VXORPS X%d, X%d, X%d", i%16, i%16, i%16)
		if i >= 16 {
			p("VPXORD Z%d, Z%d, Z%d", i, i, i)
		}
	}
	p("PCALIGN $32")
	label("loop")
	for i := range n {
		p("VFMADD231P%s %s%d, %s%d, %s%d", t.letter, class, n, class, n+1, class, i)
	}
	p("DECQ AX")
	p("JNZ loop")
	end()
}

func main() {
	const header = "// Code generated by gen/main.go; DO NOT EDIT.\n\n"
	asm.WriteString(header + "//go:build amd64\n\n#include \"textflag.h\"\n\n")
	asm.WriteString("// Ones, then zeros: the mask of the first lanes of a vector, at an offset.\n")
	for i := range 8 {
		v := "0xffffffffffffffff"
		if i >= 4 {
			v = "0"
		}
		fmt.Fprintf(&asm, "DATA lanes<>+%d(SB)/8, $%s\n", 8*i, v)
	}
	asm.WriteString("GLOBL lanes<>(SB), RODATA|NOPTR, $64\n")
	decl.WriteString(header + "//go:build amd64\n\npackage gemm\n\n")

	var tables bytes.Buffer
	family := func(t kind, wide bool) {
		type shape struct {
			vecs []string
			rows []int
		}
		all := []int{1, 2, 3, 4, 6}
		shapes := []shape{{[]string{"Y"}, all}, {[]string{"Y", "Y"}, all}}
		bits := 256
		if wide {
			bits = 512
			all = []int{1, 2, 3, 4, 6, 8, 12}
			shapes = []shape{{[]string{"Y"}, all}, {[]string{"Z"}, all}, {[]string{"Z", "Y"}, all}, {[]string{"Z", "Z"}, all},
				{[]string{"Z", "Z", "Z", "Z"}, []int{1, 2, 3, 4, 6}}}
		}
		fmt.Fprintf(&tables, "var %skernels%d = [...]width{\n", t.name, bits)
		for _, s := range shapes {
			cols, last := 0, 0
			for _, class := range s.vecs {
				last = map[string]int{"Y": 32, "Z": 64}[class] / t.size
				cols += last
			}
			fmt.Fprintf(&tables, "{cols: %d, last: %d, kernel: [maxRows + 1]kernel{", cols, last)
			for _, r := range s.rows {
				fmt.Fprintf(&tables, "%d: %s, ", r, kernel(t, r, s.vecs, wide))
			}
			fmt.Fprintf(&tables, "}},\n")
		}
		fmt.Fprintf(&tables, "}\n\n")
	}
	for _, t := range kinds {
		family(t, true)
		family(t, false)
		dot(t, 1, true)
		dot(t, 8, true)
		dot(t, 1, false)
		dot(t, 4, false)
		transpose(t, 4)
		if t.size == 4 {
			transpose(t, 8)
		}
		peak(t, true)
		peak(t, false)
	}
	strips(512)
	strips(256)
	decl.Write(tables.Bytes())
	src, err := format.Source(decl.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	for name, data := range map[string][]byte{"zz_kernels_amd64.s": asm.Bytes(), "zz_kernels_amd64.go": src} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
