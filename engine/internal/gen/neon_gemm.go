package main

import (
	"fmt"
	"strings"
)

// neonVecs is the vectors that a row of a tile has: how many, and how many lanes of each are used. There are no masks:
// if a row is not whole vectors, the last one ends where the row ends, and computes some columns again.
type neonVecs struct {
	typ   elem
	n     int
	lanes int
}

// neonWidths are the columns of tiles, growing.
func neonWidths(el elem) (all []neonVecs) {
	for lanes := 1; lanes < 16/el.size; lanes *= 2 {
		all = append(all, neonVecs{el, 1, lanes})
		if lanes > 1 {
			all = append(all, neonVecs{el, 2, lanes}) // three columns
		}
	}
	for n := range 4 {
		all = append(all, neonVecs{el, n + 1, 16 / el.size})
	}
	return all
}

// cols is the most columns.
func (v neonVecs) cols() int {
	if v.n == 2 && v.lanes*v.typ.size < 16 {
		return 3
	}
	return v.n * v.lanes
}

// mov loads and stores a vector.
func (v neonVecs) mov() string {
	return map[int]string{4: "FMOVS", 8: "FMOVD", 16: "FMOVQ"}[v.lanes*v.typ.size]
}

// place is where vector j of a row is: the last one has a pointer of its own.
func (v neonVecs) place(j int, row, last string) string {
	if j == v.n-1 {
		return "(" + last + ")"
	}
	return fmt.Sprintf("%d(%s)", j*v.lanes*v.typ.size, row)
}

// neonTile is a shape of kernels. Registers: sums first, then from 24 a row of B, from 28 what is needed for a moment.
type neonTile struct {
	*Fn
	neonVecs
	rows int
}

func (t neonTile) sum(i, j int) int { return i*t.n + j }

// v prints an instruction on all lanes of registers.
func (t neonTile) v(mn string, regs ...int) {
	a := allocator{f: t.Fn}
	a.arm(mn, "", regs...)
	t.Text("%s", a.out.String())
}

// all makes an instruction for each sum.
func (t neonTile) all(do func(i, j, sum int)) {
	for i := range t.rows {
		for j := range t.n {
			do(i, j, t.sum(i, j))
		}
	}
}

// everywhere puts the first lane of register r into all lanes of register to.
func (t neonTile) everywhere(r, to int) {
	lanes := t.el.lanesOf(neon)
	t.Text("dup v%d.%s, v%d.%s[0]", to, lanes, r, lanes[len(lanes)-1:])
}

// neonRing is ring for NEON.
type neonRing interface {
	clear(t neonTile)
	step(t neonTile, a, row int) // one term of each sum of a row; the element of A is in the first lane
	end(t neonTile)
}

// neonGemm is the kernels of package gemm.
func (p *Package) neonGemm() {
	g := p.armFile("copy")
	g.defines = "#include \"go_asm.h\"\n"
	g.neonCopy()
	for _, el := range []elem{f32, f64} {
		g := p.armFile(el.name)
		g.defines = "#include \"go_asm.h\"\n"
		g.neonTiles(el, []int{1, 2, 3, 4, 6}, neonProduct{}, "")
		g.neonDot(el, 1)
		g.neonDot(el, 16/el.size)
		g.neonTranspose(el)
		g.neonPeak(el)
		g = p.armFile("max" + el.name)
		g.defines = "#include \"go_asm.h\"\n"
		g.neonTiles(el, []int{1, 2, 4}, neonMax{}, "max")
	}
}

func neonName(el elem, what string) string { return strings.ToLower(el.letter) + what + "NEON" }

// neonTiles makes the kernels of all tiles and the table of them. Names begin with prefix.
func (g *File) neonTiles(el elem, heights []int, r neonRing, prefix string) {
	table := fmt.Sprintf("var %s = [...]width{\n", neonName(el, prefix+"kernels"))
	for _, v := range neonWidths(el) {
		table += fmt.Sprintf("{cols: %d, last: %d, kernel: [maxRows + 1]kernel{", v.cols(), v.cols())
		for _, rows := range heights {
			name := fmt.Sprintf("%s_%dx%d", neonName(el, prefix+"gemm"), rows, v.cols())
			g.neonTile(name, v, rows, r)
			table += fmt.Sprintf("%d: %s, ", rows, name)
		}
		table += "}},\n"
	}
	g.tables += table + "}\n\n"
}

