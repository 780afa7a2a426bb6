package main

import (
	"fmt"
	"math"
)

// The functions below build a lane-wise function of x. Each keeps its error under 2 ulp, which the package's tests
// check; the identities are those of Cody and Waite (1980) and of fdlibm.

func (b *Block) ln2() (hi, lo V) {
	return b.by(float64(float32(0x1.62e4p-1)), 0x1.62e42feep-1), b.by(0x1.7f7d1cf79abcap-20, 0x1.a39ef35793c76p-33)
}

// reduce writes x = n*ln(2) + r with |r| <= ln(2)/2.
func (b *Block) reduce(x V) (n, r V) {
	n = b.Round(b.Mul(x, b.C(math.Log2E)), 0)
	hi, lo := b.ln2()
	r = b.FNMA(n, hi, x)
	return n, b.FNMA(n, lo, r)
}

func (b *Block) expPoly(r V) V {
	c := exp32
	if b.el.size == 8 {
		c = exp64
	}
	return b.Poly(r, c)
}

// Exp is e^x.
func (b *Block) Exp(x V) V {
	x = b.RawMin(b.by(104, 745), x) // NaN stays: the second operand wins
	x = b.RawMax(b.by(-150, -800), x)
	return b.expIn(x)
}

// ExpNonPositive is e^x of x <= 0.
func (b *Block) ExpNonPositive(x V) V { return b.expIn(b.RawMax(b.by(-150, -800), x)) }

func (b *Block) expIn(x V) V {
	n, r := b.reduce(x)
	p := b.FMA(b.Mul(r, r), b.expPoly(r), r)
	p = b.Add(p, b.C(1))
	return b.scale(p, n)
}

// scale is p * 2^n, rounded once where it is subnormal.
func (b *Block) scale(p, n V) V {
	if b.wide() {
		return b.op("VSCALEF"+b.fp(), n, p)
	}
	h := b.Round(b.Mul(n, b.C(0.5)), 0)
	return b.Mul(b.Mul(p, b.Pow2(h)), b.Pow2(b.Sub(n, h)))
}

// expParts writes e^x = 2^n (1 + (r + q)), where q includes the bits that r lost.
func (b *Block) expParts(x V) (n, r, q V) {
	n = b.Round(b.Mul(x, b.C(math.Log2E)), 0)
	hi, lo := b.ln2()
	h := b.FNMA(n, hi, x)
	r = b.FNMA(n, lo, h)
	lost := b.FNMA(n, lo, b.Sub(h, r))
	return n, r, b.FMA(b.Mul(r, r), b.expPoly(r), lost)
}

// Expm1 is e^x - 1: 2((2^(n-1) r + (2^(n-1) - 1/2)) + 2^(n-1) q).
func (b *Block) Expm1(x V) V {
	y := b.RawMin(b.by(88.8, 709.9), x)
	y = b.RawMax(b.by(-20, -42), y)
	n, r, q := b.expParts(y)
	s := b.Pow2(b.Sub(n, b.C(1)))
	z := b.FMA(s, r, b.Sub(s, b.C(0.5)))
	z = b.FMA(s, q, z)
	z = b.Add(z, z)
	tiny := b.Cmp(ltOS, b.Abs(x), b.by(0x1p-25, 0x1p-54))
	return b.Blend(tiny, x, z)
}

// split writes x > 0 as 2^e (1+f) with 1+f in [3/4, 3/2); e is a float.
func (b *Block) split(x V) (e, f V) {
	one := b.C(1)
	if b.wide() {
		m := b.opImm("VGETMANT"+b.fp(), 0x0f, x) // NaN for x < 0
		g := b.op("VGETEXP"+b.fp(), x)
		f = b.Sub(m, one)
		below := b.Cmp(ltOS, m, one)
		return b.Blend(below, b.Add(g, one), g), f
	}
	small := b.Cmp(ltOS, x, b.by(0x1p-126, 0x1p-1022))
	up := b.by(0x1p25, 0x1p54)
	x = b.Blend(small, b.Mul(x, up), x)
	man := b.mantissa()
	ix := b.ISub(x, b.C(0.75))
	top := b.And(ix, b.bitsBy(0xff800000, 0xfff0000000000000))
	m := b.ISub(x, top)
	f = b.Sub(m, one)
	k := b.Srl(b.IAdd(ix, b.C(1)), man) // the exponent plus its bias
	e = b.Sub(b.Or(k, b.C(math.Ldexp(1, man))), b.C(math.Ldexp(1, man)+b.bias()))
	e = b.Sub(e, b.And(small, b.by(25, 54)))
	return e, f
}

