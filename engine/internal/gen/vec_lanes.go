package main

import "fmt"

// compareKernels makes comparisons to bytes 0 or 1. AVX2 kernels take whole vectors; their wrappers do the rest.
func (g *File) compareKernels(is isa, el elem) {
	if is.width != 64 && el.goT[0] != 'f' {
		return
	}
	lanes := is.width / el.size
	t := table(is, el)
	three := []arg{{"dst", u8}, {"a", el}, {"b", el}}
	type op struct {
		name    string
		fp, int int
	}
	for _, c := range []op{{"eq", 0, 0}, {"ne", 4, 4}, {"lt", 17, 1}, {"le", 18, 2}, {"gt", 30, 6}, {"ge", 29, 5}} {
		cmp := func(s *Step, x, y V) V {
			if el.goT[0] == 'f' {
				return s.Cmp(c.fp, x, y)
			}
			u := ""
			if el.goT[0] == 'u' {
				u = "U"
			}
			return s.emit(ins{mn: "VPCMP" + u + s.ip(), imm: fmt.Sprintf("$%d", c.int), srcs: []V{y, x}, k: none, dst: s.newMask()})
		}
		x := el.name + is.name
		whole := is.width != 64
		g.walk(c.name+x, is, el, lanes, shape{ptrs: three, unroll: 1, whole: whole}, func(s *Step) {
			s.storeBools(cmp(s, s.In(1), s.In(2)))
		})
		g.walk(c.name+"VS"+x, is, el, lanes, shape{ptrs: three[:2], scalars: []arg{{"s", el}}, unroll: 1, whole: whole}, func(s *Step) {
			s.storeBools(cmp(s, s.In(1), s.S[0]))
		})
		g.fill(t, "t.Compare[%s] = compare(%d, %s, t.Compare[%s])", title(c.name), step(is, el), c.name+x, title(c.name))
		g.fill(t, "t.CompareVS[%s] = compareVS(%d, %s, t.CompareVS[%s])", title(c.name), step(is, el), c.name+"VS"+x, title(c.name))
	}
	if el.goT[0] != 'f' {
		return
	}
	tests := []struct {
		name string
		f    func(b *Block, x V) V
	}{
		{"isFinite", func(b *Block, x V) V { return b.Cmp(eqOQ, b.Sub(x, x), b.C(0)) }},
		{"isNaN", func(b *Block, x V) V { return b.Cmp(unordQ, x, x) }},
	}
	for _, c := range tests {
		g.walk(c.name+el.name+is.name, is, el, lanes, shape{ptrs: three[:2], unroll: 1, whole: is.width != 64}, func(s *Step) {
			s.storeBools(c.f(s.Block, s.In(1)))
		})
		g.fill(t, "t.%s = test(%d, %s, t.%s)", title(c.name), step(is, el), c.name+el.name+is.name, title(c.name))
	}
}

// step is how many elements a kernel takes at a time, or 1 if it does any number.
func step(is isa, el elem) int {
	if is.width == 64 {
		return 1
	}
	return is.width / el.size
}

// storeBools writes the lanes of a comparison as bytes through pointer 0.
func (s *Step) storeBools(m V) {
	out := s.Mem(0)
	if s.wide() {
		d := s.tmpl("VMOVDQU8.Z X{0}, K{k}, X{d}", m, s.bitsBy(0x01010101, 0x0101010101010101))
		switch {
		case s.tail != none:
			s.tmplStore("VMOVDQU8 X{0}, K{k}, "+out, s.tail, d)
		case s.el.size == 4:
			s.tmplStore("VMOVDQU X{0}, "+out, none, d)
		default:
			s.tmplStore("VMOVQ X{0}, "+out, none, d)
		}
		return
	}
	one := s.bitsBy(0x01010101, 0x0101010101010101)
	pack := "VEXTRACTF128 $1, Y{0}, X{t}\nVPACKSSDW X{t}, X{0}, X{t}\nVPACKSSWB X{t}, X{t}, X{t}\nVPAND X{1}, X{t}, X{t}\n"
	if s.el.size == 4 {
		s.tmplStore(pack+"VMOVQ X{t}, "+out, none, m, one)
		return
	}
	// Four lanes of 64 bits: to words as pairs, then one byte of each pair.
	pack = "VEXTRACTF128 $1, Y{0}, X{t}\nVSHUFPS $0x88, X{t}, X{0}, X{t}\nVPACKSSDW X{t}, X{t}, X{t}\n" +
		"VPACKSSWB X{t}, X{t}, X{t}\nVPAND X{1}, X{t}, X{t}\n"
	s.tmplStore(pack+"VMOVD X{t}, "+out, none, m, one)
}

