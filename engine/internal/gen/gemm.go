package main

import (
	"fmt"
	"strings"
)

// gemm is the kernels of package gemm, a file for each type. They read what they are to do from params or
// transposeParams at DI; go_asm.h knows where the fields are.
func gemm() *Package {
	p := newPackage("gemm")
	p.endMacros()
	p.tileMacros()
	p.packMacros()
	g := p.file("copy")
	g.defines = "#include \"go_asm.h\"\n"
	for _, is := range []isa{avx512, avx2} {
		for _, v := range vectors(is) {
			p.rowOfSumsMacros(v)
			for _, rows := range v.heights {
				p.epilogue(tile{v, rows})
			}
		}
		p.maxMacros(is)
		g.copyKernel(is)
	}
	for _, el := range []elem{f32, f64} {
		g := p.lanes(el, el.name)
		for _, is := range []isa{avx512, avx2} {
			g.tileKernels(el, vectors(is), sumProduct{}, "")
			g.dotKernel(is, el, 1)
			g.dotKernel(is, el, is.width/8)
			g.peakKernel(is, el)
		}
		for n := 4; n*el.size <= 32; n *= 2 {
			g.packKernel(el, n)
		}
		g = p.lanes(el, "max"+el.name)
		for _, is := range []isa{avx512, avx2} {
			g.tileKernels(el, maxVectors(is), maxPlus{}, "max")
		}
	}
	p.neonGemm()
	return p
}

// gemmName starts the name of a kernel: sgemm512.
func gemmName(is isa, el elem, what string) string {
	return fmt.Sprintf("%s%s%d", strings.ToLower(el.letter), what, is.width*8)
}

// lanes starts a file of kernels of one type.
func (p *Package) lanes(el elem, name string) *File {
	g := p.file(name)
	g.defines = typeMacros(el)
	g.data = tailMasks()
	return g
}

// typeMacros makes instructions of a header stand for those of one type.
func typeMacros(el elem) string {
	s := fmt.Sprintf("#include \"go_asm.h\"\n\n// Lanes of %d bits.\n", el.size*8)
	s += fmt.Sprintf("#define SIZE %d\n#define LOG_SIZE %d\n", el.size, el.size/4+1)
	ops := "VADDP VMULP VMAXP VMINP VCMPP VFMADD231P VMOVUP VMASKMOVP VBROADCASTS"
	for op := range strings.FieldsSeq(ops) {
		s += fmt.Sprintf("#define %s %s%s\n", op, op, el.letter)
	}
	return s
}

// vecs is the vectors that a row of a tile has: a letter for each, Y or Z, the wider first.
type vecs struct {
	isa
	list    string
	heights []int // of the tiles there are
}

func vectors(is isa) []vecs {
	all := []int{1, 2, 3, 4, 6}
	if is.width == 32 {
		return []vecs{{is, "Y", all}, {is, "YY", all}}
	}
	more := []int{1, 2, 3, 4, 6, 8, 12}
	return []vecs{{is, "Y", more}, {is, "Z", more}, {is, "ZY", more}, {is, "ZZ", more}, {is, "ZZZZ", all}}
}

func (v vecs) n() int             { return len(v.list) }
func (v vecs) wide() bool         { return v.width == 64 }
func (v vecs) class(j int) string { return v.list[j : j+1] }
func (v vecs) bytes(j int) int    { return map[string]int{"Y": 32, "Z": 64}[v.class(j)] }
func (v vecs) name() string       { return v.isa.name + "_" + v.list }

// offset is where vector j starts in a row, in bytes.
func (v vecs) offset(j int) int {
	off := 0
	for i := range j {
		off += v.bytes(i)
	}
	return off
}

// Registers: sums first; at the other end the mask of AVX2, a broadcast, then a row of B. AVX-512 has masks K1, K2, ...

func (v vecs) temp(class string, i int) string { return fmt.Sprintf("%s%d", class, v.regs-2-i) }
func (v vecs) b(j int) string                  { return v.temp(v.class(j), 1+j) }

// mem is the place of vector j in a row.
func (v vecs) mem(base string, j int) string { return fmt.Sprintf("%d(%s)", v.offset(j), base) }

// masked says whether vector j may have fewer columns than lanes.
func (v vecs) masked(j int) bool { return v.wide() || j == v.n()-1 }

// load reads vector j of a row.
func (v vecs) load(ps, base string, j int, to string) string {
	switch {
	case v.wide():
		return fmt.Sprintf("VMOVU%s.Z %s, K%d, %s\n", ps, v.mem(base, j), j+1, to)
	case v.masked(j):
		return fmt.Sprintf("VMASKMOV%s %s, Y15, %s\n", ps, v.mem(base, j), to)
	}
	return fmt.Sprintf("VMOVU%s %s, %s\n", ps, v.mem(base, j), to)
}

// tile is the shape of a kernel.
type tile struct {
	vecs
	rows int
}