// logPoly is log(2^e (1+f)).
func (b *Block) logPoly(e, f V) V {
	hi, lo := b.ln2()
	if b.el.size == 8 {
		s := b.Div(f, b.Add(f, b.C(2)))
		z := b.Mul(s, s)
		half := b.Mul(b.Mul(f, f), b.C(0.5))
		r := b.FMA(b.Poly(z, log64), z, half)
		t := b.FMA(s, r, b.Mul(e, lo))
		t = b.Sub(b.Sub(half, t), f)
		return b.Sub(b.Mul(e, hi), t)
	}
	q := b.Mul(f, f)
	t := b.Mul(b.Mul(q, f), b.Poly(f, log32))
	t = b.FMA(e, lo, t)
	t = b.FNMA(q, b.C(0.5), t)
	t = b.Add(f, t)
	return b.FMA(e, hi, t)
}

// Log is the natural logarithm.
func (b *Block) Log(x V) V {
	e, f := b.split(x)
	y := b.logPoly(e, f)
	if b.wide() {
		return y // VGETEXP and VGETMANT make the special values
	}
	return b.logEnds(x, y)
}

// logEnds puts in the values of log(x) at zero, infinity, NaN and below zero.
func (b *Block) logEnds(x, y V) V {
	inf, nan := b.C(math.Inf(1)), b.bitsBy(0x7fc00000, 0x7ff8000000000000)
	y = b.Blend(b.Cmp(eqOQ, x, b.C(0)), b.C(math.Inf(-1)), y)
	y = b.Blend(b.Cmp(eqOQ, x, inf), inf, y)
	bad := b.Cmp(9, x, b.C(0)) // not >=, or NaN
	return b.Blend(bad, nan, y)
}

// Log1p is log(1+x): the rounding error of 1+x goes into f, where it is exact if e = 0.
func (b *Block) Log1p(x V) V {
	one := b.C(1)
	u := b.Add(x, one)
	v := b.Sub(u, x)
	lost := b.Add(b.Sub(x, b.Sub(u, v)), b.Sub(one, v))
	e, f := b.split(u)
	var s V
	if b.wide() {
		s = b.op("VSCALEF"+b.fp(), b.Neg(e), lost)
	} else {
		s = b.Mul(lost, b.Pow2(b.RawMax(b.Neg(e), b.by(-126, -1022))))
	}
	y := b.logEnds(u, b.logPoly(e, b.Add(f, s)))
	tiny := b.Cmp(ltOS, b.Abs(x), b.by(0x1p-25, 0x1p-54))
	return b.Blend(tiny, x, y)
}

// Tanh is x + x^3 P(x^2) near zero and 1 - 2/(e^2x + 1) elsewhere.
func (b *Block) Tanh(x V) V {
	a := b.Abs(x)
	z := b.Mul(a, a)
	c := tanh32
	if b.el.size == 8 {
		c = tanh64
	}
	small := b.FMA(b.Mul(z, a), b.Poly(z, c), a)
	e := b.expIn(b.RawMin(b.by(88, 709), b.Add(a, a)))
	one := b.C(1)
	large := b.Sub(one, b.Div(b.C(2), b.Add(e, one)))
	y := b.Blend(b.Cmp(geOS, a, b.C(0.625)), large, small)
	return b.CopySign(y, x)
}

