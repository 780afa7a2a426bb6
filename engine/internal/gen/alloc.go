package main

import (
	"fmt"
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
	out   strings.Builder
}

func (a *allocator) run(code []ins) {
	a.phys, a.last = map[V]int{}, map[V]int{}
	a.used, a.usedK = map[int]bool{}, map[int]bool{}
	defined := map[V]int{}
	pinTouched := map[V]int{} // last place a pin was read or written
	into := map[V]V{}         // temporaries that are made in a pin's register
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
				into[s] = in.dst
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
		a.one(i, in, into)
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
func (a *allocator) inReg(v V) (string, int) {
	s, mem := a.loc(v)
	if !mem {
		return s, -1
	}
	r := a.take()
	d := fmt.Sprintf("%s%d", a.f.isa.reg, r)
	a.line(a.f.broadcast(), s, d)
	return d, r
}

// bcst marks an instruction whose first operand is a constant in memory: AVX-512 repeats the lane itself.
func (a *allocator) bcst(mn string) string {
	if a.f.isa.width == 64 {
		return mn + ".BCST"
	}
	return mn
}

func (a *allocator) one(i int, in ins, into map[V]V) {
	f := a.f
	if in.move {
		d := in.dst
		if p, ok := into[in.srcs[0]]; ok && p == d {
			return
		}
		s, mem := a.loc(in.srcs[0])
		dst, _ := a.loc(d)
		mn := "VMOVAPS"
		if mem {
			mn = f.broadcast()
		}
		a.line(mn, s, dst)
		a.freeDead(i, in)
		return
	}
	if in.fma {
		a.fma(i, in, into)
		return
	}
	if in.tmpl != "" {
		a.template(i, in, into)
		return
	}
	var temps []int
	var ops []string
	if in.imm != "" {
		ops = append(ops, in.imm)
	}
	mn := in.mn
	if in.mem != "" && in.dst >= 0 {
		ops = append(ops, in.mem)
	}
	for j, s := range in.srcs {
		op, mem := a.loc(s)
		if mem {
			if j == 0 && in.mem == "" && !strings.Contains(mn, "#") {
				mn = a.bcst(mn)
			} else {
				var t int
				op, t = a.inReg(s)
				temps = append(temps, t)
			}
		}
		ops = append(ops, op)
	}
	mn = strings.TrimSuffix(mn, "#")
	if in.k >= 0 {
		op, _ := a.loc(in.k)
		ops = append(ops, op)
	}
	a.freeDead(i, in)
	if in.dst < 0 {
		ops = append(ops, in.mem)
	} else {
		a.define(in.dst, into)
		op, _ := a.loc(in.dst)
		ops = append(ops, op)
	}
	a.line(mn, ops...)
	for _, t := range temps {
		a.release(t)
	}
}

func (a *allocator) define(v V, into map[V]V) {
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
		if p, ok := into[v]; ok {
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
func (a *allocator) fma(i int, in ins, into map[V]V) {
	x, y, c := in.srcs[0], in.srcs[1], in.srcs[2]
	form := func(n string) string { return fmt.Sprintf(in.mn, n) }
	dies := func(v V) bool {
		return a.f.vals[v].kind == temp && a.last[v] == i
	}
	var temps []int
	reg := func(v V) string {
		s, t := a.inReg(v)
		if t >= 0 {
			temps = append(temps, t)
		}
		return s
	}
	first := func(v V, mn *string) string {
		s, mem := a.loc(v)
		if mem {
			*mn = a.bcst(*mn)
		}
		return s
	}
	target := -1
	if p, ok := into[in.dst]; ok {
		target = a.f.vals[p].phys
	}
	pick := func(v V) bool { // may the result overwrite v?
		if target >= 0 {
			return a.physOf(v) == target
		}
		return dies(v)
	}
	var mn string
	var ops []string
	switch {
	case pick(c):
		if _, mem := a.loc(y); mem {
			x, y = y, x
		}
		mn = form("231")
		b := reg(y)
		ops = []string{first(x, &mn), b}
		d, _ := a.loc(c)
		ops = append(ops, d)
		a.phys[in.dst] = a.physOf(c)
	case pick(x) || pick(y):
		if !pick(x) {
			x, y = y, x
		}
		mn = form("213")
		b := reg(y)
		d, _ := a.loc(x)
		ops = []string{first(c, &mn), b, d}
		a.phys[in.dst] = a.physOf(x)
	default:
		if _, mem := a.loc(y); mem {
			x, y = y, x
		}
		b := reg(y)
		s, mem := a.loc(c)
		a.define(in.dst, into)
		d, _ := a.loc(in.dst)
		if mem {
			a.line(a.f.broadcast(), s, d)
		} else {
			a.line("VMOVAPS", s, d)
		}
		mn = form("231")
		ops = []string{first(x, &mn), b, d}
	}
	a.line(mn, ops...)
	for _, t := range temps {
		a.release(t)
	}
	for _, s := range in.srcs {
		if dies(s) && a.phys[s] != a.phys[in.dst] {
			a.release(a.phys[s])
		}
	}
}

// template prints an instruction, or several, of its own shape. Its destination is none of its sources.
func (a *allocator) template(i int, in ins, into map[V]V) {
	t := a.take()
	pairs := []string{"{t}", fmt.Sprint(t)}
	temps := []int{t}
	number := func(v V) string {
		s, r := a.inReg(v)
		if r >= 0 {
			temps = append(temps, r)
		}
		return strings.TrimLeft(s, "XYZK")
	}
	for j, s := range in.srcs {
		pairs = append(pairs, fmt.Sprintf("{%d}", j), number(s))
	}
	if in.k >= 0 {
		pairs = append(pairs, "{k}", number(in.k))
	}
	if in.dst >= 0 {
		a.define(in.dst, into)
		pairs = append(pairs, "{d}", number(in.dst))
	}
	text := strings.NewReplacer(pairs...).Replace(in.tmpl)
	for _, l := range strings.Split(text, "\n") {
		a.out.WriteString("\t" + strings.TrimSpace(l) + "\n")
	}
	a.freeDead(i, in)
	for _, r := range temps {
		a.release(r)
	}
}
