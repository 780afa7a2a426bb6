package engine

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
)

// rowGen writes the row program of a cluster.
type rowGen struct {
	p     *rowProgram
	m     int
	where map[*value]operand
	last  map[*value]int // position of the last operation of the cluster that reads a value
	free  map[int][]int  // registers by bytes per row
	regs  int            // bytes per row of all registers
	held  []held         // registers of operands of the current instruction
	tiles map[string]operand
	dst   *operand // where the next load goes, if it moves anything

	uses   map[string]int    // position of the last operation that reads the elements of a value in a certain way
	loaded map[string]loaded // registers that hold such elements
	size   int               // bytes per row of the shared area
}

type held struct{ off, bytes int }

type loaded struct {
	at    operand
	bytes int
}

// key names the elements of an access, in order.
func (a *access) key() string {
	dims, strides := a.collapse()
	return fmt.Sprint(a.v.id, a.off, dims, strides)
}

// bytes per row become offsets when the number of rows in a block is known; until then offsets count bytes per row.
func genRows(c *cluster) *rowProgram {
	g := &rowGen{p: &rowProgram{m: c.m}, m: c.m, where: map[*value]operand{}, last: map[*value]int{},
		free: map[int][]int{}, tiles: map[string]operand{}, uses: map[string]int{}, loaded: map[string]loaded{}}
	cost := 0
	widest := 1
	for _, l := range c.lops {
		for _, a := range l.ins {
			g.last[a.v] = l.pos
			g.uses[a.key()] = l.pos
		}
		widest = max(widest, l.rowWidth(c.m)*sizeOf(l.outs[0].t))
		cost += l.cost(c.m)
	}
	g.p.block = blockRows(widest, c.m)
	for _, l := range c.lops {
		g.lop(l)
	}
	g.p.regBytes, g.p.sharedBytes = g.regs, g.size
	g.p.chunk = chunkRows(cost, g.p.block, c.m)
	return g.p
}

// blockRows chooses the rows of a block: the widest value takes at most 32 KiB, and narrow ones are long enough to be
// worth a call.
func blockRows(widest, m int) int {
	r := min(max(64<<10/widest, 1), 2048, m)
	if r > 16 {
		r = r / 16 * 16
	}
	return r
}

// chunkRows chooses the rows of a chunk, from the cost of a row in units of about a quarter of a nanosecond: a chunk is
// worth waking a thread, and there are at most 64 of them.
func chunkRows(cost, block, m int) int {
	const worth = 120_000
	r := max(worth/max(cost, 1), (m+63)/64, block)
	if 2*r > m {
		r = (m + 1) / 2
		if cost*m < 2*worth/3 {
			return m
		}
	}
	return min(roundUp(r, block), m)
}

// cost of an operation in one of m rows, in the units of chunkRows.
func (l *lop) cost(m int) int {
	w := l.rowWidth(m)
	switch l.form {
	case formMap:
		if l.node != nil {
			return w * mapCost(l.node.op)
		}
	case formDot:
		return w/4 + l.ins[0].size()/m*l.cols/16
	case formOuter:
		return w/4 + l.ins[0].size()/m*l.n/16
	}
	return w
}

func (g *rowGen) reg(rowBytes int) operand {
	rowBytes = max(rowBytes, 1)
	n := roundUp(rowBytes*g.p.block, cacheLine)
	if f := g.free[n]; len(f) > 0 {
		g.free[n] = f[:len(f)-1]
		return operand{kind: inReg, off: f[len(f)-1]}
	}
	o := operand{kind: inReg, off: g.regs}
	g.regs += n
	return o
}

func (g *rowGen) release(o operand, rowBytes int) {
	if o.kind == inReg {
		n := roundUp(max(rowBytes, 1)*g.p.block, cacheLine)
		g.free[n] = append(g.free[n], o.off)
	}
}

// result returns where the rows of v go: memory if someone else needs them, a register otherwise.
func (g *rowGen) result(v *value) operand {
	row := v.bytes() / g.m
	o := operand{kind: inMem, slot: v.slot, row: row}
	if v.slot < 0 {
		o = g.reg(row)
	}
	g.where[v] = o
	return o
}

