package engine

import (
	"cmp"
	"fmt"
	"slices"
)

// plan gives values memory and clusters steps. A value that lives inside one row program gets none. Two values share
// memory if one is dead before the other is made.
func (c *compiler) plan(p *program, order []*cluster) {
	slot := func(v *value) int {
		if v.slot < 0 {
			v.slot = p.slots
			p.slots++
		}
		return v.slot
	}
	f := c.fn
	for _, n := range f.params {
		p.params = append(p.params, slot(c.views[n].v))
	}
	for _, n := range f.captures {
		p.caps = append(p.caps, slot(c.views[n].v))
	}
	for _, v := range p.outs {
		p.outputs = append(p.outputs, slot(v))
	}
	at := map[*cluster]int{}
	for i, s := range order {
		at[s] = i
	}
	var stored []*value
	for i, s := range order {
		for _, l := range s.lops {
			for _, a := range l.ins {
				v := a.v
				if v.def != nil && v.def.set == s {
					continue
				}
				if v.def != nil && at[v.def.set] > i {
					panic(fmt.Errorf("step %d needs step %d: fusing made a circle", i, at[v.def.set]))
				}
				if v.constant != nil && v.slot < 0 {
					p.fixed = append(p.fixed, fixed{slot: slot(v), constant: v.constant})
				}
				if v.slot < 0 {
					slot(v)
					v.first = at[v.def.set]
					stored = append(stored, v)
				}
				v.last = max(v.last, i)
			}
			for _, v := range l.outs {
				if v.slot < 0 && s.m == 0 { // an opaque step writes all its results, used or not
					slot(v)
					v.first, v.last = i, i
					stored = append(stored, v)
				}
			}
		}
	}
	p.arena = place(stored, func(v *value, off int) {
		p.fixed = append(p.fixed, fixed{slot: v.slot, off: off})
	})
	p.pairs = c.donations(p, order)
	for _, s := range order {
		p.infos = append(p.infos, describe(s))
		if s.m == 0 {
			p.steps = append(p.steps, opaqueStep{s.lops[0]})
			if c, ok := s.lops[0].opaque.(*control); ok {
				for _, sub := range c.progs {
					p.nested = max(p.nested, sub.arena+sub.nested)
				}
			}
		} else {
			p.steps = append(p.steps, genRows(s))
		}
	}
}

// place assigns offsets so that values in use at the same time do not overlap: largest first, at the lowest free place.
func place(values []*value, set func(*value, int)) (total int) {
	type block struct {
		v        *value
		off, end int
	}
	order := slices.Clone(values)
	slices.SortStableFunc(order, func(a, b *value) int { return cmp.Compare(b.bytes(), a.bytes()) })
	var placed []block // by offset
	for _, v := range order {
		need, off := roundUp(max(v.bytes(), 1), cacheLine), 0
		for _, b := range placed {
			if b.v.last < v.first || v.last < b.v.first {
				continue
			}
			if off+need <= b.off {
				break
			}
			off = max(off, b.end)
		}
		i, _ := slices.BinarySearchFunc(placed, off, func(b block, off int) int { return cmp.Compare(b.off, off) })
		placed = slices.Insert(placed, i, block{v, off, off + need})
		set(v, off)
		total = max(total, off+need)
	}
	return total
}

// donations finds, for each output, a parameter that is dead when the output is made, of the same size: if the parameter
// is donated, the output takes over its memory.
func (c *compiler) donations(p *program, order []*cluster) []int {
	pairs := make([]int, len(p.outs))
	taken := map[int]bool{}
	at := map[*cluster]int{}
	for i, s := range order {
		at[s] = i
	}
	for o, v := range p.outs {
		pairs[o] = -1
		if v.size == 0 {
			continue
		}
		made := at[v.def.set]
		for i, n := range c.fn.params {
			in := c.views[n].v
			if taken[i] || in.size != v.size || in.t != v.t || in.last > made {
				continue
			}
			if in.last == made && !inPlace(v, in) {
				continue
			}
			pairs[o], taken[i] = i, true
			break
		}
	}
	return pairs
}

// inPlace reports whether the step that makes v may write it where it reads in: every row of in is read before the same
// row of v is written.
func inPlace(v, in *value) bool {
	s := v.def.set
	if s.m == 0 {
		return false
	}
	for _, l := range s.lops {
		for i, a := range l.ins {
			if a.v != in {
				continue
			}
			if v.def.terminal() {
				continue // written when all rows are done
			}
			if l.form == formDot && i > 0 || l.pos > v.def.pos || !a.isDense() || a.size() != in.size {
				return false
			}
			if l.pos == v.def.pos && l.form != formMap {
				return false
			}
		}
	}
	return true
}
