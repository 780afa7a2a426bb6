package main

import "fmt"

// neon is what every ARM processor of 64 bits has. Its vectors are short and there are no masks for loads and stores,
// so kernels end with steps of one element: a vector of which only the first lane is loaded and stored.
var neon = isa{"NEON", 16, 32, "V"}

func (s isa) neon() bool { return s.width == 16 }

// arm emits an instruction on all lanes; imm is put after the operands.
func (b *Block) arm(mn, imm string, srcs ...V) V {
	return b.emit(ins{mn: mn, imm: imm, srcs: srcs, k: none, dst: b.newVal(val{})})
}

// either emits an instruction of x86 with the operands in Go's order, last first, or one of ARM.
func (b *Block) either(x86, arm string, x, y V) V {
	if b.isa.neon() {
		return b.arm(arm, "", x, y)
	}
	return b.op(x86, y, x)
}

// sel says in neonCmp how a comparison is made of those that there are.
type sel struct {
	mn        string
	swap, not bool
}

var neonComparisons = map[int]sel{
	eqOQ: {"fcmeq", false, false}, neqUQ: {"fcmeq", false, true},
	ltOS: {"fcmgt", true, false}, 17: {"fcmgt", true, false},
	leOS: {"fcmge", true, false}, 18: {"fcmge", true, false},
	gtOS: {"fcmgt", false, false}, 30: {"fcmgt", false, false},
	geOS: {"fcmge", false, false}, 29: {"fcmge", false, false},
	9: {"fcmge", false, true},
}

// neonCmp is Cmp for NEON.
func (b *Block) neonCmp(pred int, x, y V) V {
	switch pred {
	case unordQ:
		return b.Not(b.And(b.arm("fcmeq", "", x, x), b.arm("fcmeq", "", y, y)))
	case neqOQ:
		return b.Or(b.arm("fcmgt", "", x, y), b.arm("fcmgt", "", y, x))
	}
	c, ok := neonComparisons[pred]
	if !ok {
		panic(fmt.Sprint("no comparison ", pred))
	}
	if c.swap {
		x, y = y, x
	}
	m := b.arm(c.mn, "", x, y)
	if c.not {
		m = b.Not(m)
	}
	return m
}

// Not is the complement of bits; NEON only.
func (b *Block) Not(x V) V { return b.arm("mvn", "", x) }

// neonMem loads a vector, or in the tail its first lane; the others are zero.
func (b *Block) neonMem() string {
	switch {
	case b.tail == none:
		return "FMOVQ"
	case b.el.size == 8:
		return "FMOVD"
	}
	return "FMOVS"
}

// arrangement is the lanes that an instruction works on.
func (f *Fn) arrangement(mn string) string {
	if e, ok := encodings[mn]; ok && e.size == fixed || mn == "mov" || mn == "ext" {
		return "16b"
	}
	return f.el.lanesOf(f.isa)
}

// lanesOf names the lanes of a full register.
func (e elem) lanesOf(is isa) string {
	return fmt.Sprintf("%d%s", is.width/e.size, map[int]string{1: "b", 4: "s", 8: "d"}[e.size])
}

// neon prints an instruction.
func (a *allocator) neon(i int, in ins) {
	var regs []int
	for _, s := range in.srcs {
		regs = append(regs, a.number(s))
	}
	switch {
	case in.mem != "" && in.dst < 0:
		a.line(in.mn, fmt.Sprintf("F%d", regs[0]), in.mem)
		a.freeDead(i, in)
		return
	case in.mem != "":
		a.define(in.dst)
		a.line(in.mn, in.mem, fmt.Sprintf("F%d", a.phys[in.dst]))
		return
	case in.fma || in.mn == "bsl":
		a.tied(i, in, regs)
		return
	}
	a.freeDead(i, in)
	a.define(in.dst)
	a.arm(in.mn, in.imm, append([]int{a.physOf(in.dst)}, regs...)...)
}

// arm prints a line of ARM's.
func (a *allocator) arm(mn, imm string, regs ...int) {
	var ops []string
	for _, r := range regs {
		ops = append(ops, fmt.Sprintf("v%d.%s", r, a.f.arrangement(mn)))
	}
	if imm != "" {
		ops = append(ops, imm)
	}
	a.line(mn, ops...)
}

// number is the register of a value, loaded if it is a constant in memory.
func (a *allocator) number(v V) int {
	if x := a.f.vals[v]; x.kind != constant || x.phys >= 0 {
		return a.physOf(v)
	}
	r := a.take()
	a.temps = append(a.temps, r)
	a.fetch(v, r)
	return r
}

// fetch puts a value into a register.
func (a *allocator) fetch(v V, r int) {
	if s, mem := a.loc(v); mem {
		a.line("FMOVQ", s, fmt.Sprintf("F%d", r))
	} else {
		a.arm("mov", "", r, a.physOf(v))
	}
}

// tied prints what overwrites one of its operands: sums of products the last one, selections any, each by an
// instruction of its own.
func (a *allocator) tied(i int, in ins, regs []int) {
	forms := []struct {
		mn   string
		over int // the operand that is overwritten
		x, y int // the others, in their order
	}{{in.mn, 2, 0, 1}}
	if in.mn == "bsl" { // operands are mask, yes, no
		forms[0].over, forms[0].x, forms[0].y = 0, 1, 2
		forms = append(forms, forms[0], forms[0])
		forms[1].mn, forms[1].over, forms[1].x, forms[1].y = "bit", 2, 1, 0
		forms[2].mn, forms[2].over, forms[2].x, forms[2].y = "bif", 1, 2, 0
	}
	dies := func(v V) bool { return a.f.vals[v].kind == temp && a.last[v] == i }
	pick := dies
	if p, ok := a.into[in.dst]; ok {
		pick = func(v V) bool { return a.physOf(v) == a.f.vals[p].phys }
	}
	free := func() {
		for _, s := range in.srcs {
			if dies(s) && a.phys[s] != a.phys[in.dst] {
				a.release(a.phys[s])
			}
		}
	}
	for _, form := range forms {
		over := regs[form.over]
		if pick(in.srcs[form.over]) && over != regs[form.x] && over != regs[form.y] {
			a.phys[in.dst] = over
			a.arm(form.mn, "", over, regs[form.x], regs[form.y])
			free()
			return
		}
	}
	form := forms[0]
	a.define(in.dst)
	to := a.phys[in.dst]
	work := to
	if to == regs[form.x] || to == regs[form.y] { // made in the register of a pin that is an operand
		work = a.take()
		a.temps = append(a.temps, work)
	}
	a.fetch(in.srcs[form.over], work)
	a.arm(form.mn, "", work, regs[form.x], regs[form.y])
	if work != to {
		a.arm("mov", "", to, work)
	}
	free()
}
