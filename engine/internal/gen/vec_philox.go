package main

import "fmt"

// philoxKernel makes Philox 4x32-10 (Salmon et al. 2011): a 64-bit lane holds one 32-bit word of one counter, so that
// VPMULUDQ needs no shuffles; what is left in the upper half of a lane is never read. keys holds the ten pairs of round
// keys, each in a 64-bit word. Each turn writes the blocks of 8 (or 4) counters: 32 (or 16) words.
func (g *File) philoxKernel(is isa) {
	n := is.width / 8
	f := g.fn("philox"+is.name, is, u64, "dst *uint32", "blocks int", "keys *uint64", "low uint64", "high uint64")
	f.load("DI", "CX", "SI")
	low, high := f.Pin(), f.Pin()
	f.Text("VPBROADCASTQ %s, %s\nVPBROADCASTQ %s, %s", f.at("low"), f.Reg(low), f.at("high"), f.Reg(high))
	f.Text("VPADDQ philoxlanes<>(SB), %s, %s", f.Reg(low), f.Reg(low))
	f.Text("constants")
	f.Text("loop:")
	f.Block(func(b *Block) {
		c := [4]V{low, b.Srl(low, 32), high, b.Srl(high, 32)}
		m0, m1 := b.Bits(0xD2511F53), b.Bits(0xCD9E8D57)
		for r := range 10 {
			p0, p1 := b.op("VPMULUDQ", c[0], m0), b.op("VPMULUDQ", c[2], m1)
			mix := func(p, x V, key int) V {
				hi := b.Srl(p, 32)
				mem := fmt.Sprintf("%d(SI)", key*8)
				if b.wide() {
					return b.tmpl("VMOVDQA64 Z{0}, Z{d}\nVPTERNLOGQ.BCST $0x96, "+mem+", Z{1}, Z{d}", none, hi, x)
				}
				return b.tmpl("VPBROADCASTQ "+mem+", Y{t}\nVPXOR Y{0}, Y{1}, Y{d}\nVPXOR Y{t}, Y{d}, Y{d}", none, hi, x)
			}
			c = [4]V{mix(p1, c[1], 2*r), p1, mix(p0, c[3], 2*r+1), p0}
		}
		join := func(lo, hi V) V { // 64-bit words of two outputs
			m := b.Bits(1<<32 - 1)
			return b.Or(b.And(lo, m), b.Sll(hi, 32))
		}
		x, y := join(c[0], c[1]), join(c[2], c[3])
		l, h := b.op("VPUNPCKLQDQ", y, x), b.op("VPUNPCKHQDQ", y, x) // blocks 0 2 4 6 and 1 3 5 7
		if b.wide() {
			for i, idx := range []string{"philoxfirst", "philoxlast"} {
				v := b.tmpl("VMOVDQU64 "+idx+"<>(SB), Z{d}\nVPERMI2Q Z{1}, Z{0}, Z{d}", none, l, h)
				b.tmplStore(fmt.Sprintf("VMOVDQU64 Z{0}, %d(DI)", i*64), none, v)
			}
		} else {
			b.tmplStore("VPERM2I128 $0x20, Y{1}, Y{0}, Y{t}\nVMOVDQU Y{t}, (DI)\nVPERM2I128 $0x31, Y{1}, Y{0}, Y{t}\nVMOVDQU Y{t}, 32(DI)", none, l, h)
		}
		b.Assign(low, b.IAdd(low, b.Bits(uint64(n))))
	})
	f.Text("ADDQ $%d, DI\nSUBQ $%d, CX\nJNZ loop\nRETURN", 2*is.width, n)
}

// philoxData is the tables of the kernel.
func philoxData() string {
	// Of VPERMI2Q: even blocks are 0 to 7, odd ones 8 to 15.
	return words("philoxlanes", 0, 1, 2, 3, 4, 5, 6, 7) + words("philoxfirst", 0, 1, 8, 9, 2, 3, 10, 11) +
		words("philoxlast", 4, 5, 12, 13, 6, 7, 14, 15)
}
