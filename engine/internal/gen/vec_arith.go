package main

import "strings"

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// table is the signature tail of a filler of the table of a lane type.
func table(is isa, el elem) string {
	return el.name + is.name + "(t *Table[" + el.goT + "])"
}

// maxMin is the maximum or minimum with NaN winning and -0 < +0.
func (b *Block) maxMin(isMax bool, x, y V) V {
	if !isMax {
		return b.Or(b.RawMin(x, y), b.RawMin(y, x))
	}
	p, q := b.RawMax(x, y), b.RawMax(y, x)
	if b.wide() {
		return b.Ternary(0xd4, p, q, b.signBit())
	}
	return b.Or(b.AndNot(b.Or(p, q), b.signBit()), b.And(p, q))
}

type binaryOp struct {
	name   string
	unroll int
	f      func(b *Block, x, y V) V
}

var binaries = []binaryOp{
	{"add", 4, (*Block).Add},
	{"sub", 4, (*Block).Sub},
	{"mul", 4, (*Block).Mul},
	{"div", 1, (*Block).Div},
	{"max", 2, func(b *Block, x, y V) V { return b.maxMin(true, x, y) }},
	{"min", 2, func(b *Block, x, y V) V { return b.maxMin(false, x, y) }},
}

// binaryKernels makes the vector-vector, vector-scalar and scalar-vector forms of an operation.
func (g *File) binaryKernels(is isa, el elem, ops []binaryOp) {
	lanes := is.width / el.size
	t := table(is, el)
	for _, op := range ops {
		n := op.name + el.name + is.name
		three := []arg{{"dst", el}, {"a", el}, {"b", el}}
		g.walk(n, is, el, lanes, shape{ptrs: three, unroll: op.unroll}, func(s *Step) {
			s.Store(op.f(s.Block, s.In(1), s.In(2)), s.Mem(0))
		})
		sc := shape{ptrs: three[:2], scalars: []arg{{"s", el}}, unroll: op.unroll}
		g.walk(op.name+"VS"+el.name+is.name, is, el, lanes, sc, func(s *Step) {
			s.Store(op.f(s.Block, s.In(1), s.S[0]), s.Mem(0))
		})
		g.fill(t, "t.Binary[%s] = binary[%s](%s)", title(op.name), el.goT, n)
		g.fill(t, "t.BinaryVS[%s] = binaryVS[%s](%sVS%s%s)", title(op.name), el.goT, op.name, el.name, is.name)
		switch op.name {
		case "sub", "div", "shiftLeft", "shiftRight", "shiftRightLogical":
			g.walk(op.name+"SV"+el.name+is.name, is, el, lanes, sc, func(s *Step) {
				s.Store(op.f(s.Block, s.S[0], s.In(1)), s.Mem(0))
			})
			g.fill(t, "t.BinarySV[%s] = binarySV[%s](%sSV%s%s)", title(op.name), el.goT, op.name, el.name, is.name)
		default: // commutative
			g.fill(t, "t.BinarySV[%s] = binarySV[%s](%sVS%s%s)", title(op.name), el.goT, op.name, el.name, is.name)
		}
	}
}

type unaryOp struct {
	name   string
	unroll int
	f      func(b *Block, x V) V
}

var unaries = []unaryOp{
	{"neg", 4, (*Block).Neg},
	{"abs", 4, (*Block).Abs},
	{"sign", 2, func(b *Block, x V) V {
		return b.Blend(b.Cmp(neqOQ, x, b.C(0)), b.CopySign(b.C(1), x), x)
	}},
	{"sqrt", 1, (*Block).Sqrt},
	{"rsqrt", 1, func(b *Block, x V) V { return b.Div(b.C(1), b.Sqrt(x)) }},
	{"reciprocal", 1, func(b *Block, x V) V { return b.Div(b.C(1), x) }},
	{"square", 4, func(b *Block, x V) V { return b.Mul(x, x) }},
	{"floor", 2, func(b *Block, x V) V { return b.Round(x, 1) }},
	{"ceil", 2, func(b *Block, x V) V { return b.Round(x, 2) }},
	{"round", 2, func(b *Block, x V) V { return b.Round(x, 0) }},
	{"exp", 1, (*Block).Exp},
	{"expm1", 1, (*Block).Expm1},
	{"log", 1, (*Block).Log},
	{"log1p", 1, (*Block).Log1p},
	{"tanh", 1, (*Block).Tanh},
	{"logistic", 1, (*Block).Logistic},
	{"erf", 1, (*Block).Erf},
	{"sin", 1, func(b *Block, x V) V { return b.sincos(x, 0) }},
	{"cos", 1, func(b *Block, x V) V { return b.sincos(x, 1) }},
}

func (g *File) unaryKernels(is isa, el elem, ops []unaryOp) {
	for _, op := range ops {
		n := op.name + el.name + is.name
		g.walk(n, is, el, is.width/el.size, shape{ptrs: []arg{{"dst", el}, {"a", el}}, unroll: op.unroll}, func(s *Step) {
			s.Store(op.f(s.Block, s.In(1)), s.Mem(0))
		})
		wrap := "unary"
		if op.name == "sin" || op.name == "cos" {
			wrap = "bounded(t, math." + title(op.name) + ", "
		} else {
			wrap += "[" + el.goT + "]("
		}
		g.fill(table(is, el), "t.Unary[%s] = %s%s)", title(op.name), wrap, n)
	}
}

// fusedKernels makes sums of products.
func (g *File) fusedKernels(is isa, el elem) {
	lanes := is.width / el.size
	t := table(is, el)
	s4 := []arg{{"dst", el}, {"a", el}, {"b", el}, {"c", el}}
	x := el.name + is.name
	g.walk("fma"+x, is, el, lanes, shape{ptrs: s4, unroll: 2}, func(s *Step) {
		s.Store(s.FMA(s.In(1), s.In(2), s.In(3)), s.Mem(0))
	})
	g.walk("axpy"+x, is, el, lanes, shape{ptrs: s4[:3], scalars: []arg{{"s", el}}, unroll: 4}, func(s *Step) {
		s.Store(s.FMA(s.In(1), s.S[0], s.In(2)), s.Mem(0))
	})
	two := []arg{{"s", el}, {"t", el}}
	g.walk("axpby"+x, is, el, lanes, shape{ptrs: s4[:3], scalars: two, unroll: 2}, func(s *Step) {
		s.Store(s.FMA(s.In(1), s.S[0], s.Mul(s.In(2), s.S[1])), s.Mem(0))
	})
	g.walk("affine"+x, is, el, lanes, shape{ptrs: s4[:2], scalars: two, unroll: 2}, func(s *Step) {
		s.Store(s.FMA(s.In(1), s.S[0], s.S[1]), s.Mem(0))
	})
	g.walk("fill"+x, is, el, lanes, shape{ptrs: s4[:1], scalars: two[:1], unroll: 4}, func(s *Step) {
		s.Store(s.S[0], s.Mem(0))
	})
	g.fill(t, "t.FMA = ternary(fma%s)", x)
	g.fill(t, "t.AXPY = axpy(axpy%s)", x)
	g.fill(t, "t.AXPBY = axpby(axpby%s)", x)
	g.fill(t, "t.Affine = affine(affine%s)", x)
	g.fill(t, "t.Fill = filler[%s](fill%s)", el.goT, x)
}
