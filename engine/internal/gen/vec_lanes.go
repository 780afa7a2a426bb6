package main

import "fmt"

// compareKernels makes comparisons to bytes 0 or 1. AVX2 kernels take whole vectors; their wrappers do the rest.
func (k Kernels) compareKernels() {
	float, signed := k.el.goT[0] == 'f', k.el.goT[0] != 'u'
	if k.is == avx2 && !float {
		return
	}
	for _, c := range []struct {
		name    string
		fp, int int
	}{{"eq", 0, 0}, {"ne", 4, 4}, {"lt", 17, 1}, {"le", 18, 2}, {"gt", 30, 6}, {"ge", 29, 5}} {
		cmp := func(s *Step, x, y V) V {
			mn := "VPCMPU" + s.ip()
			switch {
			case float:
				return s.Cmp(c.fp, x, y)
			case k.is.neon():
				return s.neonLanes(c.name, x, y, signed)
			case signed:
				mn = "VPCMP" + s.ip()
			}
			return s.emit(ins{mn: mn, imm: fmt.Sprintf("$%d", c.int), srcs: []V{y, x}, k: none, dst: s.newMask()})
		}
		form := func(form, function string) {
			place := fmt.Sprintf("t.Compare%s[%s]", form, title(c.name))
			k.fill("%s = compare%s(%d, %s, %s)", place, form, k.step(), function, place)
		}
		form("", k.walk(c.name, "dst:uint8 a b", "", 1, func(s *Step) { s.storeBools(cmp(s, s.In(1), s.In(2))) }))
		form("VS", k.walk(c.name+"VS", "dst:uint8 a", "s", 1, func(s *Step) { s.storeBools(cmp(s, s.In(1), s.S[0])) }))
	}
	if !float {
		return
	}
	test := func(name string, f func(b *Block, x V) V) {
		function := k.walk(name, "dst:uint8 a", "", 1, func(s *Step) { s.storeBools(f(s.Block, s.In(1))) })
		k.fill("t.%[1]s = test(%[2]d, %[3]s, t.%[1]s)", title(name), k.step(), function)
	}
	test("isFinite", func(b *Block, x V) V { return b.Cmp(eqOQ, b.Sub(x, x), b.C(0)) })
	test("isNaN", func(b *Block, x V) V { return b.Cmp(unordQ, x, x) })
}

// step is how many elements a kernel that mixes bytes with wider lanes takes at a time, or 1 if it does any number.
func (k Kernels) step() int {
	if k.is != avx2 {
		return 1
	}
	return k.is.width / k.el.size
}

// storeBools writes the lanes of a comparison as bytes through pointer 0.
func (s *Step) storeBools(m V) {
	if s.isa.neon() {
		s.neonStoreBools(m)
		return
	}
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
	if s.isa.neon() {
		return s.neonLoadBools(i)
	}
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
func (k Kernels) selectKernels() {
	for _, form := range []struct {
		name, ptrs, scalars string
		operands            func(s *Step) (x, y V)
	}{
		{"", "dst m:uint8 a b", "", func(s *Step) (x, y V) { return s.In(2), s.In(3) }},
		{"VS", "dst m:uint8 a", "s", func(s *Step) (x, y V) { return s.In(2), s.S[0] }},
		{"SV", "dst m:uint8 a", "s", func(s *Step) (x, y V) { return s.S[0], s.In(2) }},
		{"SS", "dst m:uint8", "s t", func(s *Step) (x, y V) { return s.S[0], s.S[1] }},
	} {
		function := k.walk("select"+form.name, form.ptrs, form.scalars, 1, func(s *Step) {
			m := s.loadBools(1)
			x, y := form.operands(s)
			s.Store(s.Blend(m, x, y), s.Mem(0))
		})
		k.fill("t.Select%[1]s = selector%[1]s[%[2]s](%[3]d, %[4]s)", form.name, k.el.goT, k.step(), function)
	}
}