// load returns where the elements of an access are, one row after another; it emits a copy if they are not.
func (g *rowGen) load(a *access, t dtypes.DType) operand {
	key := a.key()
	if x, ok := g.loaded[key]; ok {
		return x.at
	}
	copies := g.dst != nil
	count := len(g.held)
	at := g.fetch(a, t)
	if len(g.held) > count && !copies { // it was moved to a register, which stays as long as it is of use
		h := g.held[len(g.held)-1]
		g.held = g.held[:count]
		g.loaded[key] = loaded{at, h.bytes}
	}
	return at
}

// fetch is load without looking for an earlier one.
func (g *rowGen) fetch(a *access, t dtypes.DType) operand {
	p := a.rows(g.m)
	size := sizeOf(t)
	base, made := g.where[a.v]
	if made {
		w := a.v.size / g.m
		if p.inner == nil && p.start == 0 && p.width == w && (w == 1 || !p.repeat) {
			return base
		}
		return g.pick(base, a, p, w, size)
	}
	base = operand{kind: inMem, slot: a.v.slot}
	step, simple := p.step()
	switch {
	case p.shared() && g.m > 1 || p.repeat && p.width > 1 && p.shared():
		return g.tile(a, p, size)
	case p.inner == nil && (p.width == 1 || !p.repeat) && (simple && step == p.width || g.m == 1):
		base.off, base.row = p.start*size, p.width*size
		return base
	case simple:
		base.row = step * size
		return g.pick(base, a, p, step, size)
	}
	// Rows that are not evenly spaced.
	to := g.target(p.width * size)
	g.emit(gather(to, base, p, size))
	return to
}

// target returns where a load goes.
func (g *rowGen) target(rowBytes int) operand {
	if g.dst != nil {
		to := *g.dst
		g.dst = nil
		return to
	}
	to := g.reg(rowBytes)
	g.hold(to, rowBytes)
	return to
}

func (g *rowGen) hold(o operand, rowBytes int) { g.held = append(g.held, held{o.off, rowBytes}) }

// pick copies elements of rows that are w elements apart.
func (g *rowGen) pick(base operand, a *access, p *pattern, w, size int) operand {
	to := g.target(p.width * size)
	k := pickers[size]
	width, inner := p.width, p.inner
	base.off += p.start * size
	// A row of several evenly spaced parts is several rows.
	if dims, strides := a.collapse(); inner != nil && len(dims) == 2 && dims[0]%g.m == 0 && uint(strides[1]) <= 1 {
		if per := dims[0] / g.m; strides[0]*per == w {
			width, w = dims[1], strides[0]
			if strides[1] == 0 {
				g.emit(func(c *rowCtx) { k.spread(c.at(to), c.at(base), c.rows*per, width, w) })
			} else {
				g.emit(func(c *rowCtx) { k.slice(c.at(to), c.at(base), c.rows*per, width, w) })
			}
			return to
		}
	}
	switch {
	case inner != nil:
		g.emit(func(c *rowCtx) { k.index(c.at(to), c.at(base), c.rows, w, p) })
	case p.repeat:
		g.emit(func(c *rowCtx) { k.spread(c.at(to), c.at(base), c.rows, width, w) })
	default:
		g.emit(func(c *rowCtx) { k.slice(c.at(to), c.at(base), c.rows, width, w) })
	}
	return to
}

