package engine

import "github.com/gomlx/compute"

func (g *rowGen) mapped(l *lop) {
	var at [3]operand
	if l.node == nil { // a copy: what moves the elements moves them where they belong
		to := g.result(l.outs[0])
		g.dst = &to
		from := g.load(l.ins[0], l.outs[0].t)
		if g.dst != nil {
			g.dst = nil
			k, w := l.kernel, l.outs[0].size/g.m
			g.emit(func(c *rowCtx) { k(c.at(to), c.at(from), nil, nil, c.rows*w) })
		}
		return
	}
	if g.scalar(l) {
		return
	}
	for i, a := range l.ins {
		at[i] = g.load(a, l.node.inputs[i].shape.DType)
	}
	// The result may take the place of an operand of the same element size that is read for the last time.
	for i, a := range l.ins {
		if sizeOf(l.node.inputs[i].shape.DType) == sizeOf(l.outs[0].t) {
			g.retire(a, l.pos)
		}
	}
	to := g.result(l.outs[0])
	k, w := l.kernel, l.outs[0].size/g.m
	a, b, d := at[0], at[1], at[2]
	switch len(l.ins) {
	case 1:
		g.emit(func(c *rowCtx) { k(c.at(to), c.at(a), nil, nil, c.rows*w) })
	case 2:
		g.emit(func(c *rowCtx) { k(c.at(to), c.at(a), c.at(b), nil, c.rows*w) })
	default:
		g.emit(func(c *rowCtx) { k(c.at(to), c.at(a), c.at(b), c.at(d), c.rows*w) })
	}
}

// scalar emits an operation of two operands if one is the same element everywhere, which then is not repeated.
func (g *rowGen) scalar(l *lop) bool {
	if len(l.ins) != 2 {
		return false
	}
	t := l.node.inputs[0].shape.DType
	for i, s := range l.ins {
		k := withScalar[i][kernelKey{l.node.op, t, l.outs[0].t}]
		p := s.rows(g.m)
		if _, made := g.where[s.v]; k == nil || made || !p.repeat || !p.shared() {
			continue
		}
		a := l.ins[1-i]
		from := g.load(a, t)
		if sizeOf(t) == sizeOf(l.outs[0].t) {
			g.retire(a, l.pos)
		}
		to := g.result(l.outs[0])
		w, slot, off := l.outs[0].size/g.m, s.v.slot, p.start*sizeOf(t)
		g.emit(func(c *rowCtx) { k(c.at(to), c.at(from), add(c.mem[slot], off, 1), c.rows*w) })
		return true
	}
	return false
}

func (g *rowGen) concat(l *lop) {
	size := sizeOf(l.outs[0].t)
	k := pickers[size]
	froms := make([]operand, len(l.ins))
	for i, a := range l.ins {
		froms[i] = g.load(a, l.outs[0].t)
	}
	to := g.result(l.outs[0])
	per, total, off := l.rows/g.m, l.outs[0].size/l.rows, 0
	for i, from := range froms {
		n, at := l.chunks[i], off
		g.emit(func(c *rowCtx) { k.place(add(c.at(to), at, size), c.at(from), c.rows*per, n, total) })
		off += n
	}
}

func (g *rowGen) pad(l *lop) {
	size := sizeOf(l.outs[0].t)
	k := pickers[size]
	from := g.load(l.ins[0], l.outs[0].t)
	slot, off := l.ins[1].v.slot, l.ins[1].off
	to := g.result(l.outs[0])
	per, width, place := l.rows/g.m, l.width, l.place
	n, first := len(place), int(place[0])
	run := int(place[n-1])-first == n-1
	g.emit(func(c *rowCtx) {
		k.spread(c.at(to), add(c.mem[slot], off, size), 1, c.rows*per*width, 0)
		if run {
			k.place(add(c.at(to), first, size), c.at(from), c.rows*per, n, width)
			return
		}
		k.scatter(c.at(to), c.at(from), c.rows*per, len(place), width, place)
	})
}

// mapCost is the time of an elementwise operation, for one element, in the units of chunkRows.
func mapCost(op compute.OpType) int {
	switch op {
	case compute.OpTypeExp, compute.OpTypeExpm1, compute.OpTypeLog, compute.OpTypeLog1p, compute.OpTypeTanh,
		compute.OpTypeLogistic, compute.OpTypeErf, compute.OpTypeSin, compute.OpTypeCos:
		return 4
	case compute.OpTypePow, compute.OpTypeAtan2, compute.OpTypeRem:
		return 40
	}
	return 1
}
