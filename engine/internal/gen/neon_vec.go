package main

import (
	"fmt"
	"strings"
)

// neonVec is what package vec has for NEON.
func (p *Package) neonVec() {
	g := p.armFile("int")
	for _, el := range []elem{i32, i64, u32, u64} {
		k := g.of(neon, el)
		k.neonIntegers()
		k.fillKernel()
		k.compareKernels()
		k.selectKernels()
	}
	g = p.armFile("misc")
	g.neonPhilox()
	for _, el := range []elem{u32, u64} {
		g.neonTransposes(el)
	}
	g.neonConversions()
	for _, el := range []elem{f32, f64} {
		k := p.armFile(el.name).of(neon, el)
		k.binaryKernels(binaries)
		k.unaryKernels(unaries)
		k.fusedKernels()
		k.fillKernel()
		k.compareKernels()
		k.selectKernels()
		k.rowKernels()
		k.softmaxKernels()
	}
}

// neonIntegers is integerKernels: there is no product of lanes of 64 bits.
func (k Kernels) neonIntegers() {
	signed, small := k.el.goT[0] != 'u', k.el.size == 4
	sign := "u"
	if signed {
		sign = "s"
	}
	plain := func(mn string) func(b *Block, x, y V) V {
		return func(b *Block, x, y V) V { return b.arm(mn, "", x, y) }
	}
	ops := []binaryOp{
		{"add", 4, plain("add")},
		{"sub", 4, plain("sub")},
		{"and", 4, (*Block).And},
		{"or", 4, (*Block).Or},
		{"xor", 4, (*Block).Xor},
		{"shiftLeft", 2, func(b *Block, x, y V) V { return b.neonShift("ushl", x, y, false) }},
		{"shiftRightLogical", 2, func(b *Block, x, y V) V { return b.neonShift("ushl", x, y, true) }},
		{"shiftRight", 2, func(b *Block, x, y V) V { return b.neonShift(sign+"shl", x, y, true) }},
	}
	if small {
		ops = append(ops, binaryOp{"mul", 2, plain("mul")}, binaryOp{"max", 2, plain(sign + "max")},
			binaryOp{"min", 2, plain(sign + "min")})
	} else {
		ops = append(ops,
			binaryOp{"max", 2, func(b *Block, x, y V) V { return b.Blend(b.neonLanes("gt", x, y, signed), x, y) }},
			binaryOp{"min", 2, func(b *Block, x, y V) V { return b.Blend(b.neonLanes("gt", x, y, signed), y, x) }})
	}
	k.binaryKernels(ops)
	un := []unaryOp{
		{"neg", 2, func(b *Block, x V) V { return b.arm("neg", "", x) }},
		{"not", 2, (*Block).Not},
	}
	if signed {
		un = append(un, unaryOp{"abs", 2, func(b *Block, x V) V { return b.arm("abs", "", x) }})
	}
	k.unaryKernels(un)
}

// neonShift shifts by the lanes of y, which are counts without signs. Instructions look at the low byte of a count,
// which has a sign; a count of the width moves all bits out.
func (b *Block) neonShift(mn string, x, y V, right bool) V {
	width := b.Bits(uint64(8 * b.el.size))
	if b.el.size == 4 {
		y = b.arm("umin", "", y, width)
	} else {
		y = b.Blend(b.arm("cmhi", "", y, width), width, y)
	}
	if right {
		y = b.arm("neg", "", y)
	}
	return b.arm(mn, "", x, y)
}

// neonLanes compares integers.
func (b *Block) neonLanes(name string, x, y V, signed bool) V {
	if name[0] == 'l' {
		x, y = y, x
	}
	gt, ge := "cmhi", "cmhs"
	if signed {
		gt, ge = "cmgt", "cmge"
	}
	switch name {
	case "eq":
		return b.arm("cmeq", "", x, y)
	case "ne":
		return b.Not(b.arm("cmeq", "", x, y))
	case "gt", "lt":
		return b.arm(gt, "", x, y)
	}
	return b.arm(ge, "", x, y)
}

