package main

import (
	"fmt"
	"strconv"
	"strings"
)

// allocator gives registers to the temporaries of one block and prints it.
type allocator struct {
	f     *Fn
	limit int // registers below this one are free to use; 0 while measuring
	phys  map[V]int
	last  map[V]int
	used  map[int]bool
	usedK map[int]bool
	most  int
	into  map[V]V // temporaries that are made in a pin's register
	temps []int   // registers that serve the instruction at hand alone
	out   strings.Builder
}

func (a *allocator) run(code []ins) {
	a.phys, a.last = map[V]int{}, map[V]int{}
	a.used, a.usedK = map[int]bool{}, map[int]bool{}
	defined := map[V]int{}
	pinTouched := map[V]int{} // last place a pin was read or written
	a.into = map[V]V{}
	for i, in := range code {
		for _, s := range in.srcs {
			a.last[s] = i
		}
		if in.k >= 0 {
			a.last[in.k] = i
		}
		if in.dst >= 0 {
			if _, ok := defined[in.dst]; !ok {
				defined[in.dst] = i
			}
		}
	}
	for i, in := range code {
		if in.move && a.f.vals[in.srcs[0]].kind == temp {
			s := in.srcs[0]
			if t, ok := pinTouched[in.dst]; a.last[s] == i && (!ok || t <= defined[s]) {
				a.into[s] = in.dst
			}
		}
		for _, s := range in.srcs {
			if a.f.vals[s].kind == pinned {
				pinTouched[s] = i
			}
		}
		if in.dst >= 0 && a.f.vals[in.dst].kind == pinned {
			pinTouched[in.dst] = i
		}
	}
	for i, in := range code {
		a.one(i, in)
		for _, r := range a.temps {
			a.release(r)
		}
		a.temps = nil
	}
}

func (a *allocator) take() int {
	limit := a.limit
	if limit == 0 {
		limit = 1000
	}
	for r := range limit {
		if !a.used[r] {
			a.used[r] = true
			a.most = max(a.most, len(a.used))
			return r
		}
	}
	panic("out of registers in " + a.f.name)
}

func (a *allocator) release(r int) { delete(a.used, r) }

// loc is the operand of a value: a register, or memory for a constant.
func (a *allocator) loc(v V) (string, bool) {
	x := a.f.vals[v]
	switch {
	case x.kind == mask:
		return fmt.Sprintf("K%d", a.phys[v]), false
	case x.kind == kpin:
		return fmt.Sprintf("K%d", x.phys), false
	case x.kind == temp:
		return fmt.Sprintf("%s%d", a.f.isa.reg, a.phys[v]), false
	case x.phys >= 0:
		return fmt.Sprintf("%s%d", a.f.isa.reg, x.phys), false
	}
	return constantRef(a.f.el.size, x.bits), true
}

// reg is the operand of a value that is in a register.
func (a *allocator) reg(v V) string {
	s, _ := a.loc(v)
	return s
}

// physOf is the register of a value that is in one, else -1.
func (a *allocator) physOf(v V) int {
	x := a.f.vals[v]
	if x.kind == temp {
		return a.phys[v]
	}
	return x.phys
}

func (a *allocator) line(mn string, ops ...string) {
	fmt.Fprintf(&a.out, "\t%s %s\n", mn, strings.Join(ops, ", "))
}

// inReg loads a constant into a temporary register when it is in memory.
func (a *allocator) inReg(v V) string {
	s, mem := a.loc(v)
	if !mem {
		return s
	}
	r := a.take()
	a.temps = append(a.temps, r)
	d := fmt.Sprintf("%s%d", a.f.isa.reg, r)
	a.line(a.f.broadcast(), s, d)
	return d
}

// first is a first operand, which may be a constant in memory: AVX-512 repeats the lane itself.
func (a *allocator) first(v V, mn *string) string {
	s, mem := a.loc(v)
	if mem && a.f.isa.width == 64 {
		*mn += ".BCST"
	}
	return s
}

func (a *allocator) one(i int, in ins) {
	switch {
	case in.move:
		a.move(in)
		a.freeDead(i, in)
		return
	case in.fma && !a.f.isa.neon():
		a.fma(i, in)
		return
	case a.f.isa.neon() && in.tmpl == "":
		a.neon(i, in)
		return
	case in.tmpl != "":
		a.template(i, in)
		return
	}
	var ops []string
	if in.imm != "" {
		ops = append(ops, in.imm)
	}
	mn, whole := strings.CutSuffix(in.mn, "#")
	if in.mem != "" && in.dst >= 0 {
		ops = append(ops, in.mem)
	}
	for j, s := range in.srcs {
		if j == 0 && in.mem == "" && !whole {
			ops = append(ops, a.first(s, &mn))
		} else {
			ops = append(ops, a.inReg(s))
		}
	}
	if in.k >= 0 {
		ops = append(ops, a.reg(in.k))
	}
	a.freeDead(i, in)
	if in.dst < 0 {
		ops = append(ops, in.mem)
	} else {
		a.define(in.dst)
		ops = append(ops, a.reg(in.dst))
	}
	a.line(mn, ops...)
}

