package main

import (
	"fmt"
	"sort"
	"strings"
)

// isa is a vector instruction set.
type isa struct {
	name  string // suffix of the functions' names
	width int    // bytes in a register
	regs  int
	reg   string // prefix of the registers' names
}

var (
	avx512 = isa{"AVX512", 64, 32, "Z"}
	avx2   = isa{"AVX2", 32, 16, "Y"}
)

// move is the instruction that moves 64 bits.
func (s isa) move() string {
	if s.neon() {
		return "MOVD"
	}
	return "MOVQ"
}

// elem is the type of one lane.
type elem struct {
	name   string // suffix of the functions' names
	goT    string
	size   int
	letter string // ends the names of instructions on floats of that size
}

var (
	f32 = elem{"F32", "float32", 4, "S"}
	f64 = elem{"F64", "float64", 8, "D"}
	i32 = elem{"I32", "int32", 4, "S"}
	i64 = elem{"I64", "int64", 8, "D"}
	u32 = elem{"U32", "uint32", 4, "S"}
	u64 = elem{"U64", "uint64", 8, "D"}
	u8  = elem{"U8", "uint8", 1, ""}
)

// V is a value of a function: a temporary of a block, a constant or a pinned register.
type V int

const none V = -1

type kind int

const (
	temp kind = iota
	constant
	pinned
	mask // a mask register; only for AVX-512
	kpin // a mask register for the whole function
)

type val struct {
	kind kind
	bits uint64 // of a constant
	phys int    // of a pin, or of a constant kept in a register; -1 when in memory
}

// ins is one instruction. Operands stand in the order of Go's assembler: first to last source, then dst.
type ins struct {
	mn   string
	imm  string
	srcs []V
	mem  string // memory operand: first source, or destination when dst is none
	k    V      // mask operand
	dst  V
	fma  bool   // srcs are a, b, c of a*b+c and mn lacks its 132/213/231 part: VFMADD%sPS
	tmpl string // text with the numbers of registers left open: {0}, {1}, ... sources, {d}, {k}, {t} a temporary
	move bool   // a copy of srcs[0] to the pin dst
}

// item is a line of text or a block of instructions.
type item struct {
	text  string
	block []ins
}

// Fn builds one assembly function.
type Fn struct {
	name   string
	isa    isa
	el     elem
	params string // Go parameter list
	args   int    // bytes of the parameters
	locals int    // bytes on the stack
	vals   []val
	items  []item
	consts map[uint64]V
	order  []V // constants, by first use
	pins   int
	labels int
}

func (f *Fn) lanes() int { return f.isa.width / f.el.size }

func (f *Fn) newVal(v val) V {
	f.vals = append(f.vals, v)
	return V(len(f.vals) - 1)
}

// Pin reserves a register for the whole function.
func (f *Fn) Pin() V {
	f.pins++
	return f.newVal(val{kind: pinned, phys: f.isa.regs - f.pins})
}

// K is a mask register for the whole function, outside those that blocks use (K5 to K7).
func (f *Fn) K(n int) V { return f.newVal(val{kind: kpin, phys: n}) }

// Reg names a pinned register.
func (f *Fn) Reg(v V) string { return fmt.Sprintf("%s%d", f.isa.reg, f.vals[v].phys) }

// XReg names the low 128 bits of a pinned register.
func (f *Fn) XReg(v V) string { return fmt.Sprintf("X%d", f.vals[v].phys) }

// Text appends lines of assembly.
func (f *Fn) Text(format string, args ...any) {
	f.items = append(f.items, item{text: fmt.Sprintf(format, args...)})
}

// Label makes a label that is unique in the function.
func (f *Fn) Label(hint string) string {
	f.labels++
	return fmt.Sprintf("%s%d", hint, f.labels)
}

// Block appends straight-line code.
func (f *Fn) Block(g func(b *Block)) {
	b := &Block{Fn: f, tail: none}
	g(b)
	f.items = append(f.items, item{block: b.code})
}

func (f *Fn) constBits(bits uint64) V {
	if v, ok := f.consts[bits]; ok {
		return v
	}
	v := f.newVal(val{kind: constant, bits: bits, phys: -1})
	f.consts[bits] = v
	f.order = append(f.order, v)
	return v
}

// at is the frame reference of a parameter.
func (f *Fn) at(name string) string {
	off := 0
	for p := range strings.SplitSeq(f.params, ", ") {
		off = align(off, p)
		if strings.HasPrefix(p, name+" ") {
			return fmt.Sprintf("%s+%d(FP)", name, off)
		}
		off += paramSize(p)
	}
	panic("no parameter " + name + " in " + f.name)
}

// load reads the first parameters into general registers.
func (f *Fn) load(regs ...string) {
	params := strings.Split(f.params, ", ")
	for i, r := range regs {
		name, _, _ := strings.Cut(params[i], " ")
		f.Text("%s %s, %s", f.isa.move(), f.at(name), r)
	}
}

// text is the instructions: it first measures how many registers the blocks need, then keeps constants in the rest.
func (f *Fn) text() string {
	uses := map[V]int{}
	most := 0
	for _, it := range f.items {
		for _, in := range it.block {
			for _, s := range in.srcs {
				if f.vals[s].kind == constant {
					uses[s]++
				}
			}
		}
		a := allocator{f: f}
		a.run(it.block)
		most = max(most, a.most)
	}
	free := f.isa.regs - f.pins - most
	sort.SliceStable(f.order, func(i, j int) bool { return uses[f.order[i]] > uses[f.order[j]] })
	next := f.isa.regs - f.pins - 1
	var load, w strings.Builder
	if f.isa.neon() && len(uses) > 0 {
		load.WriteString("\tMOVD $consts<>(SB), R8\n") // constants are addressed from there
	}
	for _, v := range f.order {
		if free == 0 || uses[v] == 0 {
			break
		}
		f.vals[v].phys = next
		if f.isa.neon() {
			fmt.Fprintf(&load, "\tFMOVQ %s, F%d\n", constantRef(f.el.size, f.vals[v].bits), next)
		} else {
			fmt.Fprintf(&load, "\t%s %s, %s%d\n", f.broadcast(), constantRef(f.el.size, f.vals[v].bits), f.isa.reg, next)
		}
		next--
		free--
	}
	for _, it := range f.items {
		if it.block == nil {
			w.WriteString(strings.Replace(indent(it.text), "\tconstants\n", load.String(), 1))
			continue
		}
		a := allocator{f: f, limit: next + 1}
		a.run(it.block)
		w.WriteString(a.out.String())
	}
	if f.isa.neon() {
		return armWords(w.String())
	}
	return w.String()
}

func (f *Fn) broadcast() string {
	if f.el.size == 1 {
		return "VPBROADCASTB"
	}
	return "VBROADCASTS" + f.el.letter
}
