package main

import (
	"fmt"
	"math"
)

// reduction is an operation with a neutral element.
type reduction struct {
	name    string
	neutral float64
	f       func(b *Block, x, y V) V
}

var reductions = []reduction{
	{"Sum", 0, (*Block).Add},
	{"Prod", 1, (*Block).Mul},
	{"Max", math.Inf(-1), func(b *Block, x, y V) V { return b.maxMin(true, x, y) }},
	{"Min", math.Inf(1), func(b *Block, x, y V) V { return b.maxMin(false, x, y) }},
}

// butterfly combines lanes within groups of the given size; every lane gets its group's result.
func (b *Block) butterfly(v V, group int, f func(b *Block, x, y V) V) V {
	swap := func(distance int) V { // in bytes
		switch {
		case distance == 32:
			return b.opImm("VSHUFF64X2", 0x4e, v, v)
		case distance == 16 && b.wide():
			return b.opImm("VSHUFF64X2", 0xb1, v, v)
		case distance == 16:
			return b.opImm("VPERM2F128", 0x01, v, v)
		case distance == 8 && b.el.size == 8:
			return b.opImm("VPERMILPD", 0x55, v)
		case distance == 8:
			return b.opImm("VPERMILPS", 0x4e, v)
		}
		return b.opImm("VPERMILPS", 0xb1, v)
	}
	for d := group / 2; d >= 1; d /= 2 {
		v = f(b, v, swap(d*b.el.size))
	}
	return v
}

// rowLoop runs vectors of one row of length CX at SI: unroll at a time, then one, then the tail, whose mask must be
// ready and whose lanes are in AX. BX counts elements.
func (f *Fn) rowLoop(tail V, unroll int, body func(b *Block, mem string, i int)) {
	f.Text("XORQ BX, BX")
	f.loops(f.lanes(), unroll, func(i int) {
		f.Block(func(b *Block) {
			b.tail = none
			body(b, fmt.Sprintf("%d(SI)(BX*%d)", i*f.isa.width, f.el.size), i)
		})
	})
	skip := f.Label("skip")
	f.Text("TESTQ AX, AX\nJZ %s", skip)
	f.Block(func(b *Block) {
		b.tail = tail
		body(b, fmt.Sprintf("(SI)(BX*%d)", f.el.size), 0)
	})
	f.Text("%s:", skip)
}

func rowParams(el elem) []string {
	return []string{"dst *" + el.goT, "a *" + el.goT, "rows int", "n int"}
}

// rowStart reads the parameters and makes the tail's mask.
func (f *Fn) rowStart() V {
	f.Text("MOVQ %s, DI\nMOVQ %s, SI\nMOVQ %s, R11\nMOVQ %s, CX", f.at("dst"), f.at("a"), f.at("rows"), f.at("n"))
	f.Text("MOVQ CX, AX\nANDQ $%d, AX", f.lanes()-1)
	return f.tailMask(f.lanes(), "AX")
}

// rowKernels makes reductions of rows of any length and, for AVX-512, of several short rows at once.
func (g *File) rowKernels(is isa, el elem) {
	x := el.name + is.name
	t := table(is, el)
	for _, r := range reductions {
		f := g.fn("row"+r.name+x, is, el, rowParams(el)...)
		tail := f.rowStart()
		accs := []V{f.Pin(), f.Pin(), f.Pin(), f.Pin()}
		f.Text("constants")
		f.Text("row:")
		f.Block(func(b *Block) {
			for _, a := range accs {
				b.Assign(a, b.C(r.neutral))
			}
		})
		f.rowLoop(tail, 4, func(b *Block, mem string, i int) {
			b.Assign(accs[i], r.f(b, accs[i], b.LoadFill(mem, b.C(r.neutral))))
		})
		f.Block(func(b *Block) {
			v := r.f(b, r.f(b, accs[0], accs[1]), r.f(b, accs[2], accs[3]))
			b.Assign(accs[0], b.butterfly(v, b.lanes(), r.f))
		})
		f.Text("%s %s, (DI)", map[int]string{4: "VMOVSS", 8: "VMOVSD"}[el.size], f.XReg(accs[0]))
		f.Text("ADDQ $%d, DI\nNEXT_ROW(%d)", el.size, el.size)
		g.fill(t, "t.%s = func(a []%s) %s {\nvar r %s\nif len(a) == 0 {\nreturn %s\n}\nrow%s%s(&r, &a[0], 1, len(a))\nreturn r\n}",
			r.name, el.goT, el.goT, el.goT, neutralGo(r, el), r.name, x)
		short := ""
		if is.width == 64 {
			short = g.shortRows("row"+r.name, is, el, r.neutral, func(b *Block, group int, v V) V {
				return b.butterfly(v, group, r.f)
			}, false)
		}
		g.fill(t, "t.Row%s = rowKernel(%d, row%s%s%s)", r.name, is.width/el.size, r.name, x, short)
		if r.name != "Prod" {
			g.columnKernel(is, el, r)
		}
	}
}

