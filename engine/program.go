package engine

import (
	"slices"
	"time"

	"github.com/gomlx/compute"
)

const sumOp = compute.OpTypeReduceSum

// program is a compiled function. It does not change; frames hold what a run needs.
type program struct {
	backend *Backend
	name    string
	steps   []step
	infos   []*stepInfo
	slots   int
	arena   int // bytes of values between steps
	nested  int // bytes that functions inside steps need, one at a time
	params  []int
	caps    []int
	outputs []int
	fixed   []fixed
	outs    []*value
	pairs   []int // for each output, the parameter whose memory it may take over, or -1
}

// fixed is memory that is not the caller's: a constant, or a place in the arena.
type fixed struct {
	slot     int
	constant ptr
	off      int
}

// step is part of a program; bind makes it ready to run in a frame.
type step interface{ bind(fr *frame) func() }

// opaque is an operation that is a step of its own.
type opaque interface {
	bind(fr *frame, l *lop) func()
}

type opaqueStep struct{ l *lop }

func (s opaqueStep) bind(fr *frame) func() { return s.l.opaque.bind(fr, s.l) }

// frame says where values are in one run of a program at a time. Parameters, captured values and outputs are set before
// a run. The arena is lent for a run, so that programs that run one after the other share the same memory.
type frame struct {
	prog  *program
	mem   []ptr
	steps []func()
	subs  []*frame // of functions inside steps
}

func (p *program) newFrame() *frame {
	fr := &frame{prog: p, mem: make([]ptr, p.slots), steps: make([]func(), len(p.steps))}
	for _, f := range p.fixed {
		if f.constant != nil {
			fr.mem[f.slot] = f.constant
		}
	}
	for i, s := range p.steps {
		fr.steps[i] = s.bind(fr)
	}
	return fr
}

// borrowAndRun runs in an arena that is lent to it.
func (fr *frame) borrowAndRun() {
	p := fr.prog
	arena := p.backend.scratch.get(p.arena + p.nested)
	fr.place(arena)
	fr.run()
	p.backend.scratch.put(arena, p.arena+p.nested)
}

// place puts values into an arena, and those of functions inside steps behind them.
func (fr *frame) place(arena ptr) {
	for _, f := range fr.prog.fixed {
		if f.constant == nil {
			fr.mem[f.slot] = add(arena, f.off, 1)
		}
	}
	for _, sub := range fr.subs {
		sub.place(add(arena, fr.prog.arena, 1))
	}
}

func (fr *frame) run() {
	if p := fr.prog.backend.profiler.Load(); p != nil {
		fr.profile(p)
		return
	}
	for _, s := range fr.steps {
		s()
	}
}

func (fr *frame) profile(p *Profiler) {
	for i, s := range fr.steps {
		begin := time.Now()
		s()
		p.add(fr.prog.name, fr.prog.infos[i], time.Since(begin))
	}
}

// set gives the frame the memory of parameter, captured value or output i.
func (fr *frame) set(slots []int, i int, p ptr) { fr.mem[slots[i]] = p }

// compile turns a function into a program.
func compile(f *Function, b *Backend) *program {
	c := &compiler{fn: f, backend: b, views: map[*node]*access{}, copies: map[string]*access{},
		results: map[*node][]*value{}, fold: map[*node]*node{}, maxima: map[*node]*maxProduct{}}
	order, outputs := c.live()
	c.sole = soleUsers(order, outputs)
	for _, n := range append(slices.Clone(f.params), f.captures...) {
		c.lower(n)
	}
	for _, n := range order {
		if n.op != compute.OpTypeParameter && n.op != compute.OpTypeCapturedValue {
			c.lower(n)
		}
	}
	p := &program{backend: b, name: f.builder.name}
	// Outputs are values of their own: one that is an input, a constant or an earlier output is copied.
	for _, n := range outputs {
		v := c.densely(n).v
		if v.input || v.constant != nil || v.output {
			v = c.copyOf(dense(v, []int{v.size}), v.t).v
		}
		v.output = true
		p.outs = append(p.outs, v)
	}
	c.lops = slices.DeleteFunc(c.lops, func(l *lop) bool {
		return !slices.ContainsFunc(l.outs, func(v *value) bool { return v.size > 0 })
	})
	c.epilogues(p.outs)
	for i, l := range c.lops {
		l.pos = i
	}
	var cs clusters
	cs.build(c.lops, !b.noFusion)
	c.plan(p, cs.order())
	return p
}