// move copies to a pin what is not made in its register.
func (a *allocator) move(in ins) {
	if p, ok := a.into[in.srcs[0]]; ok && p == in.dst {
		return
	}
	a.copy(in.srcs[0], a.reg(in.dst))
}

func (a *allocator) copy(v V, to string) {
	s, mem := a.loc(v)
	if a.f.isa.neon() {
		r, err := strconv.Atoi(to[1:])
		if err != nil {
			panic(err)
		}
		a.fetch(v, r)
		return
	}
	if mem {
		a.line(a.f.broadcast(), s, to)
	} else {
		a.line("VMOVAPS", s, to)
	}
}

func (a *allocator) define(v V) {
	switch a.f.vals[v].kind {
	case mask:
		for r := 5; r < 8; r++ { // K1 to K4 belong to the kernels
			if !a.usedK[r] {
				a.usedK[r] = true
				a.phys[v] = r
				return
			}
		}
		panic("out of masks in " + a.f.name)
	case temp:
		if _, again := a.phys[v]; again {
			return
		}
		if p, ok := a.into[v]; ok {
			a.phys[v] = a.f.vals[p].phys
			return
		}
		a.phys[v] = a.take()
	}
}

// freeDead gives back the registers of operands that are not used again.
func (a *allocator) freeDead(i int, in ins) {
	free := func(v V) {
		if a.last[v] != i {
			return
		}
		switch a.f.vals[v].kind {
		case temp:
			a.release(a.phys[v])
		case mask:
			delete(a.usedK, a.phys[v])
		}
	}
	for _, s := range in.srcs {
		free(s)
	}
	if in.k >= 0 {
		free(in.k)
	}
}

// fma picks the form of a*b+c whose destination is an operand that dies, so that no copy is needed.
func (a *allocator) fma(i int, in ins) {
	x, y, c := in.srcs[0], in.srcs[1], in.srcs[2]
	dies := func(v V) bool { return a.f.vals[v].kind == temp && a.last[v] == i }
	pick := dies // may the result overwrite v?
	if p, ok := a.into[in.dst]; ok {
		pick = func(v V) bool { return a.physOf(v) == a.f.vals[p].phys }
	}
	form, first, second := "231", x, ""
	if pick(c) || !pick(x) && !pick(y) {
		if _, mem := a.loc(y); mem {
			first, y = y, x
		}
		second = a.inReg(y)
		if pick(c) {
			a.phys[in.dst] = a.physOf(c)
		} else {
			a.define(in.dst)
			a.copy(c, a.reg(in.dst))
		}
	} else {
		if !pick(x) {
			x, y = y, x
		}
		form, first, second = "213", c, a.inReg(y)
		a.phys[in.dst] = a.physOf(x)
	}
	mn := fmt.Sprintf(in.mn, form)
	op := a.first(first, &mn)
	a.line(mn, op, second, a.reg(in.dst))
	for _, s := range in.srcs {
		if dies(s) && a.phys[s] != a.phys[in.dst] {
			a.release(a.phys[s])
		}
	}
}

// template prints an instruction, or several, of its own shape. Its destination is none of its sources.
func (a *allocator) template(i int, in ins) {
	t := a.take()
	a.temps = append(a.temps, t)
	pairs := []string{"{t}", fmt.Sprint(t)}
	number := func(v V) string {
		if a.f.isa.neon() {
			return fmt.Sprint(a.number(v))
		}
		return strings.TrimLeft(a.inReg(v), "XYZK")
	}
	for j, s := range in.srcs {
		pairs = append(pairs, fmt.Sprintf("{%d}", j), number(s))
	}
	if in.k >= 0 {
		pairs = append(pairs, "{k}", number(in.k))
	}
	if in.dst >= 0 {
		a.define(in.dst)
		pairs = append(pairs, "{d}", number(in.dst))
	}
	a.out.WriteString(indent(strings.NewReplacer(pairs...).Replace(in.tmpl)))
	a.freeDead(i, in)
}