// Logistic is 1/(1+e^-x), or e^x/(1+e^x) for x < 0.
func (b *Block) Logistic(x V) V {
	one := b.C(1)
	n, r, q := b.expParts(b.RawMax(b.by(-150, -800), b.Or(x, b.signBit())))
	e := b.scale(b.Add(b.Add(q, r), one), n)
	top := b.Blend(b.Cmp(ltOS, x, b.C(0)), e, one)
	d := b.Add(e, one)
	lost := b.Sub(e, b.Sub(d, one))
	inv := b.Div(one, d)
	q2 := b.Mul(top, inv) // one step of Newton's method, with what 1+e^x lost
	t := b.FNMA(q2, lost, b.FNMA(q2, d, top))
	return b.FMA(t, inv, q2)
}

// Erf is x + x Q(x^2) near zero and 1 - e^R(|x|) elsewhere; the float32 coefficients are Norbert Juffa's.
func (b *Block) Erf(x V) V {
	a := b.Abs(x)
	z := b.Mul(a, a)
	var small, r V
	one := b.C(1)
	if b.el.size == 8 {
		small = b.FMA(b.Poly(z, erfSmall64), a, a)
		t := b.RawMin(b.C(5.95), a)
		r = b.Poly(b.Sub(t, b.C(1.5)), erfLarge64)
	} else {
		small = b.FMA(b.Poly(z, []float64{1.28379166e-1, -3.76125336e-1, 1.12819925e-1, -2.67681349e-2, 4.99119423e-3,
			-5.96761703e-4}), a, a)
		t := b.RawMin(b.C(4), a)
		r = b.FMA(b.Poly(t, []float64{-1.28717512e-1, -6.34846687e-1, -1.06777877e-1, 2.42546219e-2, -3.88396438e-3,
			3.83197126e-4, -1.72853470e-5}), t, b.Neg(t))
	}
	large := b.Sub(one, b.expIn(r))
	y := b.Blend(b.Cmp(geOS, a, b.by(0.927734375, 1)), large, small)
	return b.CopySign(y, x)
}

// sincos is sin(x) (shift 0) or cos(x) (shift 1). Lanes with |x| over limit keep x: the caller does those.
func (b *Block) sincos(x V, shift float64) V {
	limit := b.by(30000, 1<<19)
	q := b.Add(b.Mul(x, b.C(2/math.Pi)), b.C(b.magic()))
	n := b.Sub(q, b.C(b.magic()))
	r := b.FNMA(n, b.by(0x1.921fb6p+0, 0x1.921fb54442d18p+0), x)
	r = b.FNMA(n, b.by(-0x1.777a5cp-25, 0x1.1a62633145c07p-54), r)
	r = b.FNMA(n, b.by(-0x1.ee59dap-50, -0x1.f1976b7ed8fbcp-110), r)
	z := b.Mul(r, r)
	cs, cc := sin32, cos32
	if b.el.size == 8 {
		cs, cc = sin64, cos64
	}
	s := b.FMA(b.Mul(z, r), b.Poly(z, cs), r)
	c := b.FMA(b.Mul(z, z), b.Poly(z, cc), b.FNMA(z, b.C(0.5), b.C(1)))
	if shift != 0 {
		q = b.Add(q, b.C(shift))
	}
	odd := b.Sll(q, b.el.size*8-1) // the low bit of the quadrant as a sign
	var y V
	if b.isa.neon() {
		y = b.Blend(b.arm("sshr", fmt.Sprintf("#%d", b.el.size*8-1), odd), c, s)
	} else if b.wide() {
		m := b.newMask()
		b.emit(ins{mn: "VPMOV" + b.ip() + "2M", srcs: []V{odd}, k: none, dst: m})
		y = b.Blend(m, c, s)
	} else {
		y = b.Blend(odd, c, s)
	}
	y = b.Xor(y, b.And(b.Sll(q, b.el.size*8-2), b.signBit()))
	if shift == 0 {
		y = b.Blend(b.Cmp(eqOQ, x, b.C(0)), x, y) // the sign of zero
	}
	return b.Blend(b.Cmp(gtOS, b.Abs(x), limit), x, y)
}