func neutralGo(r reduction, el elem) string {
	switch {
	case math.IsInf(r.neutral, 1):
		return el.goT + "(math.Inf(1))"
	case math.IsInf(r.neutral, -1):
		return el.goT + "(math.Inf(-1))"
	}
	return fmt.Sprint(r.neutral)
}

// shortRows makes kernels of rows of at most a vector, in groups of 2, 4, ... lanes: a group holds a row. The masks say
// which elements to load, in which lanes to spread them, which lanes hold results and which results to store. It
// returns the functions' names as further arguments.
func (g *File) shortRows(name string, is isa, el elem, fill float64, body func(b *Block, group int, v V) V, whole bool) string {
	list := ""
	for group := 2; group <= is.width/el.size; group *= 2 {
		n := fmt.Sprintf("%sGroups%d%s%s", name, group, el.name, is.name)
		list += ", " + n
		f := g.fn(n, is, el, "dst *"+el.goT, "a *"+el.goT, "groups int", "size int", "out int",
			"load uint64", "spread uint64", "pick uint64", "store uint64")
		f.Text("MOVQ %s, DI\nMOVQ %s, SI\nMOVQ %s, CX\nMOVQ %s, DX\nMOVQ %s, R8", f.at("dst"), f.at("a"), f.at("groups"),
			f.at("size"), f.at("out"))
		for i, m := range []string{"load", "spread", "pick", "store"} {
			f.Text("MOVQ %s, AX\nKMOVW AX, K%d", f.at(m), i+1)
		}
		load, spread, pick, store := f.K(1), f.K(2), f.K(3), f.K(4)
		f.Text("constants")
		f.Text("loop:")
		f.Block(func(b *Block) {
			b.tail = load
			v := b.Load("(SI)")
			d := b.newVal(val{})
			b.emit(ins{mn: "VEXPAND" + b.fp() + ".Z", srcs: []V{v}, k: spread, dst: d})
			if fill != 0 {
				d = b.Blend(spread, d, b.C(fill))
			}
			r := body(b, group, d)
			b.tail = store
			out := pick
			if whole {
				out = spread
			}
			c := b.newVal(val{})
			b.emit(ins{mn: "VCOMPRESS" + b.fp() + ".Z", srcs: []V{r}, k: out, dst: c})
			b.Store(c, "(DI)")
		})
		f.Text("NEXT_GROUPS(%d)", el.size)
	}
	return list
}

// columnKernel reduces over rows: eight vectors of columns at a time, then one, then the tail.
func (g *File) columnKernel(is isa, el elem, r reduction) {
	name := "col" + r.name + el.name + is.name
	f := g.fn(name, is, el, rowParams(el)...)
	tail := f.rowStart()
	const wide = 8
	var accs []V
	for range wide {
		accs = append(accs, f.Pin())
	}
	lanes := is.width / el.size
	f.Text("constants")
	f.Text("XORQ BX, BX\nLEAQ (CX*%d), R12", el.size)
	block := func(u int, tail V) {
		loop := f.Label("rows")
		f.Block(func(b *Block) {
			for i := range u {
				b.Assign(accs[i], b.C(r.neutral))
			}
		})
		f.Text("LEAQ (SI)(BX*%d), R10\nMOVQ R11, DX\n%s:", el.size, loop)
		for i := range u {
			f.Block(func(b *Block) {
				b.tail = tail
				b.Assign(accs[i], r.f(b, accs[i], b.Load(fmt.Sprintf("%d(R10)", i*is.width))))
			})
		}
		f.Text("ADDQ R12, R10\nDECQ DX\nJNZ %s", loop)
		for i := range u {
			f.Block(func(b *Block) {
				b.tail = tail
				b.Store(accs[i], fmt.Sprintf("%d(DI)(BX*%d)", i*is.width, el.size))
			})
		}
	}
	for _, u := range []int{wide, 1} {
		f.loop(lanes*u, func() { block(u, none) })
	}
	f.Text("TESTQ AX, AX\nJZ done")
	block(1, tail)
	f.Text("DONE")
	g.fill(table(is, el), "t.Col%s = colKernel(t.Binary[%s], %s, %s)", r.name, map[string]string{"Sum": "Add", "Max": "Max",
		"Min": "Min"}[r.name], name, neutralGo(r, el))
}

// rowMacros are the ends of loops over rows.
func (p *Package) rowMacros() {
	p.Macro("NEXT_ROW goes to the next row, of CX elements of so many bytes.", "NEXT_ROW(size)", `
		LEAQ (SI)(CX*size), SI
		DECQ R11
		JNZ row
		RETURN`)
	p.Macro("NEXT_GROUPS goes to the next rows that fill a vector.", "NEXT_GROUPS(size)", `
		LEAQ (SI)(DX*size), SI
		LEAQ (DI)(R8*size), DI
		DECQ CX
		JNZ loop
		RETURN`)
}
