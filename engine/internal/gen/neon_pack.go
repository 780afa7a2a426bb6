package main

import "fmt"

// neonDot is dotKernel for NEON: one row, or as many as there are lanes.
func (g *File) neonDot(el elem, rows int) {
	f := g.fn(fmt.Sprintf("%s_%d", neonName(el, "dot"), rows), neon, el, "p *params")
	t := neonTile{f, neonVecs{el, 1, 16 / el.size}, rows}
	parts := min(4, 8/rows) // sums of one row
	sum := func(i, u int) int { return i*parts + u }
	pointers := []string{"R9", "R7", "R10", "R11", "R12"}[:1+rows]
	sizes := []int{el.size, el.size, el.size, el.size, el.size}
	f.load("R0")
	f.Text(`MOVD params_a(R0), R1
		MOVD params_b(R0), R2
		MOVD params_c(R0), R3
		MOVD params_aRow(R0), R5
		MOVD params_aTile(R0), R6
		MOVD params_tiles(R0), R21
		tile:
		MOVD R2, R9
		MOVD R1, R7
		MOVD params_k(R0), R4`)
	for i := range rows {
		if i > 0 {
			f.Text("ADD R5, %s, %s", pointers[i], pointers[i+1])
		}
		for u := range parts {
			f.Text("movi v%d.2d, #0", sum(i, u))
		}
	}
	terms := func(mov string, parts int) {
		for u := range parts {
			f.Text("%s %d(R9), F%d", mov, u*16, 24+u)
			for i := range rows {
				a := 16 + i%4 + 4*(u%2)
				f.Text("%s %d(%s), F%d", mov, u*16, pointers[1+i], a)
				t.v("fmla", sum(i, u), 24+u, a)
			}
		}
	}
	f.neonLoop(parts*f.lanes(), "R4", pointers, sizes, func() { terms("FMOVQ", parts) })
	f.neonLoop(f.lanes(), "R4", pointers, sizes, func() { terms("FMOVQ", 1) })
	f.neonLoop(1, "R4", pointers, sizes, func() { terms(f.neonFirst(), 1) })
	var sums []int
	for i := range rows {
		for d := parts / 2; d > 0; d /= 2 {
			for u := range d {
				t.v("fadd", sum(i, u), sum(i, u), sum(i, u+d))
			}
		}
		sums = append(sums, sum(i, 0))
	}
	for n := f.lanes(); n > 1; n /= 2 { // pairs of lanes, of one row or of two
		for i := range max(1, len(sums)/2) {
			t.v("faddp", sums[i], sums[min(2*i, len(sums)-1)], sums[min(2*i+1, len(sums)-1)])
		}
		sums = sums[:max(1, len(sums)/2)]
	}
	mov := "FMOVQ"
	if rows == 1 {
		mov = f.neonFirst()
	}
	f.Text("%s F%d, (R3)\nADD $%d, R3\nADD R6, R1\nSUBS $1, R21, R21\nBNE tile\nRET", mov, sums[0], rows*el.size)
}

// neonTranspose is packKernel for as many rows as there are lanes.
func (g *File) neonTranspose(el elem) {
	n := 16 / el.size
	f := g.fn(neonName(el, fmt.Sprintf("transpose%d", n)), neon, el, "p *transposeParams")
	t := neonTile{f, neonVecs{el, 1, n}, n}
	f.load("R0")
	for i := range n {
		f.Text("MOVD (transposeParams_from+%d)(R0), R%d", 8*i, i+1)
	}
	f.Text("MOVD transposeParams_to(R0), R5\nMOVD transposeParams_step(R0), R6")
	f.Text("MOVD transposeParams_blocks(R0), R7\nloop:")
	for i := range n {
		f.Text("FMOVQ (R%d), F%d\nADD $16, R%d", i+1, i, i+1)
	}
	for _, r := range t.turn() {
		f.Text("FMOVQ F%d, (R5)\nADD R6, R5", r)
	}
	f.Text("SUBS $1, R7, R7\nBNE loop\nRET")
}

// turn turns the rows in registers 0, 1, ... into columns; it returns where those are.
func (t neonTile) turn() []int {
	if t.el.size == 8 {
		t.v("zip1", 2, 0, 1)
		t.v("zip2", 3, 0, 1)
		return []int{2, 3}
	}
	for i := range 2 { // rows 0 and 2, then 1 and 3
		t.v("zip1", 4+2*i, i, i+2)
		t.v("zip2", 5+2*i, i, i+2)
	}
	for i := range 2 {
		t.v("zip1", 2*i, 4+i, 6+i)
		t.v("zip2", 2*i+1, 4+i, 6+i)
	}
	return []int{0, 1, 2, 3}
}

// neonCopy copies p.blocks rows of four vectors.
func (g *File) neonCopy() {
	f := g.fn("copyNEON", neon, f32, "p *transposeParams")
	f.load("R0")
	f.Text("MOVD transposeParams_from(R0), R1\nMOVD transposeParams_to(R0), R5")
	f.Text("MOVD transposeParams_step(R0), R6\nMOVD transposeParams_blocks(R0), R7\nloop:")
	for i := range 4 {
		f.Text("FMOVQ %d(R1), F%d", 16*i, i)
	}
	for i := range 4 {
		f.Text("FMOVQ F%d, %d(R5)", i, 16*i)
	}
	f.Text("ADD R6, R1\nADD $64, R5\nSUBS $1, R7, R7\nBNE loop\nRET")
}

// neonPeak is a loop of 24 sums of products that touches no memory.
func (g *File) neonPeak(el elem) {
	f := g.fn(neonName(el, "peak"), neon, el, "times int")
	t := neonTile{f, neonVecs{el, 1, 16 / el.size}, 1}
	f.load("R0")
	for i := range 26 {
		f.Text("movi v%d.2d, #0", i)
	}
	f.Text("PCALIGN $16\nloop:")
	for i := range 24 {
		t.v("fmla", i, 24, 25)
	}
	f.Text("SUBS $1, R0, R0\nBNE loop\nRET")
}
