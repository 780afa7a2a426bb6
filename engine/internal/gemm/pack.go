package gemm

import "unsafe"

// gather copies elements that are step bytes apart.
func gather[T Float](to []T, from unsafe.Pointer, step int) {
	if step == int(unsafe.Sizeof(T(0))) {
		copy(to, unsafe.Slice((*T)(from), len(to)))
		return
	}
	for i := range to {
		to[i] = *at[T](from, i*step)
	}
}

// packRows copies il rows of kl elements of A to a place where they share few pages and no cache sets. A keeps its
// orientation, since kernels read it one element at a time.
func (g *job[T]) packRows(w *work[T], a operand, il, kl int) operand {
	size := int(unsafe.Sizeof(T(0)))
	pad := line / size
	if a.col == size || a.row != size { // row after row
		step := up(kl, pad) + pad
		w.a = grow(w.a, il*step)
		for i := range il {
			gather(w.a[i*step:i*step+kl], a.at(i, 0), a.col)
		}
		return operand{base(w.a), step * size, size}
	}
	// Column after column, one tile of rows after the other would need two steps; all rows at once need one.
	step := up(il, pad) + pad
	w.a = grow(w.a, kl*step)
	for k := range kl {
		gather(w.a[k*step:k*step+il], a.at(0, k), size)
	}
	return operand{base(w.a), size, step * size}
}

// packPanels copies the columns [j0,j1) of rows [k0,k1) of B into panels: the columns of a panel are contiguous, and
// the rows of a panel follow each other. Places of absent columns in the last panel hold anything.
func (g *job[T]) packPanels(w *work[T], to []T, b operand, j0, j1, k0, k1 int) {
	size := int(unsafe.Sizeof(T(0)))
	f, kl := g.f, k1-k0
	for j := j0; j < j1; j += f.panel {
		jl := min(f.panel, j1-j)
		dst := to[:kl*f.panel]
		to = to[kl*f.panel:]
		switch {
		case b.col != size:
			g.turnPanel(w, dst, operand{b.at(k0, j), b.row, b.col}, jl, kl)
		case jl == f.panel && f.copy != nil:
			t := &w.t
			t.from[0], t.to = b.at(k0, j), base(dst)
			t.step, t.blocks = b.row, kl
			f.copy(t)
		default:
			for k := range kl {
				copy(dst[k*f.panel:], unsafe.Slice((*T)(b.at(k0+k, j)), jl))
			}
		}
	}
}

// turnPanel packs one panel of kl rows and jl columns whose columns are not contiguous.
func (g *job[T]) turnPanel(w *work[T], dst []T, b operand, jl, kl int) {
	size := int(unsafe.Sizeof(T(0)))
	f, t := g.f, &w.t
	var best transposer
	for _, x := range f.transposes {
		if b.row == size && kl >= x.rows && (best.rows == 0 || jl <= x.rows) {
			best = x
		}
	}
	across := best.rows
	if across == 0 {
		for j := range jl {
			for k := range kl {
				dst[k*f.panel+j] = *(*T)(b.at(k, j))
			}
		}
		return
	}
	t.step = f.panel * size
	for j := 0; j < jl; j += across {
		for r := range across { // absent columns repeat the last one
			t.from[r] = b.at(0, min(j+r, jl-1))
		}
		t.to, t.blocks = base(dst[j:]), kl/across
		best.do(t)
		if kl%across == 0 {
			continue
		}
		for r := range across { // again up to the end
			t.from[r] = b.at(kl-across, min(j+r, jl-1))
		}
		t.to, t.blocks = base(dst[(kl-across)*f.panel+j:]), 1
		best.do(t)
	}
}
