package main

import (
	"fmt"
	"math"
)

// reduction is an operation with a neutral element.
type reduction struct {
	name    string
	neutral float64
	op      string // of the reduction of columns, if there is one
	f       func(b *Block, x, y V) V
}

var reductions = []reduction{
	{"Sum", 0, "Add", (*Block).Add},
	{"Prod", 1, "", (*Block).Mul},
	{"Max", math.Inf(-1), "Max", func(b *Block, x, y V) V { return b.maxMin(true, x, y) }},
	{"Min", math.Inf(1), "Min", func(b *Block, x, y V) V { return b.maxMin(false, x, y) }},
}

// butterfly combines lanes within groups of the given size; every lane gets its group's result.
func (b *Block) butterfly(v V, group int, f func(b *Block, x, y V) V) V {
	swap := func(distance int) V { // in bytes
		switch {
		case b.isa.neon() && distance == 8:
			return b.arm("ext", "#8", v, v)
		case b.isa.neon():
			return b.arm("rev64", "", v)
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
	if f.isa.neon() {
		f.neonRowLoop(tail, unroll, body)
		return
	}
	f.Text("XORQ BX, BX")
	f.loops(unroll, func(i int) {
		f.Block(func(b *Block) {
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

// rows starts a kernel on rows of n elements, and makes the mask of what is left of a row after whole vectors.
func (k Kernels) rows(op string) (f *Fn, tail V) {
	f = k.fn(op, "dst *"+k.el.goT, "a *"+k.el.goT, "rows int", "n int")
	if k.is.neon() {
		f.load("R0", "R1", "R2", "R3")
		return f, f.firstLane()
	}
	f.load("DI", "SI", "R11", "CX")
	f.Text("MOVQ CX, AX\nANDQ $%d, AX", f.lanes()-1)
	return f, f.tailMask("AX")
}

// storeFirst writes the first lane as the result of a row.
func (f *Fn) storeFirst(v V) {
	if f.isa.neon() {
		f.Text("%s %s, (R0)\nADD $%d, R0", f.neonFirst(), f.FReg(v), f.el.size)
		return
	}
	f.Text("%s %s, (DI)\nADDQ $%d, DI", "VMOVS"+f.el.letter, f.XReg(v), f.el.size)
}

// rowKernels makes reductions of rows of any length and, for AVX-512, of several short rows at once.
func (k Kernels) rowKernels() {
	for _, r := range reductions {
		f, tail := k.rows("row" + r.name)
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
		f.storeFirst(accs[0])
		f.nextRow()
		neutral := neutralGo(r, k.el)
		// A closure of its own, for each: what goes through a wrapper's pointer to a function would be on the heap.
		k.fill("t.%[1]s = func(a []%[2]s) (r %[2]s) {\nif len(a) == 0 {\nreturn %[3]s\n}\n"+
			"%[4]s(&r, &a[0], 1, len(a))\nreturn r\n}", r.name, k.el.goT, neutral, f.name)
		short := k.shortRows("row"+r.name, r.neutral, false, func(b *Block, group int, v V) V {
			return b.butterfly(v, group, r.f)
		})
		k.fill("t.Row%s = rowKernel(%d, %s%s)", r.name, f.lanes(), f.name, short)
		if r.op != "" {
			k.fill("t.Col%s = colKernel(t.Binary[%s], %s, %s)", r.name, r.op, k.columnKernel(r), neutral)
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
// returns the functions' names as further arguments. AVX2 has none.
func (k Kernels) shortRows(op string, fill float64, whole bool, body func(b *Block, group int, v V) V) string {
	list := ""
	for group := 2; k.wide() && group <= k.is.width/k.el.size; group *= 2 {
		f := k.fn(fmt.Sprintf("%sGroups%d", op, group), "dst *"+k.el.goT, "a *"+k.el.goT, "groups int", "size int",
			"out int", "load uint64", "spread uint64", "pick uint64", "store uint64")
		list += ", " + f.name
		f.load("DI", "SI", "CX", "DX", "R8")
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
		f.Text("NEXT_GROUPS(%d)", k.el.size)
	}
	return list
}

// nextRow goes on to the next row, or returns.
func (f *Fn) nextRow() {
	if f.isa.neon() {
		f.Text("ADD R3<<%d, R1, R1\nSUBS $1, R2, R2\nBNE row\nRET", log2(f.el.size))
		return
	}
	f.Text("NEXT_ROW(%d)", f.el.size)
}

// columnKernel reduces over rows: eight vectors of columns at a time, then one, then the tail.
func (k Kernels) columnKernel(r reduction) string {
	f, tail := k.rows("col" + r.name)
	if k.is.neon() {
		f.neonColumns(r)
		return f.name
	}
	const wide = 8
	var accs []V
	for range wide {
		accs = append(accs, f.Pin())
	}
	f.Text("constants")
	f.Text("XORQ BX, BX\nLEAQ (CX*%d), R12", k.el.size)
	block := func(u int, tail V) {
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
		f.Text("LEAQ (SI)(BX*%d), R10\nMOVQ R11, DX\n%s:", k.el.size, loop)
		each(func(b *Block, i int) {
			b.Assign(accs[i], r.f(b, accs[i], b.Load(fmt.Sprintf("%d(R10)", i*k.is.width))))
		})
		f.Text("ADDQ R12, R10\nDECQ DX\nJNZ %s", loop)
		each(func(b *Block, i int) { b.Store(accs[i], fmt.Sprintf("%d(DI)(BX*%d)", i*k.is.width, k.el.size)) })
	}
	for _, u := range []int{wide, 1} {
		f.loop(f.lanes()*u, func() { block(u, none) })
	}
	f.Text("TESTQ AX, AX\nJZ done")
	block(1, tail)
	f.Text("DONE")
	return f.name
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
