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
		k := g.of(avx512, wide)
		k.suffix = c.from.name + c.to.name + "AVX512"
		function := k.walk("convert", "dst:"+c.to.goT+" a:"+c.from.goT, "", 1, func(s *Step) {
			half := func(el elem) string {
				if el.size < wide.size {
					return "Y"
				}
				return "Z"
			}
			load, store := "VMOVUP"+c.from.letter, "VMOVUP"+c.to.letter
			src, dst := half(c.from), half(c.to)
			z := ""
			if s.tail != none {
				load, z = load+".Z", "K{k}, "
			}
			v := s.tmpl(load+" "+s.Mem(1)+", "+z+src+"{t}\n"+c.text+" "+src+"{t}, "+dst+"{d}", s.tail)
			s.tmplStore(store+" "+dst+"{0}, "+z+s.Mem(0), s.tail, v)
		})
		g.fill("ConversionsAVX512()", "setConversion[%s, %s](%s)", c.to.goT, c.from.goT, function)
	}
	for _, el := range []elem{f32, f64, i32} {
		name := g.of(avx512, el).walk("convertBool", "dst a:uint8", "", 1, func(s *Step) {
			one := s.Bits(1)
			if el != i32 {
				one = s.C(1)
			}
			s.Store(s.Blend(s.loadBools(1), one, s.Bits(0)), s.Mem(0))
		})
		g.fill("ConversionsAVX512()", "setFromBool(%s)", name)
	}
}

// boolKernels makes logic on bytes that are 0 or 1.
func (g *File) boolKernels() {
	k := g.of(avx512, elem{"Bool", "uint8", 1, ""})
	for _, op := range []string{"and", "or", "xor"} {
		k.walk(op, "dst a b", "", 2, func(s *Step) {
			x, y := s.In(1), s.In(2)
			s.Store(s.tmpl("VP"+strings.ToUpper(op)+"D Z{0}, Z{1}, Z{d}", none, x, y), s.Mem(0))
		})
	}
	k.walk("not", "dst a", "", 2, func(s *Step) {
		s.Store(s.tmpl("VPXORD Z{0}, Z{1}, Z{d}", none, s.In(1), s.Bits(0x01)), s.Mem(0))
	})
	k.walk("select", "dst m a b", "", 1, func(s *Step) {
		m := s.loadBools(1)
		s.Store(s.tmpl("VPBLENDMB Z{0}, Z{1}, K{k}, Z{d}", m, s.In(2), s.In(3)), s.Mem(0))
	})
}
