package main

import "strings"

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// maxMin is the maximum or minimum with NaN winning and -0 < +0.
func (b *Block) maxMin(isMax bool, x, y V) V {
	if b.isa.neon() {
		if isMax {
			return b.RawMax(x, y)
		}
		return b.RawMin(x, y)
	}
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

// binaryKernels makes the vector-vector, vector-scalar and scalar-vector forms of operations.
func (k Kernels) binaryKernels(ops []binaryOp) {
	for _, op := range ops {
		form := func(form, function string) {
			k.install("Binary"+form+"["+title(op.name)+"]", "binary"+form, function)
		}
		form("", k.walk(op.name, "dst a b", "", op.unroll, func(s *Step) {
			s.Store(op.f(s.Block, s.In(1), s.In(2)), s.Mem(0))
		}))
		vs := k.walk(op.name+"VS", "dst a", "s", op.unroll, func(s *Step) {
			s.Store(op.f(s.Block, s.In(1), s.S[0]), s.Mem(0))
		})
		form("VS", vs)
		switch op.name {
		case "sub", "div", "shiftLeft", "shiftRight", "shiftRightLogical":
			form("SV", k.walk(op.name+"SV", "dst a", "s", op.unroll, func(s *Step) {
				s.Store(op.f(s.Block, s.S[0], s.In(1)), s.Mem(0))
			}))
		default: // commutative
			form("SV", vs)
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

func (k Kernels) unaryKernels(ops []unaryOp) {
	for _, op := range ops {
		function := k.walk(op.name, "dst a", "", op.unroll, func(s *Step) {
			s.Store(op.f(s.Block, s.In(1)), s.Mem(0))
		})
		if op.name == "sin" || op.name == "cos" {
			k.fill("t.Unary[%s] = bounded(t, math.%s, %s)", title(op.name), title(op.name), function)
		} else {
			k.install("Unary["+title(op.name)+"]", "unary", function)
		}
	}
}

// fusedKernels makes sums of products.
func (k Kernels) fusedKernels() {
	k.fill("t.FMA = ternary(%s)", k.walk("fma", "dst a b c", "", 2, func(s *Step) {
		s.Store(s.FMA(s.In(1), s.In(2), s.In(3)), s.Mem(0))
	}))
	k.fill("t.AXPY = axpy(%s)", k.walk("axpy", "dst a b", "s", 4, func(s *Step) {
		s.Store(s.FMA(s.In(1), s.S[0], s.In(2)), s.Mem(0))
	}))
	k.fill("t.AXPBY = axpby(%s)", k.walk("axpby", "dst a b", "s t", 2, func(s *Step) {
		s.Store(s.FMA(s.In(1), s.S[0], s.Mul(s.In(2), s.S[1])), s.Mem(0))
	}))
	k.fill("t.Affine = affine(%s)", k.walk("affine", "dst a", "s t", 2, func(s *Step) {
		s.Store(s.FMA(s.In(1), s.S[0], s.S[1]), s.Mem(0))
	}))
}

func (k Kernels) fillKernel() {
	k.install("Fill", "filler", k.walk("fill", "dst", "s", 4, func(s *Step) { s.Store(s.S[0], s.Mem(0)) }))
}
