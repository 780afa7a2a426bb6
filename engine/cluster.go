package engine

import "slices"

// cluster is a set of operations that become one step: a row program, or one opaque operation.
type cluster struct {
	lops     []*lop // by position
	m        int    // rows; 0 for an opaque operation
	min, max int    // positions
	mark     int    // of the last search that came by
	gone     bool   // merged into another
}

const (
	maxWidth  = 1 << 13 // elements of a row that is made wide by merging
	maxLops   = 1500    // operations of a row program
	maxVisits = 20000   // clusters looked at to rule out a cycle
)

// terminal reports whether the results of a form are there only when all rows are done.
func (l *lop) terminal() bool { return l.form == formCollect || l.form == formOuter }

// naturalRows is the number of rows that l has on its own: its first axis, or more axes if rows were too wide.
func (l *lop) naturalRows() int {
	a := l.ins[0]
	if l.form == formMap {
		a = &access{dims: l.ins[0].dims, strides: denseStrides(l.ins[0].dims)}
	}
	m := 1
	for _, d := range a.dims {
		if m > 1 && a.size()/m <= maxWidth && l.rows%m == 0 || l.rows%(m*d) != 0 {
			break
		}
		m *= d
	}
	if l.rows%m != 0 {
		return 1
	}
	return m
}

// fits reports whether l can run row by row, m rows, in a program that makes the values for which made is true.
func (l *lop) fits(m int, made func(*value) bool) bool {
	if l.rows%m != 0 {
		return false
	}
	for i, a := range l.ins {
		if l.form == formDot && i > 0 {
			if made(a.v) {
				return false // the matrix has to be there before the rows are
			}
			continue
		}
		p := a.rows(m)
		if p == nil {
			return false
		}
		if !made(a.v) {
			continue
		}
		if a.v.def.terminal() || !p.within(a.v.size, m) {
			return false
		}
	}
	return true
}

// within reports whether each row of p lies in the same row of a value of n elements and m rows.
func (p *pattern) within(n, m int) bool {
	if n%m != 0 {
		return false
	}
	w := n / m
	if m > 1 {
		step, ok := p.step()
		if !ok || step != w {
			return false
		}
	}
	low, high := p.start, p.start
	switch {
	case p.inner != nil:
		low, high = p.start+int(slices.Min(p.inner)), p.start+int(slices.Max(p.inner))
	case !p.repeat:
		high += p.width - 1
	}
	return low >= 0 && high < w
}

// width is the most elements that l has in a row.
func (l *lop) rowWidth(m int) int {
	w := 0
	if !l.terminal() {
		w = l.outs[0].size / m
	}
	for i, a := range l.ins {
		if l.form != formDot || i == 0 {
			w = max(w, a.size()/m)
		}
	}
	return w
}

// clusters groups the operations of a program. Each operation joins the clusters of its operands if it can run with
// them row by row and no cycle arises.
type clusters struct {
	all  []*cluster
	mark int
}

func (cs *clusters) build(lops []*lop, fuse bool) {
	for _, l := range lops {
		c := &cluster{lops: []*lop{l}, min: l.pos, max: l.pos}
		l.set = c
		cs.all = append(cs.all, c)
		if l.form == formOpaque {
			continue
		}
		c.m = l.naturalRows()
		if !fuse {
			continue
		}
		for _, a := range l.ins {
			if d := a.v.def; d != nil && d.set != nil && d.set != l.set && d.set.m > 0 {
				cs.merge(d.set, l.set)
			}
		}
	}
	cs.siblings()
	cs.all = slices.DeleteFunc(cs.all, func(c *cluster) bool { return c.gone })
}

// siblings merges clusters of the same rows that read the same value.
func (cs *clusters) siblings() {
	users := map[*value]*cluster{}
	for _, c := range cs.all {
		if c.gone || c.m <= 1 {
			continue
		}
		for _, l := range slices.Clone(c.lops) {
			for i, a := range l.ins {
				if a.v.constant != nil || l.form == formDot && i > 0 {
					continue
				}
				if p := a.rows(l.set.m); p == nil || p.shared() {
					continue
				}
				u := users[a.v]
				for u != nil && u.gone {
					u = u.lops[0].set
				}
				if u != nil && u != l.set && u.m == l.set.m {
					cs.merge(u, l.set)
				}
				users[a.v] = l.set
			}
		}
	}
}

// merge makes one cluster of two if that is possible.
func (cs *clusters) merge(a, b *cluster) bool {
	if len(a.lops)+len(b.lops) > maxLops {
		return false
	}
	made := func(v *value) bool { return v.def != nil && (v.def.set == a || v.def.set == b) }
	m := 0
	for _, try := range []int{a.m, b.m} {
		if a.m%try == 0 && b.m%try == 0 && (try > 1 || a.m == b.m) && fitAll(a, try, made) && fitAll(b, try, made) {
			m = try
			break
		}
	}
	if m == 0 || cs.between(a, b) || cs.between(b, a) {
		return false
	}
	if b.min < a.min {
		a, b = b, a
	}
	a.m = m
	a.min, a.max = min(a.min, b.min), max(a.max, b.max)
	for _, l := range b.lops {
		l.set = a
	}
	a.lops = append(a.lops, b.lops...)
	slices.SortFunc(a.lops, func(x, y *lop) int { return x.pos - y.pos })
	b.gone = true
	return true
}

func fitAll(c *cluster, m int, made func(*value) bool) bool {
	for _, l := range c.lops {
		if !l.fits(m, made) || m != c.m && l.rowWidth(m) > maxWidth {
			return false
		}
	}
	return true
}

// between reports whether something that is neither a nor b needs a and is needed by b.
func (cs *clusters) between(a, b *cluster) bool {
	cs.mark++
	a.mark, b.mark = cs.mark, cs.mark
	var stack []*cluster
	push := func(c *cluster) {
		for _, l := range c.lops {
			for _, x := range l.ins {
				if d := x.v.def; d != nil && d.set != nil && d.set.mark != cs.mark {
					d.set.mark = cs.mark
					stack = append(stack, d.set)
				}
			}
		}
	}
	push(b)
	for visits := 0; len(stack) > 0; visits++ {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if visits > maxVisits {
			return true
		}
		for _, l := range c.lops {
			for _, x := range l.ins {
				if x.v.def != nil && x.v.def.set == a {
					return true
				}
			}
		}
		push(c)
	}
	return false
}

// order sorts clusters so that operands come first.
func (cs *clusters) order() []*cluster {
	cs.mark++
	var out []*cluster
	var visit func(c *cluster)
	visit = func(c *cluster) {
		if c.mark == cs.mark {
			return
		}
		c.mark = cs.mark
		for _, l := range c.lops {
			for _, a := range l.ins {
				if d := a.v.def; d != nil && d.set != nil && d.set != c {
					visit(d.set)
				}
			}
		}
		out = append(out, c)
	}
	for _, c := range cs.all {
		visit(c)
	}
	return out
}
