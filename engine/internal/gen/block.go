package main

import (
	"fmt"
	"math"
)

// Block collects straight-line code. Its methods are the operations on lanes, the same for both instruction sets.
type Block struct {
	*Fn
	code []ins
	tail V // lanes to load and store: a mask in AVX-512, a vector of lane masks in AVX2; none for all
}

// Comparison predicates of VCMPPS: O is false and U is true when an operand is NaN.
const (
	eqOQ, ltOS, leOS, unordQ, neqUQ, geOS, gtOS, neqOQ = 0, 1, 2, 3, 4, 13, 14, 12
)

func (b *Block) wide() bool { return b.isa.width == 64 }

// fp is the floating suffix of the lanes.
func (b *Block) fp() string { return "P" + b.el.letter }

// ip is the integer suffix of the lanes.
func (b *Block) ip() string { return map[int]string{8: "Q", 4: "D", 1: "B"}[b.el.size] }

func (b *Block) emit(in ins) V {
	b.code = append(b.code, in)
	return in.dst
}

func (b *Block) op(mn string, srcs ...V) V {
	return b.emit(ins{mn: mn, srcs: srcs, k: none, dst: b.newVal(val{})})
}

func (b *Block) opImm(mn string, imm int, srcs ...V) V {
	return b.emit(ins{mn: mn, imm: fmt.Sprintf("$0x%02x", imm), srcs: srcs, k: none, dst: b.newVal(val{})})
}

// comm is either for operations that commute.
func (b *Block) comm(x86, arm string, x, y V) V {
	if b.isa.neon() {
		return b.arm(arm, "", x, y)
	}
	if b.vals[x].kind == constant {
		x, y = y, x
	}
	return b.op(x86, y, x)
}

// C is a floating constant in every lane.
func (b *Block) C(x float64) V {
	if b.el.size == 8 {
		return b.constBits(math.Float64bits(x))
	}
	return b.constBits(uint64(math.Float32bits(float32(x))))
}

// Bits is a bit pattern in every lane.
func (b *Block) Bits(x uint64) V { return b.constBits(x) }

// by picks the constant of the lane type.
func (b *Block) by(x32, x64 float64) V {
	if b.el.size == 8 {
		return b.C(x64)
	}
	return b.C(x32)
}

func (b *Block) bitsBy(x32, x64 uint64) V {
	if b.el.size == 8 {
		return b.Bits(x64)
	}
	return b.Bits(x32)
}

func (b *Block) signBit() V { return b.bitsBy(1<<31, 1<<63) }
func (b *Block) absMask() V { return b.bitsBy(1<<31-1, 1<<63-1) }

func (b *Block) Add(x, y V) V { return b.comm("VADD"+b.fp(), "fadd", x, y) }
func (b *Block) Sub(x, y V) V { return b.either("VSUB"+b.fp(), "fsub", x, y) }
func (b *Block) Mul(x, y V) V { return b.comm("VMUL"+b.fp(), "fmul", x, y) }
func (b *Block) Div(x, y V) V { return b.either("VDIV"+b.fp(), "fdiv", x, y) }
func (b *Block) Sqrt(x V) V {
	if b.isa.neon() {
		return b.arm("fsqrt", "", x)
	}
	return b.op("VSQRT"+b.fp(), x)
}

// RawMin and RawMax return y when an operand is NaN or both are zero. Those of NEON return NaN and take -0 to be less.
func (b *Block) RawMin(x, y V) V { return b.either("VMIN"+b.fp(), "fmin", x, y) }
func (b *Block) RawMax(x, y V) V { return b.either("VMAX"+b.fp(), "fmax", x, y) }

func (b *Block) fma(mn, arm string, x, y, z V) V {
	mn += b.fp()
	if b.isa.neon() {
		mn = arm
	}
	return b.emit(ins{mn: mn, srcs: []V{x, y, z}, k: none, dst: b.newVal(val{}), fma: true})
}

func (b *Block) FMA(x, y, z V) V  { return b.fma("VFMADD%s", "fmla", x, y, z) }  // x*y+z
func (b *Block) FNMA(x, y, z V) V { return b.fma("VFNMADD%s", "fmls", x, y, z) } // z-x*y

// Round rounds to an integer: 0 half to even, 1 down, 2 up, 3 to zero.
func (b *Block) Round(x V, mode int) V {
	if b.isa.neon() {
		return b.arm([...]string{"frintn", "frintm", "frintp", "frintz"}[mode], "", x)
	}
	if b.wide() {
		return b.opImm("VRNDSCALE"+b.fp(), 8|mode, x)
	}
	return b.opImm("VROUND"+b.fp()+"#", 8|mode, x)
}

func (b *Block) And(x, y V) V    { return b.comm("VAND"+b.fp(), "and", x, y) }
func (b *Block) Or(x, y V) V     { return b.comm("VOR"+b.fp(), "orr", x, y) }
func (b *Block) Xor(x, y V) V    { return b.comm("VXOR"+b.fp(), "eor", x, y) }
func (b *Block) AndNot(x, y V) V { return b.op("VANDN"+b.fp(), x, y) } // x &^ y; not for NEON

func (b *Block) shift(mn, arm string, x V, n int) V {
	if b.isa.neon() {
		return b.arm(arm, fmt.Sprintf("#%d", n), x)
	}
	return b.opImm(mn+b.ip(), n, x)
}

