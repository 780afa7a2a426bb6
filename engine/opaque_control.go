package engine

import (
	"sort"

	"github.com/gomlx/compute"
)

// control runs functions inside a step. Each has a frame in the frame of the caller.
type control struct {
	op    compute.OpType
	attr  subAttr
	progs []*program
}

func newControl(c *compiler, n *node) *control {
	s := &control{op: n.op, attr: n.attr.(subAttr)}
	for _, f := range s.attr.subs {
		s.progs = append(s.progs, compile(f, c.backend))
	}
	return s
}

func (s *control) bind(fr *frame, l *lop) func() {
	subs := make([]*frame, len(s.progs))
	first := make([]int, len(s.progs)) // operand with the first captured value
	k := s.attr.own
	for i, p := range s.progs {
		subs[i], first[i] = p.newFrame(), k
		k += len(p.caps)
	}
	fr.subs = append(fr.subs, subs...)
	capture := func() {
		for i, sub := range subs {
			for j := range sub.prog.caps {
				sub.set(sub.prog.caps, j, fr.mem[l.ins[first[i]+j].v.slot])
			}
		}
	}
	call := func(sub *frame) {
		for j, v := range l.outs {
			sub.set(sub.prog.outputs, j, fr.mem[v.slot])
		}
		sub.run()
	}
	switch s.op {
	case compute.OpTypeCall:
		return func() {
			capture()
			for i := range s.attr.own {
				subs[0].set(subs[0].prog.params, i, fr.mem[l.ins[i].v.slot])
			}
			call(subs[0])
		}
	case compute.OpTypeIf:
		return func() {
			capture()
			if *(*bool)(fr.mem[l.ins[0].v.slot]) {
				call(subs[0])
			} else {
				call(subs[1])
			}
		}
	case compute.OpTypeSort:
		return s.sort(fr, l, subs[0], capture)
	}
	return s.loop(fr, l, subs[0], subs[1], capture)
}

// loop lets the body read the operands first, then what it wrote: to the results and to a second set of buffers in turn.
func (s *control) loop(fr *frame, l *lop, cond, body *frame, capture func()) func() {
	n := len(l.outs)
	state, spare := make([]ptr, n), make([]ptr, n)
	for i, v := range l.outs {
		spare[i] = alloc(v.bytes())
	}
	yes := alloc(1)
	cond.set(cond.prog.outputs, 0, yes)
	return func() {
		capture()
		for i := range n {
			state[i] = fr.mem[l.ins[i].v.slot]
		}
		for odd := false; ; odd = !odd {
			for i, p := range state {
				cond.set(cond.prog.params, i, p)
			}
			cond.run()
			if !*(*bool)(yes) {
				break
			}
			for i, v := range l.outs {
				body.set(body.prog.params, i, state[i])
				state[i] = fr.mem[v.slot]
				if odd {
					state[i] = spare[i]
				}
				body.set(body.prog.outputs, i, state[i])
			}
			body.run()
		}
		for i, v := range l.outs {
			if to := fr.mem[v.slot]; state[i] != to {
				copy(bytesAt(to, v.bytes()), bytesAt(state[i], v.bytes()))
			}
		}
	}
}

// sort orders positions of a line by the comparator, then moves the elements of all operands.
func (s *control) sort(fr *frame, l *lop, less *frame, capture func()) func() {
	dims := l.node.inputs[0].shape.Dimensions
	axis := s.attr.axis
	outer, n, inner := product(dims[:axis]), dims[axis], product(dims[axis+1:])
	x := &sorter{fr: fr, l: l, less: less, perm: make([]int, n), step: inner, yes: alloc(1), known: plainOrder(s.attr.subs[0])}
	return func() {
		capture()
		less.set(less.prog.outputs, 0, x.yes)
		for o := range outer {
			for i := range inner {
				x.base = o*n*inner + i
				for j := range x.perm {
					x.perm[j] = j
				}
				if s.attr.stable {
					sort.Stable(x)
				} else {
					sort.Sort(x)
				}
				for k, v := range l.outs {
					size := sizeOf(v.t)
					from, to := add(fr.mem[l.ins[k].v.slot], x.base, size), add(fr.mem[v.slot], x.base, size)
					for j, p := range x.perm {
						copy(bytesAt(add(to, j*inner, size), size), bytesAt(add(from, p*inner, size), size))
					}
				}
			}
		}
	}
}

type sorter struct {
	fr         *frame
	l          *lop
	less       *frame
	perm       []int
	base, step int
	yes        ptr
	known      kernel // of two scalars of the first operand; nil if the comparator does more
}

// plainOrder returns the kernel of a comparator that is one comparison of the first operand's elements, or nil.
func plainOrder(f *Function) kernel {
	n := f.outputs[0]
	switch n.op {
	case compute.OpTypeLessThan, compute.OpTypeGreaterThan, compute.OpTypeLessOrEqual, compute.OpTypeGreaterOrEqual:
		if n.inputs[0] == f.params[0] && n.inputs[1] == f.params[1] {
			return kernelFor(n)
		}
	}
	return nil
}

func (x *sorter) Len() int      { return len(x.perm) }
func (x *sorter) Swap(i, j int) { x.perm[i], x.perm[j] = x.perm[j], x.perm[i] }

func (x *sorter) Less(i, j int) bool {
	if x.known != nil {
		size := sizeOf(x.l.outs[0].t)
		p := add(x.fr.mem[x.l.ins[0].v.slot], x.base, size)
		x.known(x.yes, add(p, x.perm[i]*x.step, size), add(p, x.perm[j]*x.step, size), nil, 1)
		return *(*bool)(x.yes)
	}
	for k, v := range x.l.outs {
		size := sizeOf(v.t)
		p := x.fr.mem[x.l.ins[k].v.slot]
		x.less.set(x.less.prog.params, 2*k, add(p, x.base+x.perm[i]*x.step, size))
		x.less.set(x.less.prog.params, 2*k+1, add(p, x.base+x.perm[j]*x.step, size))
	}
	x.less.run()
	return *(*bool)(x.yes)
}