// neonStoreBools is storeBools.
func (s *Step) neonStoreBools(m V) {
	text, store := "xtn v{t}.4h, v{0}.4s\n", "FMOVS F{t}, "
	if s.el.size == 8 {
		text, store = "xtn v{t}.2s, v{0}.2d\nxtn v{t}.4h, v{t}.4s\n", "FMOVS F{t}, R5\nMOVH R5, "
	}
	if s.tail != none {
		store = "FMOVS F{t}, R5\nMOVB R5, "
	}
	text += "xtn v{t}.8b, v{t}.8h\nand v{t}.16b, v{t}.16b, v{1}.16b\n"
	s.tmplStore(text+store+s.Mem(0), none, m, s.bitsBy(0x01010101, 0x0101010101010101))
}

// neonLoadBools is loadBools.
func (s *Step) neonLoadBools(i int) V {
	load, wider := "FMOVS "+s.Mem(i)+", F{d}\n", "uxtl v{d}.8h, v{d}.8b\nuxtl v{d}.4s, v{d}.4h\n"
	if s.el.size == 8 {
		load = "MOVHU " + s.Mem(i) + ", R5\nFMOVS R5, F{d}\n"
		wider += "uxtl v{d}.2d, v{d}.2s\n"
	}
	if s.tail != none {
		load = "MOVBU " + s.Mem(i) + ", R5\nFMOVS R5, F{d}\n"
	}
	lanes := s.el.lanesOf(neon)
	return s.tmpl(load+wider+strings.ReplaceAll("cmtst v{d}.T, v{d}.T, v{d}.T", "T", lanes), none)
}

// neonPhilox is philoxKernel: lanes hold the same word of four counters, which are written as 16 words.
func (g *File) neonPhilox() {
	f := g.fn("philoxNEON", neon, u32, "dst *uint32", "blocks int", "keys *uint64", "low uint64", "high uint64")
	t := neonTile{f, neonVecs{u32, 1, 4}, 4}
	f.load("R0", "R1", "R2", "R3", "R4")
	// Counters 0 and 1 in v16, 2 and 3 in v17, their step in v18, multipliers in v19 and v20.
	const spare = 21
	for i := range 4 {
		f.Text("ADD $%d, R3, R5\nFMOVD R5, F%d", i, spare)
		f.Text("mov v%d.d[%d], v%d.d[0]", 16+i/2, i%2, spare)
	}
	all := func(r int, value string, lanes string) {
		f.Text("MOVD %s, R5\nFMOVD R5, F%d", value, r)
		f.Text("dup v%d.%s, v%d.%s[0]", r, lanes, r, lanes[len(lanes)-1:])
	}
	all(18, "$4", "2d")
	all(19, "$0xD2511F53", "4s")
	all(20, "$0xCD9E8D57", "4s")
	f.Text("loop:")
	t.v("uzp1", 0, 16, 17)
	t.v("uzp2", 1, 16, 17)
	all(2, "R4", "4s")
	f.Text("LSR $32, R4, R6")
	all(3, "R6", "4s")
	for r := range 10 {
		product := func(x, m, lo, hi int) {
			f.Text("umull v6.2d, v%[1]d.2s, v%[2]d.2s\numull2 v7.2d, v%[1]d.4s, v%[2]d.4s", x, m)
			t.v("uzp1", lo, 6, 7)
			t.v("uzp2", hi, 6, 7)
		}
		mix := func(hi, x, key int) {
			f.Text("FMOVS %d(R2), F%d", 8*key, spare)
			t.everywhere(spare, spare)
			t.v("eor", x, x, hi)
			t.v("eor", x, x, spare)
		}
		product(0, 19, 22, 23)
		product(2, 20, 24, 25)
		mix(25, 1, 2*r)
		mix(23, 3, 2*r+1)
		t.v("mov", 0, 1)
		t.v("mov", 2, 3)
		t.v("mov", 1, 24)
		t.v("mov", 3, 22)
	}
	for i, r := range t.turn() {
		f.Text("FMOVQ F%d, %d(R0)", r, 16*i)
	}
	f.Text("add v16.2d, v16.2d, v18.2d\nadd v17.2d, v17.2d, v18.2d")
	f.Text("ADD $64, R0\nSUBS $4, R1, R1\nBNE loop\nRET")
}

