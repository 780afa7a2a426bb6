package main

import "strings"

// conversion is one pair of element types with a vector instruction.
type conversion struct {
	from, to elem
	text     string // from memory M to register {d}, for as many lanes as fit 64 bytes of the wider type
}

// convertKernels makes conversions for AVX-512 (of whole vectors with masks) between types of 4 and 8 bytes.
func (g *File) convertKernels() {
	list := []conversion{
		{i32, f32, "VCVTDQ2PS"}, {f32, i32, "VCVTTPS2DQ"}, {u32, f32, "VCVTUDQ2PS"},
		{i64, f64, "VCVTQQ2PD"}, {f64, i64, "VCVTTPD2QQ"}, {u64, f64, "VCVTUQQ2PD"},
		{f32, f64, "VCVTPS2PD"}, {f64, f32, "VCVTPD2PS"},
		{i32, f64, "VCVTDQ2PD"}, {f64, i32, "VCVTTPD2DQ"}, {u32, f64, "VCVTUDQ2PD"},
		{i64, f32, "VCVTQQ2PS"}, {f32, i64, "VCVTTPS2QQ"}, {u64, f32, "VCVTUQQ2PS"},
		{i32, i64, "VPMOVSXDQ"}, {i64, i32, "VPMOVQD"}, {u32, u64, "VPMOVZXDQ"}, {u64, u32, "VPMOVQD"},
	}
	for _, c := range list {
		wide := c.from
		if c.to.size > c.from.size {
			wide = c.to
		}
		name := "convert" + c.from.name + c.to.name + "AVX512"
		sh := shape{ptrs: []arg{{"dst", c.to}, {"a", c.from}}, unroll: 1}
		g.walk(name, avx512, wide, 64/wide.size, sh, func(s *Step) {
			half := func(size int) string {
				if size < wide.size {
					return "Y"
				}
				return "Z"
			}
			load := map[int]string{4: "VMOVUPS", 8: "VMOVUPD"}
			src, dst := half(c.from.size), half(c.to.size)
			k, z := none, load[c.from.size]+" "+s.Mem(1)+", "
			store := load[c.to.size] + " " + dst + "{0}, "
			if s.tail != none {
				k, z = s.tail, load[c.from.size]+".Z "+s.Mem(1)+", K{k}, "
				store += "K{k}, "
			}
			v := s.tmpl(z+src+"{t}\n"+c.text+" "+src+"{t}, "+dst+"{d}", k)
			s.tmplStore(store+s.Mem(0), k, v)
		})
		g.fill("ConversionsAVX512()", "setConversion[%s, %s](%s)", c.to.goT, c.from.goT, name)
	}
	for _, el := range []elem{f32, f64, i32} {
		name := "convertBool" + el.name + "AVX512"
		sh := shape{ptrs: []arg{{"dst", el}, {"a", u8}}, unroll: 1}
		g.walk(name, avx512, el, 64/el.size, sh, func(s *Step) {
			one := s.Bits(1)
			if el == f32 || el == f64 {
				one = s.C(1)
			}
			s.Store(s.Blend(s.loadBools(1), one, s.Bits(0)), s.Mem(0))
		})
		g.fill("ConversionsAVX512()", "setFromBool(%s)", name)
	}
}

// boolKernels makes logic on bytes that are 0 or 1.
func (g *File) boolKernels() {
	ptrs := []arg{{"dst", u8}, {"a", u8}, {"b", u8}}
	for _, op := range []string{"And", "Or", "Xor"} {
		g.walk("logical"+op+"AVX512", avx512, u8, 64, shape{ptrs: ptrs, unroll: 2}, func(s *Step) {
			x, y := s.In(1), s.In(2)
			s.Store(s.tmpl("VP"+strings.ToUpper(op)+"D Z{0}, Z{1}, Z{d}", none, x, y), s.Mem(0))
		})
	}
	g.walk("logicalNotAVX512", avx512, u8, 64, shape{ptrs: ptrs[:2], unroll: 2}, func(s *Step) {
		s.Store(s.tmpl("VPXORD Z{0}, Z{1}, Z{d}", none, s.In(1), s.Bits(0x01)), s.Mem(0))
	})
	g.walk("selectBoolAVX512", avx512, u8, 64, shape{ptrs: []arg{{"dst", u8}, {"m", u8}, {"a", u8}, {"b", u8}}, unroll: 1}, func(s *Step) {
		m := s.loadBools(1)
		s.Store(s.tmpl("VPBLENDMB Z{0}, Z{1}, K{k}, Z{d}", m, s.In(2), s.In(3)), s.Mem(0))
	})
}