func (b *Block) IAdd(x, y V) V    { return b.comm("VPADD"+b.ip(), "add", x, y) }
func (b *Block) ISub(x, y V) V    { return b.either("VPSUB"+b.ip(), "sub", x, y) }
func (b *Block) Sll(x V, n int) V { return b.shift("VPSLL", "shl", x, n) }
func (b *Block) Srl(x V, n int) V { return b.shift("VPSRL", "ushr", x, n) }
func (b *Block) mantissa() int    { return map[int]int{4: 23, 8: 52}[b.el.size] }
func (b *Block) bias() float64    { return map[int]float64{4: 127, 8: 1023}[b.el.size] }
func (b *Block) magic() float64   { return math.Ldexp(1.5, b.mantissa()) }
func (b *Block) newMask() V       { return b.newVal(val{kind: mask}) }
func (b *Block) Abs(x V) V {
	if b.isa.neon() {
		return b.arm("fabs", "", x)
	}
	return b.And(x, b.absMask())
}
func (b *Block) Neg(x V) V {
	if b.isa.neon() {
		return b.arm("fneg", "", x)
	}
	return b.Xor(x, b.signBit())
}
func (b *Block) CopySign(x, s V) V { return b.Or(x, b.And(s, b.signBit())) } // x >= 0
func (b *Block) Pow2(n V) V        { return b.Sll(b.Add(n, b.C(b.magic()+b.bias())), b.mantissa()) }
func (b *Block) Assign(pin, v V)   { b.emit(ins{srcs: []V{v}, k: none, dst: pin, move: true}) }
func (b *Block) Ternary(imm int, x, y, z V) V { // bit index is x<<2|y<<1|z; AVX-512 only
	d := b.newVal(val{})
	b.emit(ins{mn: "VMOVAPS", srcs: []V{x}, k: none, dst: d})
	return b.emit(ins{mn: "VPTERNLOG" + b.ip(), imm: fmt.Sprintf("$0x%02x", imm), srcs: []V{z, y}, k: none, dst: d})
}

// Cmp compares lanes: a mask in AVX-512, else lanes of ones or zeros.
func (b *Block) Cmp(pred int, x, y V) V {
	if b.isa.neon() {
		return b.neonCmp(pred, x, y)
	}
	dst := b.newVal(val{})
	if b.wide() {
		dst = b.newMask()
	}
	return b.emit(ins{mn: "VCMP" + b.fp(), imm: fmt.Sprintf("$%d", pred), srcs: []V{y, x}, k: none, dst: dst})
}

// Blend is yes where the mask is set, else no.
func (b *Block) Blend(m, yes, no V) V {
	if b.isa.neon() {
		return b.arm("bsl", "", m, yes, no)
	}
	if b.wide() {
		return b.emit(ins{mn: "VBLENDM" + b.fp(), srcs: []V{yes, no}, k: m, dst: b.newVal(val{})})
	}
	return b.op("VBLENDV"+b.fp()+"#", m, yes, no)
}

// Poly evaluates a polynomial by Horner's rule, lowest degree first.
func (b *Block) Poly(x V, c []float64) V {
	p := b.C(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = b.FMA(p, x, b.C(c[i]))
	}
	return p
}

// mov is the instruction that loads and stores vectors.
func (b *Block) mov() string {
	switch {
	case b.isa.neon():
		return b.neonMem()
	case b.el.size > 1:
		return "VMOVU" + b.fp()
	case b.wide():
		return "VMOVDQU8"
	}
	return "VMOVDQU"
}

// Load reads a vector; lanes outside the tail are zero.
func (b *Block) Load(mem string) V {
	in := ins{mn: b.mov(), mem: mem, k: none, dst: b.newVal(val{})}
	switch {
	case b.isa.neon():
	case b.tail == none:
	case b.wide():
		in.mn, in.k = in.mn+".Z", b.tail
	default:
		in.mn, in.srcs = "VMASKMOV"+b.fp(), []V{b.tail}
	}
	return b.emit(in)
}

// LoadFill reads a vector; lanes outside the tail are those of fill.
func (b *Block) LoadFill(mem string, fill V) V {
	v := b.Load(mem)
	if b.tail == none {
		return v
	}
	return b.Blend(b.tail, v, fill)
}

// Store writes a vector, only the tail's lanes if there is one.
func (b *Block) Store(v V, mem string) {
	in := ins{mn: b.mov(), mem: mem, srcs: []V{v}, k: none, dst: none}
	switch {
	case b.isa.neon():
	case b.tail == none:
	case b.wide():
		in.k = b.tail
	default:
		in.mn, in.srcs = "VMASKMOV"+b.fp(), []V{v, b.tail}
	}
	b.emit(in)
}

// tmpl emits text whose registers are chosen later; see ins.tmpl.
func (b *Block) tmpl(text string, k V, srcs ...V) V {
	return b.emit(ins{tmpl: text, srcs: srcs, k: k, dst: b.newVal(val{})})
}

// tmplStore is tmpl without a result.
func (b *Block) tmplStore(text string, k V, srcs ...V) {
	b.emit(ins{tmpl: text, srcs: srcs, k: k, dst: none})
}