// tile repeats a row that all rows share, for all rows of a block, before the program runs.
func (g *rowGen) tile(a *access, p *pattern, size int) operand {
	key := fmt.Sprint(a.v.slot, p.start, p.width, p.inner, p.repeat, size)
	if o, ok := g.tiles[key]; ok {
		return o
	}
	o := operand{kind: inShared, off: g.size}
	g.size += roundUp(p.width*size*g.p.block, cacheLine)
	g.tiles[key] = o
	k := pickers[size]
	width, inner, start, rows, slot := p.width, p.inner, p.start, g.p.block, a.v.slot
	in := func(c *rowCtx) {
		from := add(c.mem[slot], start, size)
		switch {
		case inner != nil:
			k.index(c.at(o), from, rows, 0, p)
		case p.repeat:
			k.spread(c.at(o), from, 1, rows*width, 0)
		default:
			k.slice(c.at(o), from, rows, width, 0)
		}
	}
	if a.v.constant != nil {
		g.p.static = append(g.p.static, in)
	} else {
		g.p.before = append(g.p.before, in)
	}
	return o
}

func (g *rowGen) emit(in instr) { g.p.code = append(g.p.code, in) }

// lop emits the instructions of one operation.
func (g *rowGen) lop(l *lop) {
	g.held = g.held[:0]
	if l.outs[0].size == 0 {
		return
	}
	switch l.form {
	case formMap:
		g.mapped(l)
	case formReduce:
		from := g.load(l.ins[0], l.outs[0].t)
		to := g.result(l.outs[0])
		r, n, per := l.reducer, l.n, l.rows/g.m
		if w, size := l.inner, sizeOf(l.outs[0].t); w > 1 {
			g.emit(func(c *rowCtx) {
				x, y := c.at(from), c.at(to)
				for i := range c.rows * per {
					r.cols(add(y, i*w, size), add(x, i*n*w, size), n, w)
				}
			})
			break
		}
		g.emit(func(c *rowCtx) { r.rows(c.at(to), c.at(from), c.rows*per, n) })
	case formArg:
		from := g.load(l.ins[0], l.node.inputs[0].shape.DType)
		to := g.result(l.outs[0])
		k, n, per, least := argOf(l.node.inputs[0].shape.DType, l.outs[0].t), l.n, l.rows/g.m, l.node.attr.(argAttr).min
		g.emit(func(c *rowCtx) { k(c.at(to), c.at(from), c.rows*per, n, least) })
	case formCollect:
		from := g.load(l.ins[0], l.outs[0].t)
		off := g.sum(l.outs[0], l.reducer, l.n)
		r, n, per := l.reducer, l.n, l.rows/g.m
		row := (l.outs[0].bytes() + g.p.block - 1) / g.p.block
		sum := g.reg(row)
		g.hold(sum, row)
		all := func(to, from ptr, rows int) { r.cols(to, from, rows, n) }
		if n == 1 {
			all = func(to, from ptr, rows int) { r.rows(to, from, 1, rows) }
		}
		g.emit(func(c *rowCtx) {
			acc := add(c.part, off, 1)
			if c.first {
				all(acc, c.at(from), c.rows*per)
				return
			}
			all(c.at(sum), c.at(from), c.rows*per)
			r.join(acc, c.at(sum), n)
		})
	case formConcat:
		g.concat(l)
	case formPad:
		g.pad(l)
	case formDot:
		g.dot(l)
	case formOuter:
		g.outer(l)
	}
	for _, h := range g.held {
		g.release(operand{kind: inReg, off: h.off}, h.bytes)
	}
	for _, a := range l.ins {
		g.retire(a, l.pos)
	}
}

// retire frees the registers that hold an operand if no later operation reads it.
func (g *rowGen) retire(a *access, pos int) {
	if o, ok := g.where[a.v]; ok && g.last[a.v] == pos {
		g.release(o, a.v.bytes()/g.m)
		delete(g.last, a.v)
	}
	key := a.key()
	if x, ok := g.loaded[key]; ok && g.uses[key] == pos {
		g.release(x.at, x.bytes)
		delete(g.loaded, key)
	}
}

// sum reserves an accumulator for v and returns its place among those of a chunk.
func (g *rowGen) sum(v *value, r *reducer, n int) int {
	off := g.p.partBytes
	g.p.partBytes += roundUp(n*sizeOf(v.t), cacheLine)
	g.p.sums = append(g.p.sums, partial{off: off, n: n, out: operand{kind: inMem, slot: v.slot}, r: r, bytes: v.bytes()})
	return off
}
