package engine

import "slices"

// access says how an operation reads a value: the element at position (i0, i1, ...) of dims is number
// off + i0*strides[0] + i1*strides[1] + ... of the value. Reshapes, broadcasts, transposes, slices and reversals are
// accesses; they move no data.
type access struct {
	v       *value
	off     int
	dims    []int
	strides []int

	local map[int]*pattern // by number of rows
}

// denseStrides are those of a row-major tensor.
func denseStrides(dims []int) []int {
	s := make([]int, len(dims))
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= dims[i]
	}
	return s
}

func dense(v *value, dims []int) *access {
	return &access{v: v, dims: slices.Clone(dims), strides: denseStrides(dims)}
}

// isDense reports whether the elements are contiguous and in order.
func (a *access) isDense() bool {
	n := 1
	for i := len(a.dims) - 1; i >= 0; i-- {
		if a.dims[i] != 1 && a.strides[i] != n {
			return false
		}
		n *= a.dims[i]
	}
	return true
}

func (a *access) size() int { return product(a.dims) }

// collapse drops axes of size 1 and joins neighbours that are one axis.
func (a *access) collapse() (dims, strides []int) {
	for i, d := range a.dims {
		if d == 1 {
			continue
		}
		if k := len(dims) - 1; k >= 0 && strides[k] == d*a.strides[i] {
			dims[k] *= d
			strides[k] = a.strides[i]
			continue
		}
		dims, strides = append(dims, d), append(strides, a.strides[i])
	}
	return dims, strides
}

// reshape returns the access under new dimensions, or nil if it is not one.
func (a *access) reshape(dims []int) *access {
	out := &access{v: a.v, off: a.off, dims: slices.Clone(dims), strides: make([]int, len(dims))}
	if a.size() == 0 {
		return out
	}
	old, strides := a.collapse()
	// Cut each old axis into new ones, from the last.
	k, rest := len(old)-1, 0
	if k >= 0 {
		rest = old[k]
	}
	for i := len(dims) - 1; i >= 0; i-- {
		if dims[i] == 1 {
			continue
		}
		if rest == 1 {
			k--
			rest = old[k]
		}
		if rest%dims[i] != 0 {
			return nil
		}
		out.strides[i] = strides[k] * (old[k] / rest)
		rest /= dims[i]
	}
	return out
}

// permute reorders the axes: axis i of the result is axis perm[i].
func (a *access) permute(perm []int) *access {
	out := &access{v: a.v, off: a.off, dims: make([]int, len(perm)), strides: make([]int, len(perm))}
	for i, p := range perm {
		out.dims[i], out.strides[i] = a.dims[p], a.strides[p]
	}
	return out
}

// broadcast maps axis i to axis axes[i] of dims; the other axes, and those of size 1, repeat.
func (a *access) broadcast(dims, axes []int) *access {
	out := &access{v: a.v, off: a.off, dims: slices.Clone(dims), strides: make([]int, len(dims))}
	for i, to := range axes {
		if a.dims[i] != 1 {
			out.strides[to] = a.strides[i]
		}
	}
	return out
}

// spread aligns an operand of an elementwise operation with its result: a scalar, or of the same rank.
func (a *access) spread(dims []int) *access {
	if len(a.dims) == 0 {
		return a.broadcast(dims, nil)
	}
	axes := make([]int, len(dims))
	for i := range axes {
		axes[i] = i
	}
	return a.broadcast(dims, axes)
}

func (a *access) slice(s sliceAttr, dims []int) *access {
	out := &access{v: a.v, off: a.off, dims: slices.Clone(dims), strides: make([]int, len(dims))}
	for i := range dims {
		out.off += s.starts[i] * a.strides[i]
		out.strides[i] = a.strides[i] * s.strides[i]
	}
	return out
}

func (a *access) reverse(axes []int) *access {
	out := &access{v: a.v, off: a.off, dims: slices.Clone(a.dims), strides: slices.Clone(a.strides)}
	for _, i := range axes {
		out.off += max(a.dims[i]-1, 0) * a.strides[i]
		out.strides[i] = -a.strides[i]
	}
	return out
}

// pattern is an access cut into rows: row r starts at outer(r), and holds the elements at inner[j] from there.
type pattern struct {
	dims, strides []int // of the rows
	width         int
	inner         []int32 // nil if 0, 1, 2, ...
	piece         int     // inner is pieces of so many elements that follow one another
	repeat        bool    // every element of inner is the same
	start         int     // inner[0]
}

// shared reports whether all rows are the same.
func (p *pattern) shared() bool {
	for i, s := range p.strides {
		if s != 0 && p.dims[i] > 1 {
			return false
		}
	}
	return true
}

// step is the distance from row to row, if there is one such.
func (p *pattern) step() (int, bool) {
	switch len(p.dims) {
	case 0:
		return 0, true
	case 1:
		return p.strides[0], true
	}
	return 0, false
}

// rows returns the access as m rows, or nil if it cannot be cut so. The offset is in start.
func (a *access) rows(m int) *pattern {
	if p, ok := a.local[m]; ok {
		return p
	}
	if a.local == nil {
		a.local = map[int]*pattern{}
	}
	p := a.cut(m)
	a.local[m] = p
	return p
}

func (a *access) cut(m int) *pattern {
	n := a.size()
	if n == 0 || n%m != 0 {
		return nil
	}
	dims, strides := a.collapse()
	p := &pattern{width: n / m, start: a.off}
	left, i := m, 0
	for ; left > 1; i++ {
		d := dims[i]
		switch {
		case left%d == 0:
			p.dims, p.strides = append(p.dims, d), append(p.strides, strides[i])
			left /= d
		case d%left == 0:
			p.dims, p.strides = append(p.dims, left), append(p.strides, strides[i]*(d/left))
			dims, strides = slices.Clone(dims), slices.Clone(strides)
			dims[i] = d / left
			left = 1
			i--
		default:
			return nil
		}
	}
	dims, strides = dims[i:], strides[i:]
	if o := (&access{dims: p.dims, strides: p.strides}); true {
		p.dims, p.strides = o.collapse()
	}
	if len(dims) == 0 || len(dims) == 1 && strides[0] == 1 {
		p.repeat = p.width == 1
		return p
	}
	if len(dims) == 1 && strides[0] == 0 {
		p.repeat = true
		return p
	}
	if p.width > 1<<20 {
		return nil
	}
	p.inner, p.piece = make([]int32, p.width), 1
	fillIndex(p.inner, dims, strides)
	if last := len(dims) - 1; strides[last] == 1 {
		p.piece = dims[last]
	}
	return p
}

// fillIndex lists the positions of the elements of dims, in order.
func fillIndex(to []int32, dims, strides []int) {
	if len(dims) == 0 {
		to[0] = 0
		return
	}
	n := len(to) / dims[0]
	fillIndex(to[:n], dims[1:], strides[1:])
	for i := 1; i < dims[0]; i++ {
		for j, v := range to[:n] {
			to[i*n+j] = v + int32(i*strides[0])
		}
	}
}
