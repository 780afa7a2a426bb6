package gemm

import (
	"math"
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/par"
)

// product computes the job's product, on several threads if it is large.
func (g *job[T]) product() {
	if g.k == 0 || g.cost < splitCost {
		g.serial(&g.own, g.view)
		return
	}
	if g.dots {
		g.rowsEach = max(1, chunkCost/max(1, g.cost/g.m))
		par.For(g.m, g.rowsEach, g.chunk)
		return
	}
	g.grid(g.n)
	if g.rowChunks*g.colChunks < chunkGoal/2 && g.m*g.n <= 16<<10 && g.k >= 4*g.f.kc {
		g.splitSum()
		return
	}
	for g.js = 0; g.js < g.n; g.js = g.je {
		g.je = min(g.n, g.js+g.superCols())
		g.grid(g.je - g.js)
		for g.ks = 0; g.ks < g.k; g.ks = g.ke {
			g.ke = min(g.k, g.ks+g.superTerms())
			if g.packB {
				g.shared = grow(g.shared, up(g.je-g.js, g.f.panel)*(g.ke-g.ks))
				panels := (g.je - g.js + g.f.panel - 1) / g.f.panel
				par.For(panels, max(1, (32<<10)/(g.f.panel*(g.ke-g.ks))), g.packer)
			}
			par.For(g.rowChunks*g.colChunks, 1, g.chunk)
		}
	}
}

// serial computes one product on this thread.
func (g *job[T]) serial(w *work[T], v view) {
	switch {
	case g.k == 0:
		g.empty(w, v)
	case g.dots:
		g.dotRows(w, v, 0, g.m)
	case !g.packB:
		g.block(w, v, 0, g.m, 0, g.n, 0, g.k, nil, 0)
	default:
		var je, ke int
		for js := 0; js < g.n; js = je {
			je = min(g.n, js+g.superCols())
			for ks := 0; ks < g.k; ks = ke {
				ke = min(g.k, ks+max(g.kc, min(g.superTerms(), serialMax/(je-js)/g.kc*g.kc)))
				w.b = grow(w.b, up(je-js, g.f.panel)*(ke-ks))
				g.packPanels(w, w.b, v.b, js, je, ks, ke)
				g.block(w, v, 0, g.m, js, je, ks, ke, w.b, js)
			}
		}
	}
}

// superCols and superTerms are the columns and rows of B that are packed at once.
func (g *job[T]) superCols() int {
	if !g.packB {
		return g.n
	}
	return max(sharedMax/min(g.kc, g.k)/g.f.panel, 1) * g.f.panel
}

func (g *job[T]) superTerms() int {
	if !g.packB {
		return g.k
	}
	return max(sharedMax/up(min(g.n, g.superCols()), g.f.panel)/g.kc, 1) * g.kc
}

// grid cuts m rows and n columns into chunks.
func (g *job[T]) grid(n int) {
	f := g.f
	all := max(1, g.cost/g.n*n/chunkCost)                     // no more: chunks would be too small
	rows := max(1, min(all, (g.m+g.mc-1)/g.mc*2, g.m/f.rows)) // half a block of rows each, at least
	g.rowsEach = up((g.m+rows-1)/rows, f.rows)
	g.rowChunks = (g.m + g.rowsEach - 1) / g.rowsEach
	cols := 1
	if g.rowChunks < chunkGoal {
		cols = min(all, chunkGoal) / g.rowChunks
		cols = max(1, min(cols, n/f.panel))
	}
	g.colsEach = up((n+cols-1)/cols, f.panel)
	g.colChunks = (n + g.colsEach - 1) / g.colsEach
}

// doChunk computes chunks of a product cut among threads.
func (g *job[T]) doChunk(lo, hi int) {
	w := getWork[T]()
	defer w.free()
	if g.dots {
		g.dotRows(w, g.view, lo, hi)
		return
	}
	packed := g.shared
	if !g.packB {
		packed = nil
	}
	for x := lo; x < hi; x++ {
		i, j := x/g.colChunks*g.rowsEach, g.js+x%g.colChunks*g.colsEach
		g.block(w, g.view, i, min(i+g.rowsEach, g.m), j, min(j+g.colsEach, g.je), g.ks, g.ke, packed, g.js)
	}
}

// doPack packs panels lo to hi of the part of B at hand.
func (g *job[T]) doPack(lo, hi int) {
	w := getWork[T]()
	defer w.free()
	panel, kl := g.f.panel, g.ke-g.ks
	g.packPanels(w, g.shared[lo*panel*kl:], g.b, g.js+lo*panel, min(g.js+hi*panel, g.je), g.ks, g.ke)
}

// splitSum computes a product of few elements and many terms: slices of the sums at the same time, then their totals, in
// order.
func (g *job[T]) splitSum() {
	slices := min(chunkGoal, max(2, g.cost/chunkCost))
	g.ke = up((g.k+slices-1)/slices, g.kc)
	slices = (g.k + g.ke - 1) / g.ke
	g.shared = grow(g.shared, slices*g.m*g.n)
	par.For(slices, 1, g.slice)

	// The total of a row is the product of a row of ones with the rows of the slices; of maxima, -0 takes the place of 1,
	// since x + -0 is x.
	size := int(unsafe.Sizeof(T(0)))
	w := &g.own
	p := &w.p
	*(*T)(unsafe.Pointer(&p.slope)) = g.slope
	w.s = grow(w.s, 1)
	w.s[0] = 1
	if g.max {
		w.s[0] = T(math.Copysign(0, -1))
	}
	p.k, p.a, p.aRow, p.aCol, p.aTile = slices, base(w.s), 0, 0, 0
	p.bRow, p.bTile = g.m*g.n*size, g.n*size
	p.cRow, p.cTile = g.c.row, g.c.row
	p.biasTile, p.rowBiasTile = 0, size
	p.tiles = g.m
	p.flags = g.flags
	if g.add {
		p.flags |= flagAdd
	}
	for j := 0; j < g.n; j += g.f.panel {
		jl := min(g.f.panel, g.n-j)
		wd := g.f.widthFor(jl)
		p.columns(wd, jl)
		p.b, p.c = base(g.shared[j:]), g.c.at(0, j)
		g.epilogue(p, 0, j)
		wd.kernel[1](p)
	}
	if g.fn != nil {
		for i := range g.m {
			g.fn(unsafe.Slice((*T)(g.c.at(i, 0)), g.n))
		}
	}
}

// doSlice computes slices of the sums: each a product of its own, to be added up later.
func (g *job[T]) doSlice(lo, hi int) {
	size := int(unsafe.Sizeof(T(0)))
	for x := lo; x < hi; x++ {
		ks := x * g.ke
		s := getJob[T]()
		s.f, s.plan = g.f, g.plan
		s.m, s.n, s.k = g.m, g.n, min(g.ke, g.k-ks)
		s.a, s.b = g.a, g.b
		s.a.p, s.b.p = g.a.at(0, ks), g.b.at(ks, 0)
		s.c = operand{base(g.shared[x*g.m*g.n:]), g.n * size, size}
		s.add, s.act, s.flags = false, None, 0
		s.serial(&s.own, s.view)
		s.free()
	}
}