// loadBools reads bytes as a mask for Blend through pointer i.
func (s *Step) loadBools(i int) V {
	mem := s.Mem(i)
	if s.wide() {
		m := s.newMask()
		load, x := "VMOVDQU "+mem+", X{t}", "X"
		switch {
		case s.el.size == 8:
			load = "VMOVQ " + mem + ", X{t}"
		case s.el.size == 1:
			load, x = "VMOVDQU8 "+mem+", Z{t}", "Z"
		}
		k := none
		if s.tail != none {
			load, k = "VMOVDQU8.Z "+mem+", K{k}, "+x+"{t}", s.tail
		}
		return s.emit(ins{tmpl: load + "\nVPTESTMB " + x + "{t}, " + x + "{t}, K{d}", k: k, dst: m})
	}
	if s.el.size == 8 {
		return s.tmpl("VPMOVZXBQ "+mem+", Y{d}\nVPSLLQ $63, Y{d}, Y{d}", none)
	}
	return s.tmpl("VPMOVZXBD "+mem+", Y{d}\nVPSLLD $31, Y{d}, Y{d}", none)
}

// selectKernels makes mask ? a : b with either operand a scalar.
func (g *File) selectKernels(is isa, el elem) {
	lanes := is.width / el.size
	x := el.name + is.name
	t := table(is, el)
	whole := is.width != 64
	ptrs := []arg{{"dst", el}, {"m", u8}, {"a", el}, {"b", el}}
	one, two := []arg{{"s", el}}, []arg{{"s", el}, {"t", el}}
	g.walk("select"+x, is, el, lanes, shape{ptrs: ptrs, unroll: 1, whole: whole}, func(s *Step) {
		s.Store(s.Blend(s.loadBools(1), s.In(2), s.In(3)), s.Mem(0))
	})
	g.walk("selectVS"+x, is, el, lanes, shape{ptrs: ptrs[:3], scalars: one, unroll: 1, whole: whole}, func(s *Step) {
		s.Store(s.Blend(s.loadBools(1), s.In(2), s.S[0]), s.Mem(0))
	})
	g.walk("selectSV"+x, is, el, lanes, shape{ptrs: ptrs[:3], scalars: one, unroll: 1, whole: whole}, func(s *Step) {
		s.Store(s.Blend(s.loadBools(1), s.S[0], s.In(2)), s.Mem(0))
	})
	g.walk("selectSS"+x, is, el, lanes, shape{ptrs: ptrs[:2], scalars: two, unroll: 1, whole: whole}, func(s *Step) {
		s.Store(s.Blend(s.loadBools(1), s.S[0], s.S[1]), s.Mem(0))
	})
	n := step(is, el)
	g.fill(t, "t.Select = selector[%s](%d, select%s)", el.goT, n, x)
	g.fill(t, "t.SelectVS = selectorVS[%s](%d, selectVS%s)", el.goT, n, x)
	g.fill(t, "t.SelectSV = selectorSV[%s](%d, selectSV%s)", el.goT, n, x)
	g.fill(t, "t.SelectSS = selectorSS[%s](%d, selectSS%s)", el.goT, n, x)
}
