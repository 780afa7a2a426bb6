package gemm

import (
	"fmt"
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
	"github.com/gfnem/gfnem/engine/internal/par"
)

// Dim is an axis of a batch: N products, of matrices A, B and C elements further each time. A step of 0 for a or b uses
// the same matrix again.
type Dim struct{ N, A, B, C int }

// Batch computes one product for each place in a batch of axes dims, the last one changing fastest, where c, a and b are
// the matrices of the first. Results do not overlap. Biases are the same for all.
func Batch[T Float](dims []Dim, c, a, b Matrix[T], o Options[T]) {
	batchAt(cpu.Use, dims, c, a, b, o)
}

// Batch32 is Batch of float32.
func Batch32(dims []Dim, c, a, b Matrix[float32], o Options[float32]) {
	batchAt(cpu.Use, dims, c, a, b, o)
}

// Batch64 is Batch of float64.
func Batch64(dims []Dim, c, a, b Matrix[float64], o Options[float64]) {
	batchAt(cpu.Use, dims, c, a, b, o)
}

// maxDims is the most axes of a batch, after axes that continue each other have been joined.
const maxDims = 6

type batch struct {
	dims  [maxDims]Dim // of what is outside the run
	axes  int
	inner Dim // the last axis
}

func batchAt[T Float](level cpu.Level, dims []Dim, c, a, b Matrix[T], o Options[T]) {
	check(c, a, b, &o)
	count, last := 1, Dim{}
	for _, d := range dims {
		if d.N < 0 || d.A < 0 || d.B < 0 || d.C < 0 {
			panic(fmt.Sprintf("gemm: negative size or step in batch axis %+v", d))
		}
		count *= d.N
		last.A += max(0, d.N-1) * d.A
		last.B += max(0, d.N-1) * d.B
		last.C += max(0, d.N-1) * d.C
	}
	if count == 0 || c.Rows == 0 || c.Cols == 0 {
		return
	}
	checkExtent("C", c, last.C)
	checkExtent("A", a, last.A)
	checkExtent("B", b, last.B)
	g := getJob[T]()
	turned := g.set(level, c, a, b, &o)
	g.setDims(dims, int(unsafe.Sizeof(T(0))), turned)
	switch {
	case count < chunkGoal && g.cost >= splitCost:
		first := g.view
		for i := range count {
			g.view = g.item(first, i)
			g.product()
		}
	case count*g.cost < splitCost:
		g.some(&g.own, 0, count)
	default:
		par.For(count, max(1, chunkCost/max(1, g.cost)), g.items)
	}
	g.free()
}

// setDims joins axes that continue each other and turns steps into bytes.
func (b *batch) setDims(dims []Dim, size int, turned bool) {
	b.axes, b.inner = 0, Dim{N: 1}
	for i := len(dims) - 1; i >= 0; i-- {
		d := dims[i]
		if d.N == 1 {
			continue
		}
		d.A, d.B, d.C = d.A*size, d.B*size, d.C*size
		if turned {
			d.A, d.B = d.B, d.A
		}
		last := &b.inner
		if b.axes > 0 {
			last = &b.dims[b.axes-1]
		}
		switch {
		case *last == Dim{N: 1}:
			*last = d
		case d.A == last.N*last.A && d.B == last.N*last.B && d.C == last.N*last.C:
			last.N *= d.N
		default:
			if b.axes == maxDims {
				panic(fmt.Sprintf("gemm: a batch of more than %d axes", maxDims+1))
			}
			b.dims[b.axes] = d
			b.axes++
		}
	}
}

// item is where product i of the batch reads and writes.
func (b *batch) item(v view, i int) view {
	move := func(d Dim, x int) {
		v.a.p = unsafe.Add(v.a.p, x*d.A)
		v.b.p = unsafe.Add(v.b.p, x*d.B)
		v.c.p = unsafe.Add(v.c.p, x*d.C)
	}
	move(b.inner, i%b.inner.N)
	i /= b.inner.N
	for _, d := range b.dims[:b.axes] {
		move(d, i%d.N)
		i /= d.N
	}
	return v
}

// doItems computes products lo to hi.
func (g *job[T]) doItems(lo, hi int) {
	w := getWork[T]()
	g.some(w, lo, hi)
	w.free()
}

func (g *job[T]) some(w *work[T], lo, hi int) {
	if g.k > 0 && !g.dots && !g.packA && g.n <= g.f.panel && g.m <= 2*g.f.rows && g.k <= g.kc && g.fn == nil {
		for i := lo; i < hi; {
			n := min(hi-i, g.inner.N-i%g.inner.N)
			g.tiny(w, g.item(g.view, i), n)
			i += n
		}
		return
	}
	for i := lo; i < hi; i++ {
		g.serial(w, g.item(g.view, i))
	}
}

// tiny computes n products that follow each other along the inner axis, each of a few tiles. Kernels go from product to
// product.
func (g *job[T]) tiny(w *work[T], v view, n int) {
	size := int(unsafe.Sizeof(T(0)))
	group := max(1, near/(g.k*g.f.panel*size)) // products whose B is packed at once
	f, p, d := g.f, &w.p, g.inner
	wd := f.widthFor(g.n)
	*(*T)(unsafe.Pointer(&p.slope)) = g.slope
	p.columns(wd, g.n)
	p.k, p.aRow, p.aCol = g.k, v.a.row, v.a.col
	p.bRow, p.cRow = v.b.row, v.c.row
	p.aTile, p.bTile, p.cTile = d.A, d.B, d.C
	p.biasTile, p.rowBiasTile = 0, 0
	p.flags = g.flags
	if g.add {
		p.flags |= flagAdd
	}
	each := n
	if g.packB {
		each = group
		w.b = grow(w.b, group*g.k*f.panel)
		p.bRow, p.bTile = f.panel*size, g.k*f.panel*size
	}
	for x := 0; x < n; x += each {
		p.tiles = min(each, n-x)
		p.b = unsafe.Add(v.b.p, x*d.B)
		if g.packB {
			for y := range p.tiles {
				b := v.b
				b.p = unsafe.Add(b.p, (x+y)*d.B)
				g.packPanels(w, w.b[y*g.k*f.panel:], b, 0, g.n, 0, g.k)
			}
			p.b = base(w.b)
		}
		for i := 0; i < g.m; {
			r := f.rows
			if g.m-i < r {
				r = f.pieces[g.m-i][0]
			}
			p.a = unsafe.Add(v.a.at(i, 0), x*d.A)
			p.c = unsafe.Add(v.c.at(i, 0), x*d.C)
			g.epilogue(p, i, 0)
			wd.kernel[r](p)
			i += r
		}
	}
}
