package engine

import (
	"sync"

	"github.com/gfnem/gfnem/engine/internal/par"
)

// rowProgram is a step that passes over m rows once. It is cut into chunks, which may run at the same time, and chunks
// into blocks, which run one after another. Each instruction handles all rows of a block before the next one starts, so
// that what it leaves in registers is still in the cache.
//
// Law: m alone decides about chunks and blocks, and partial sums of chunks are added in order.
type rowProgram struct {
	m      int
	block  int // rows
	chunk  int // rows, a multiple of block
	code   []instr
	before []instr // once per run, into the shared area
	static []instr // once per frame, into the shared area

	regBytes    int // of a block
	sharedBytes int
	partBytes   int // accumulators of a chunk
	sums        []partial
}

// instr does its work on the rows of a block.
type instr func(c *rowCtx)

// partial is an accumulator of each chunk, and where their total goes.
type partial struct {
	off, n int
	out    operand
	r      *reducer
	bytes  int
}

// rowCtx is what an instruction sees.
type rowCtx struct {
	mem         []ptr // of the frame, by slot
	reg, shared ptr
	part        ptr  // accumulators of this chunk
	row, rows   int  // the block
	first       bool // of its chunk: accumulators are not set yet
}

// operand is where the rows of a value start.
type operand struct {
	kind operandKind
	slot int
	off  int // bytes
	row  int // bytes from row to row, in memory
}

type operandKind uint8

const (
	inMem operandKind = iota
	inReg
	inShared
)

func (c *rowCtx) at(o operand) ptr {
	switch o.kind {
	case inReg:
		return add(c.reg, o.off, 1)
	case inShared:
		return add(c.shared, o.off, 1)
	}
	return add(c.mem[o.slot], o.off+c.row*o.row, 1)
}

// ctxPool keeps contexts that are not in use.
type ctxPool struct {
	mu   sync.Mutex
	free []*rowCtx
}

func (p *ctxPool) get() *rowCtx {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := len(p.free); k > 0 {
		c := p.free[k-1]
		p.free = p.free[:k-1]
		return c
	}
	return new(rowCtx)
}

func (p *ctxPool) put(c *rowCtx) {
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
}

// bind makes the program ready to run in a frame.
func (p *rowProgram) bind(fr *frame) func() {
	chunks := (p.m + p.chunk - 1) / p.chunk
	shared := alloc(p.sharedBytes)
	var parts ptr
	first := &rowCtx{mem: fr.mem, shared: shared, rows: p.block}
	for _, in := range p.static {
		in(first)
	}
	scratch := &fr.prog.backend.scratch
	ctx := &ctxPool{}
	body := func(lo, hi int) {
		c := ctx.get()
		c.mem, c.shared, c.reg = fr.mem, shared, scratch.get(p.regBytes)
		if p.partBytes > 0 {
			c.part = add(parts, lo/p.chunk, p.partBytes)
		}
		p.run(c, lo, hi)
		scratch.put(c.reg, p.regBytes)
		ctx.put(c)
	}
	return func() {
		if p.partBytes > 0 {
			parts = scratch.get(p.partBytes * chunks)
			defer func() { scratch.put(parts, p.partBytes*chunks) }()
		}
		for _, in := range p.before {
			in(first)
		}
		if chunks == 1 {
			body(0, p.m)
		} else {
			par.For(p.m, p.chunk, body)
		}
		for i := range p.sums {
			s := &p.sums[i]
			to := first.at(s.out)
			copy(bytesAt(to, s.bytes), bytesAt(add(parts, s.off, 1), s.bytes))
			for k := 1; k < chunks; k++ {
				s.r.join(to, add(parts, k*p.partBytes+s.off, 1), s.n)
			}
		}
	}
}

func (p *rowProgram) run(c *rowCtx, lo, hi int) {
	for c.row = lo; c.row < hi; c.row += p.block {
		c.rows, c.first = min(p.block, hi-c.row), c.row == lo
		for _, in := range p.code {
			in(c)
		}
	}
}
