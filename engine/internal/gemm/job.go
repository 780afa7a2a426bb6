package gemm

import (
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// operand is a matrix in memory, its strides in bytes.
type operand struct {
	p        unsafe.Pointer
	row, col int
}

// at is the address of element (i,j).
func (o operand) at(i, j int) unsafe.Pointer { return unsafe.Add(o.p, i*o.row+j*o.col) }

func (o operand) t() operand { return operand{o.p, o.col, o.row} }

// view is where a product reads and writes.
type view struct{ a, b, c operand }

// job is one product, or a batch of them, on its way.
type job[T Float] struct {
	view
	f       *family
	m, n, k int
	add     bool
	max     bool
	bias    []T
	rowBias []T
	act     Activation
	slope   T
	fn      func([]T)
	flags   int // of the last block of k: the epilogue

	plan
	own work[T] // of the goroutine that called
	// Of a product cut among threads: B or part of it, packed, or sums of parts of k; the part at hand.
	shared               []T
	js, je, ks, ke       int
	rowsEach, colsEach   int
	rowChunks, colChunks int
	batch

	chunk, packer, slice, items func(lo, hi int)
}

// plan says how a product is computed. It depends on sizes and strides alone.
type plan struct {
	dots         bool // as dot products along contiguous rows of A
	thin         bool // few rows: tiles follow each other along rows
	packA, packB bool
	kc, mc       int // block of k and of rows
	cost         int // as many multiply-adds of float32 with AVX-512 take as long, about
}

// Limits that cut work. A core does about 60 units of cost in a nanosecond.
const (
	splitCost = 4 << 20  // below: not worth a second thread
	chunkCost = 1 << 20  // of a chunk, at least
	chunkGoal = 8        // chunks, if they are not too small
	sharedMax = 1 << 20  // elements of B packed at once for all threads
	serialMax = 1 << 15  // and for one
	fewTiles  = 16       // times the rows of a tile: too few rows for packing B to pay
	near      = 16 << 10 // bytes that stay in the first cache
)

// asDots says whether n columns of sums of k terms are better done as dot products.
func (f *family) asDots(n, k int) bool {
	return f.dot != nil && (n == 1 && k >= 16 || n <= 4 && k >= 64)
}

// set prepares for the product of a and b, and says whether it has turned it into that of the transposes.
func (g *job[T]) set(level cpu.Level, c, a, b Matrix[T], o *Options[T]) (turned bool) {
	size := int(unsafe.Sizeof(T(0)))
	op := func(m Matrix[T]) operand { return operand{base(m.Data), m.RowStride * size, m.ColStride * size} }
	g.f = familyOf[T](level, o.Max)
	g.m, g.n, g.k = c.Rows, c.Cols, a.Cols
	g.a, g.b, g.c = op(a), op(b), op(c)
	g.add, g.max, g.bias, g.rowBias = o.Add, o.Max, o.Bias, o.RowBias
	g.act, g.slope, g.fn = o.Act, o.Slope, o.Func

	// A stride along one element means nothing; these values are what the choices below like best.
	if g.n == 1 {
		g.b.col, g.c.col = size, size
	}
	if g.k == 1 {
		g.a.col = size
	}
	switch {
	case g.n > g.m && g.b.row == size && g.b.col != size && g.f.asDots(g.m, g.k): // columns of B are contiguous
		g.turn()
		turned = true
	case g.n == 1 && g.m > 1 && g.a.row == size && g.a.col != size && g.c.row == size: // so are those of A
		g.turn()
		turned = true
	}
	g.flags = 0
	if g.bias != nil {
		g.flags |= flagBias
	}
	if g.rowBias != nil {
		g.flags |= flagRowBias
	}
	switch g.act {
	case ReLU:
		g.flags |= flagReLU
	case Leaky:
		g.flags |= flagLeaky
	}
	g.plan = g.choose(size)
	return turned
}

// turn makes the job the transpose of what it was.
func (g *job[T]) turn() {
	g.m, g.n = g.n, g.m
	g.a, g.b, g.c = g.b.t(), g.a.t(), g.c.t()
	g.bias, g.rowBias = g.rowBias, g.bias
}

func (g *job[T]) choose(size int) (p plan) {
	f, m, n, k := g.f, g.m, g.n, g.k
	if k == 0 {
		return p
	}
	compute := m * up(n, 8) * (k + 8)
	if f.asDots(n, k) {
		compute = m * n * (k + 16)
	}
	memory := 4 * (m*k + k*n + m*n) * size / 4
	p.cost = compute*f.speed + memory
	p.kc, p.mc = up((k+(k-1)/f.kc)/((k-1)/f.kc+1), 4), f.mc
	if g.a.col == size && f.asDots(n, k) {
		p.dots = true
		return p
	}
	whole := k*g.b.row <= near // all of B stays in the first cache
	few := m <= fewTiles*f.rows
	p.packB = g.b.col != size || !few && !whole && g.b.row > 1024
	p.packA = n > 8*f.panel && !(g.a.col == size && g.a.row <= 512)
	if !p.packB && few && n > f.panel {
		p.thin = true
		if !whole {
			p.kc = min(p.kc, 128)
		}
	}
	if !p.packA {
		p.mc = up(min(max(p.mc, (64<<10)/k), 2048), f.rows)
	}
	return p
}

// up rounds n up to a multiple of d.
func up(n, d int) int { return (n + d - 1) / d * d }