// neonTransposes is the transpose of a strip of whole blocks (see transposeKernels).
func (g *File) neonTransposes(el elem) {
	n := 16 / el.size
	f := g.fn(fmt.Sprintf("transpose%dNEON", 8*el.size), neon, el, "dst *"+el.goT, "a *"+el.goT, "count int",
		"dstStride int", "aStride int")
	t := neonTile{f, neonVecs{el, 1, n}, n}
	f.load("R0", "R1", "R2", "R3", "R4")
	f.Text("loop:\nMOVD R1, R5")
	for i := range n {
		f.Text("FMOVQ (R5), F%d\nADD R4, R5", i)
	}
	for _, r := range t.turn() {
		f.Text("FMOVQ F%d, (R0)\nADD R3, R0", r)
	}
	f.Text("ADD $16, R1\nSUBS $1, R2, R2\nBNE loop\nRET")
}

// neonConversions makes conversions between types of 4 and 8 bytes, and from bytes that are 0 or 1.
func (g *File) neonConversions() {
	for _, c := range []conversion{
		{i32, f32, "scvtf v{d}.4s, v{t}.4s"}, {f32, i32, "fcvtzs v{d}.4s, v{t}.4s"},
		{u32, f32, "ucvtf v{d}.4s, v{t}.4s"},
		{i64, f64, "scvtf v{d}.2d, v{t}.2d"}, {f64, i64, "fcvtzs v{d}.2d, v{t}.2d"},
		{u64, f64, "ucvtf v{d}.2d, v{t}.2d"},
		{f32, f64, "fcvtl v{d}.2d, v{t}.2s"}, {f64, f32, "fcvtn v{d}.2s, v{t}.2d"},
		{i32, f64, "sxtl v{t}.2d, v{t}.2s\nscvtf v{d}.2d, v{t}.2d"},
		{u32, f64, "uxtl v{t}.2d, v{t}.2s\nucvtf v{d}.2d, v{t}.2d"},
		{i32, i64, "sxtl v{d}.2d, v{t}.2s"}, {i64, i32, "xtn v{d}.2s, v{t}.2d"},
		{u32, u64, "uxtl v{d}.2d, v{t}.2s"}, {u64, u32, "xtn v{d}.2s, v{t}.2d"},
	} {
		wide := c.from
		if c.to.size > c.from.size {
			wide = c.to
		}
		k := g.of(neon, wide)
		k.suffix = c.from.name + c.to.name + "NEON"
		function := k.walk("convert", "dst:"+c.to.goT+" a:"+c.from.goT, "", 1, func(s *Step) {
			mov := func(el elem) string {
				bytes := el.size * s.lanes()
				if s.tail != none {
					bytes = el.size
				}
				return map[int]string{4: "FMOVS", 8: "FMOVD", 16: "FMOVQ"}[bytes]
			}
			v := s.tmpl(mov(c.from)+" "+s.Mem(1)+", F{t}\n"+c.text, none)
			s.tmplStore(mov(c.to)+" F{0}, "+s.Mem(0), none, v)
		})
		g.fill("ConversionsNEON()", "setConversion[%s, %s](%s)", c.to.goT, c.from.goT, function)
	}
	for _, el := range []elem{f32, f64, i32} {
		name := g.of(neon, el).walk("convertBool", "dst a:uint8", "", 1, func(s *Step) {
			one := s.Bits(1)
			if el != i32 {
				one = s.C(1)
			}
			s.Store(s.And(s.loadBools(1), one), s.Mem(0))
		})
		g.fill("ConversionsNEON()", "setFromBool(%s)", name)
	}
}
