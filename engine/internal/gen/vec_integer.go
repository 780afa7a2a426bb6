package main

// integerKernels makes the operations on integers that have an instruction.
func (k Kernels) integerKernels() {
	el, wide := k.el, k.wide()
	plain := func(mn string) func(b *Block, x, y V) V {
		return func(b *Block, x, y V) V { return b.op(mn, y, x) }
	}
	d, sign := "D", "S"
	if el.size == 8 {
		d = "Q"
	}
	if el.goT[0] == 'u' {
		sign = "U"
	}
	ops := []binaryOp{
		{"add", 4, plain("VPADD" + d)},
		{"sub", 4, plain("VPSUB" + d)},
		{"and", 4, (*Block).And},
		{"or", 4, (*Block).Or},
		{"xor", 4, (*Block).Xor},
		{"shiftLeft", 2, plain("VPSLLV" + d)},
		{"shiftRightLogical", 2, plain("VPSRLV" + d)},
	}
	if wide || el.size == 4 {
		ops = append(ops,
			binaryOp{"mul", 2, plain("VPMULL" + d)},
			binaryOp{"max", 2, plain("VPMAX" + sign + d)},
			binaryOp{"min", 2, plain("VPMIN" + sign + d)})
	}
	switch {
	case sign == "U":
		ops = append(ops, binaryOp{"shiftRight", 2, plain("VPSRLV" + d)})
	case wide || el.size == 4:
		ops = append(ops, binaryOp{"shiftRight", 2, plain("VPSRAV" + d)})
	}
	k.binaryKernels(ops)
	un := []unaryOp{
		{"neg", 2, func(b *Block, x V) V { return b.ISub(b.Bits(0), x) }},
		{"not", 2, func(b *Block, x V) V { return b.Xor(x, b.bitsBy(1<<32-1, 1<<64-1)) }},
	}
	if sign == "S" && (wide || el.size == 4) {
		un = append(un, unaryOp{"abs", 2, func(b *Block, x V) V { return b.op("VPABS"+d, x) }})
	}
	k.unaryKernels(un)
}