// neonTile computes tiles of C, one after the other, each with all its sums in registers. Registers:
//
//	R0 params   R1, R2, R3 first element of A, B, C of this tile   R4 counter, flags
//	R5, R6, R22 steps of A from column to column, of B and C from row to row   R10 to R14 one to five rows of A
//	R15 from the first to the last vector of a row   R7 element of A   R9, R16 row of B, its last vector
//	R19, R20 biases of columns and rows   R21 tiles   R23, R24 row of C, its last vector
func (g *File) neonTile(name string, v neonVecs, rows int, r neonRing) {
	f := g.fn(name, neon, v.typ, "p *params")
	t := neonTile{f, v, rows}
	f.load("R0")
	for i, field := range strings.Fields("a b c") {
		f.Text("MOVD params_%s(R0), R%d", field, i+1)
	}
	f.Text(`MOVD params_aRow(R0), R10
		ADD R10, R10, R11
		ADD R10, R11, R12
		ADD R11, R11, R13
		ADD R10, R13, R14
		MOVD params_aCol(R0), R5
		MOVD params_bRow(R0), R6
		MOVD params_cRow(R0), R22
		MOVD params_cols(R0), R15
		SUB $%d, R15
		LSL $%d, R15
		MOVD params_bias(R0), R19
		MOVD params_rowBias(R0), R20
		MOVD params_tiles(R0), R21
		tile:`, v.lanes, log2(v.typ.size))
	r.clear(t)
	f.Text("MOVD R1, R7\nMOVD R2, R9\nADD R15, R2, R16\nMOVD params_k(R0), R4\nPCALIGN $16\nloop:")
	for j := range v.n {
		f.Text("%s %s, F%d", v.mov(), v.place(j, "R9", "R16"), 24+j)
	}
	for i := range rows {
		a := 28 + i%2
		row := "(R7)"
		if i > 0 {
			row += fmt.Sprintf("(R%d)", 9+i)
		}
		f.Text("%s %s, F%d", f.neonFirst(), row, a)
		r.step(t, a, i)
	}
	f.Text("ADD R5, R7\nADD R6, R9\nADD R6, R16\nSUBS $1, R4, R4\nBNE loop\nMOVD params_flags(R0), R4")
	r.end(t)
	t.rowsOfC(func(i, j int, place string) { f.Text("%s F%d, %s", v.mov(), t.sum(i, j), place) })
	f.Text("SUBS $1, R21, R21\nBEQ done")
	for i, field := range strings.Fields("aTile bTile cTile") {
		f.Text("MOVD params_%s(R0), R4\nADD R4, R%d", field, i+1)
	}
	f.Text("MOVD params_biasTile(R0), R4\nADD R4, R19\nMOVD params_rowBiasTile(R0), R4\nADD R4, R20\nJMP tile\ndone:\nRET")
}

// rowsOfC goes over the vectors of the tile's rows of C.
func (t neonTile) rowsOfC(do func(i, j int, place string)) {
	t.Text("MOVD R3, R23\nADD R15, R3, R24")
	for i := range t.rows {
		for j := range t.n {
			do(i, j, t.place(j, "R23", "R24"))
		}
		if i < t.rows-1 {
			t.Text("ADD R22, R23\nADD R22, R24")
		}
	}
}

// when makes code that runs if a flag is set.
func (t neonTile) when(flag string, do func()) {
	skip := t.Label("no" + flag)
	t.Text("TST $const_flag%s, R4\nBEQ %s", flag, skip)
	do()
	t.Text("%s:", skip)
}

// addC combines sums with what is in C.
func (t neonTile) addC(mn string) {
	t.when("Add", func() {
		t.rowsOfC(func(i, j int, place string) {
			t.Text("%s %s, F%d", t.mov(), place, 24+j)
			t.v(mn, t.sum(i, j), t.sum(i, j), 24+j)
		})
	})
}

// neonProduct is the ring of matrix products.
type neonProduct struct{}

func (neonProduct) clear(t neonTile) {
	t.all(func(_, _, sum int) { t.Text("movi v%d.2d, #0", sum) })
}

func (neonProduct) step(t neonTile, a, row int) {
	lanes := t.el.lanesOf(neon)
	for j := range t.n {
		t.Text("fmla v%d.%s, v%d.%s, v%d.%s[0]", t.sum(row, j), lanes, 24+j, lanes, a, lanes[len(lanes)-1:])
	}
}

func (neonProduct) end(t neonTile) {
	store := "store"
	t.Text("CBZ R4, %s", store)
	t.addC("fadd")
	t.when("Bias", func() {
		t.Text("ADD R15, R19, R24")
		for j := range t.n {
			t.Text("%s %s, F%d", t.mov(), t.place(j, "R19", "R24"), 24+j)
		}
		t.all(func(_, j, sum int) { t.v("fadd", sum, sum, 24+j) })
	})
	t.when("RowBias", func() {
		t.all(func(i, j, sum int) {
			if j == 0 {
				t.Text("%s %d(R20), F28", t.neonFirst(), i*t.el.size)
				t.everywhere(28, 28)
			}
			t.v("fadd", sum, sum, 28)
		})
	})
	const zero, slope, where, what = 28, 29, 30, 31
	negative := func(sum int) { t.v("fcmgt", where, zero, sum) }
	t.when("ReLU", func() {
		t.Text("movi v%d.2d, #0", zero)
		t.all(func(_, _, sum int) {
			negative(sum)
			t.v("bic", sum, sum, where)
		})
	})
	t.when("Leaky", func() {
		t.Text("movi v%d.2d, #0\n%s params_slope(R0), F%d", zero, t.neonFirst(), slope)
		t.everywhere(slope, slope)
		t.all(func(_, _, sum int) {
			negative(sum)
			t.v("fmul", what, sum, slope)
			t.v("bit", sum, what, where)
		})
	})
	t.Text("%s:", store)
}

// neonMax is the ring of maxPlus: the maximum of NEON is as it must be.
type neonMax struct{}

func (neonMax) clear(t neonTile) {
	least := map[int]string{4: "0xff800000", 8: "0xfff0000000000000"}[t.el.size]
	t.Text("MOVD $%s, R4\nFMOVD R4, F28", least)
	t.all(func(_, _, sum int) { t.everywhere(28, sum) })
}

func (neonMax) step(t neonTile, a, row int) {
	t.everywhere(a, a)
	for j := range t.n {
		t.v("fadd", 30+j%2, 24+j, a)
		t.v("fmax", t.sum(row, j), t.sum(row, j), 30+j%2)
	}
}

func (neonMax) end(t neonTile) { t.addC("fmax") }