// sums is the registers of row i, all of one class or, if that is none, each of its own.
func (t tile) sums(i int, all string) string {
	var regs []string
	for j := range t.n() {
		class := all
		if class == "" {
			class = t.class(j)
		}
		regs = append(regs, fmt.Sprintf("%s%d", class, i*t.n()+j))
	}
	return strings.Join(regs, ", ")
}

// rowOfA is the address of row i of A, from R8 (rows 0 to 5) or R12 (rows 6 to 11).
func rowOfA(i int) string {
	base := "(R8)"
	if i >= 6 {
		base, i = "(R12)", i-6
	}
	return base + [...]string{"", "(BX*1)", "(BX*2)", "(R10*1)", "(BX*4)", "(R11*1)"}[i]
}

// firstOfA sets the registers that rowOfA uses.
func (f *Fn) firstOfA(rows int) {
	f.Text("MOVQ SI, R8")
	if rows > 6 {
		f.Text("LEAQ (SI)(R10*2), R12")
	}
}

// tileKernels makes the kernels of all tiles and the table of them. Names begin with prefix.
func (g *File) tileKernels(el elem, all []vecs, r ring, prefix string) {
	name := func(what string) string { return gemmName(all[0].isa, el, prefix+what) }
	table := fmt.Sprintf("var %s = [...]width{\n", name("kernels"))
	for _, v := range all {
		cols := v.offset(v.n()) / el.size
		table += fmt.Sprintf("{cols: %d, last: %d, kernel: [maxRows + 1]kernel{", cols, v.bytes(v.n()-1)/el.size)
		for _, rows := range v.heights {
			kernel := fmt.Sprintf("%s_%dx%d", name("gemm"), rows, cols)
			g.tileKernel(kernel, el, tile{v, rows}, r)
			table += fmt.Sprintf("%d: %s, ", rows, kernel)
		}
		table += "}},\n"
	}
	g.tables += table + "}\n\n"
}

// ring is what kernels of tiles compute: sums of products, or maxima of sums.
type ring interface {
	begin(f *Fn, v vecs)                         // once, before the first tile
	clear(f *Fn, t tile)                         // the registers of a tile, to what is the sum of nothing
	step(f *Fn, v vecs, j int, a, b, sum string) // one term of vector j: a is a register or a place in memory
	end(f *Fn, t tile)                           // what the flags ask for, and stores
}

// tileKernel computes tiles of C, one after the other, each with all its sums in registers. It reads elements of A one
// by one with any strides (they are broadcast), rows of B as vectors, and ends with what the flags ask for.
// Registers:
//
//	DI params   SI, DX, CX first element of A, B, C of this tile   AX counter
//	BX, R10, R11 one, three and five rows of A   R13 one row of B
//	R8, R12 element of A in rows 0 and 6   R9 row of B
func (g *File) tileKernel(name string, el elem, t tile, r ring) {
	f := g.fn(name, t.isa, el, "p *params")
	f.locals = 24
	n, ps := t.n(), "P"+el.letter
	f.load("DI")
	f.Text("MASKS_%s\nFIRST_TILE", t.name())
	r.begin(f, t.vecs)
	f.Text("tile:")
	r.clear(f, t)
	f.firstOfA(t.rows)
	f.Text("MOVQ DX, R9\nMOVQ params_k(DI), AX\nPCALIGN $32\nloop:")
	for j := range n {
		f.Text("%s", t.load(ps, "R9", j, t.b(j)))
	}
	for i := range t.rows {
		sums := strings.Split(t.sums(i, ""), ", ")
		if n == 1 && t.wide() {
			r.step(f, t.vecs, 0, rowOfA(i), t.b(0), sums[0])
			continue
		}
		f.Text("%s %s, %s", f.broadcast(), rowOfA(i), t.temp(t.class(0), 0))
		for j := range n {
			r.step(f, t.vecs, j, t.temp(t.class(j), 0), t.b(j), sums[j])
		}
	}
	f.Text("ADDQ params_aCol(DI), R8")
	if t.rows > 6 {
		f.Text("ADDQ params_aCol(DI), R12")
	}
	f.Text("ADDQ R13, R9\nDECQ AX\nJNZ loop")
	r.end(f, t)
	f.Text("NEXT_TILE")
}

// fused ends what does arithmetic on a: it is broadcast from memory as part of it.
func fused(a string) string {
	if strings.HasSuffix(a, ")") {
		return ".BCST"
	}
	return ""
}

// sumProduct is the ring of matrix products.
type sumProduct struct{}

func (sumProduct) begin(*Fn, vecs) {}

func (sumProduct) clear(f *Fn, t tile) {
	for i := range t.rows {
		class := ""
		if t.wide() {
			class = "X" // clearing the low part clears the register
		}
		f.Text("CLEAR_%s(%s)", t.name(), t.sums(i, class))
	}
}

func (sumProduct) step(f *Fn, _ vecs, _ int, a, b, sum string) {
	f.Text("VFMADD231P%s%s %s, %s, %s", f.el.letter, fused(a), a, b, sum)
}

func (sumProduct) end(f *Fn, t tile) { f.Text("EPILOGUE_%dx%s", t.rows, t.name()) }
