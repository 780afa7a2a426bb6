package gemm

import (
	"math"
	"unsafe"
)

// block adds the terms [k0,k1) to the elements [i0,i1) x [j0,j1) of v.c, and ends with the epilogue at the last term of
// all. packed, if not nil, is the panels of B for these terms from column js on.
func (g *job[T]) block(w *work[T], v view, i0, i1, j0, j1, k0, k1 int, packed []T, js int) {
	size := int(unsafe.Sizeof(T(0)))
	p := &w.p
	*(*T)(unsafe.Pointer(&p.slope)) = g.slope
	p.cRow = v.c.row
	for kk := k0; kk < k1; kk += g.kc {
		kl := min(g.kc, k1-kk)
		p.k = kl
		p.flags = 0
		if g.add || kk > 0 {
			p.flags = flagAdd
		}
		if kk+kl == g.k {
			p.flags |= g.flags
		}
		for ii := i0; ii < i1; ii += g.mc {
			il := min(g.mc, i1-ii)
			a := operand{v.a.at(ii, kk), v.a.row, v.a.col}
			if g.packA {
				a = g.packRows(w, a, il, kl)
			}
			b := operand{v.b.p, v.b.row, v.b.col}
			if packed == nil {
				b.p = v.b.at(kk, 0)
			}
			if g.thin {
				g.along(p, a, b, v.c, ii, il, j0, j1)
				continue
			}
			for jj := j0; jj < j1; jj += g.f.panel {
				at := operand{nil, b.row, size}
				if packed != nil {
					at.p = base(packed[(jj-js)*(k1-k0)+(kk-k0)*g.f.panel:])
					at.row = g.f.panel * size
				} else {
					at.p = unsafe.Add(b.p, jj*size)
				}
				g.down(p, a, at, v.c, ii, il, jj, min(g.f.panel, j1-jj))
			}
		}
	}
	if g.fn != nil && k1 == g.k {
		for i := i0; i < i1; i++ {
			g.fn(unsafe.Slice((*T)(v.c.at(i, j0)), j1-j0))
		}
	}
}

// epilogue tells the kernel where the biases of the tile at (i,j) are.
func (g *job[T]) epilogue(p *params, i, j int) {
	if p.flags&flagBias != 0 {
		p.bias = unsafe.Pointer(&g.bias[j])
	}
	if p.flags&flagRowBias != 0 {
		p.rowBias = unsafe.Pointer(&g.rowBias[i])
	}
}

// down computes il rows from ii on of the jl columns from jj on, at most a panel: tiles follow each other down the
// columns. a starts at row ii, b at column jj.
func (g *job[T]) down(p *params, a, b, c operand, ii, il, jj, jl int) {
	size := int(unsafe.Sizeof(T(0)))
	f := g.f
	wd := f.widthFor(jl)
	p.columns(wd, jl)
	p.a, p.aRow, p.aCol = a.p, a.row, a.col
	p.b, p.bRow, p.bTile = b.p, b.row, 0
	p.c = c.at(ii, jj)
	p.biasTile = 0
	g.epilogue(p, ii, jj)
	i := il / f.rows * f.rows
	if i > 0 {
		p.tiles = i / f.rows
		p.aTile, p.cTile, p.rowBiasTile = f.rows*a.row, f.rows*c.row, f.rows*size
		wd.kernel[f.rows](p)
	}
	p.tiles = 1
	for _, r := range f.pieces[il-i] {
		p.a = a.at(i, 0)
		p.c = c.at(ii+i, jj)
		g.epilogue(p, ii+i, jj)
		wd.kernel[r](p)
		i += r
	}
}

// along computes il rows from ii on of the columns [j0,j1): tiles follow each other along the rows. a starts at row ii,
// b at column 0.
func (g *job[T]) along(p *params, a, b, c operand, ii, il, j0, j1 int) {
	size := int(unsafe.Sizeof(T(0)))
	f := g.f
	p.aRow, p.aCol, p.aTile = a.row, a.col, 0
	p.bRow = b.row
	p.rowBiasTile = 0
	for i := 0; i < il; {
		r := f.rows
		if il-i < r {
			r = f.pieces[il-i][0]
		}
		panel := f.panel
		if f.wide > 0 && r <= wideRows {
			panel = f.wide
		}
		p.a = a.at(i, 0)
		step := panel * size
		p.bTile, p.cTile, p.biasTile = step, step, step
		for j := j0; j < j1; {
			jl := min(panel, j1-j)
			p.tiles = max(1, (j1-j)/panel)
			wd := f.widthFor(jl)
			p.columns(wd, jl)
			p.b = unsafe.Add(b.p, j*size)
			p.c = c.at(ii+i, j)
			g.epilogue(p, ii+i, j)
			wd.kernel[r](p)
			j += jl * p.tiles
		}
		i += r
	}
}

// dotRows computes the rows [i0,i1) as dot products of rows of A, which are contiguous, with columns of B.
func (g *job[T]) dotRows(w *work[T], v view, i0, i1 int) {
	size := int(unsafe.Sizeof(T(0)))
	f, p := g.f, &w.p
	const strip = 256
	w.s = grow(w.s, strip)
	p.k, p.aRow = g.k, v.a.row
	p.last = g.k % f.dotLanes
	p.mask = 1<<p.last - 1
	b := v.b
	if b.row != size { // make the columns of B contiguous
		w.b = grow(w.b, g.n*g.k)
		for j := range g.n {
			gather(w.b[j*g.k:(j+1)*g.k], b.at(0, j), b.row)
		}
		b = operand{base(w.b), size, g.k * size}
	}
	for i := i0; i < i1; i += strip {
		rows := min(strip, i1-i)
		for j := range g.n {
			s := w.s[:rows]
			plain := !g.add && v.c.row == size
			if plain {
				s = unsafe.Slice((*T)(v.c.at(i, j)), rows)
			}
			full := rows / f.dotRows * f.dotRows
			p.a, p.b, p.c = v.a.at(i, 0), b.at(0, j), base(s)
			if full > 0 {
				p.tiles, p.aTile = full/f.dotRows, f.dotRows*v.a.row
				f.dot(p)
			}
			if full < rows {
				p.a, p.c = v.a.at(i+full, 0), base(s[full:])
				p.tiles, p.aTile = rows-full, v.a.row
				f.dot1(p)
			}
			g.finish(s, v.c, i, j, plain)
		}
	}
}

// finish does the epilogue of the elements of column j from row i on, and stores them unless they are in place.
func (g *job[T]) finish(s []T, c operand, i, j int, inPlace bool) {
	if g.add {
		for r := range s {
			s[r] += *(*T)(c.at(i+r, j))
		}
	}
	if g.bias != nil {
		b := g.bias[j]
		for r := range s {
			s[r] += b
		}
	}
	if g.rowBias != nil {
		for r, b := range g.rowBias[i:][:len(s)] {
			s[r] += b
		}
	}
	activate(s, g.act, g.slope)
	if g.fn != nil {
		g.fn(s)
	}
	if inPlace {
		return
	}
	for r, x := range s {
		*(*T)(c.at(i+r, j)) = x
	}
}

// empty is the product without terms.
func (g *job[T]) empty(w *work[T], v view) {
	if g.max && g.add {
		return // there is nothing greater
	}
	var nothing T
	if g.max {
		nothing = T(math.Inf(-1))
	}
	w.s = grow(w.s, g.m)
	for j := range g.n {
		for i := range w.s {
			w.s[i] = nothing
		}
		g.finish(w.s, v.c, 0, j, false)
	}
}
