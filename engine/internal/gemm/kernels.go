package gemm

import (
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// params is what a kernel reads. Strides and steps are in bytes.
//
// A kernel computes tiles tiles of the rows and columns it is made for. Tile t starts at a+t*aTile, b+t*bTile and so on.
type params struct {
	k           int            // terms of each sum, at least 1
	a           unsafe.Pointer // first element of A
	aRow, aCol  int
	b           unsafe.Pointer // first row of B, with contiguous columns
	bRow        int
	c           unsafe.Pointer
	cRow        int
	bias        unsafe.Pointer // with flagBias
	rowBias     unsafe.Pointer // with flagRowBias
	flags       int
	mask        uint64 // bit j: column j is there
	last        int    // columns in the last vector; in a dot product, terms in the last vector
	cols        int    // columns
	slope       [8]byte
	tiles       int
	aTile       int
	bTile       int
	cTile       int
	biasTile    int
	rowBiasTile int
}

const (
	flagAdd = 1 << iota
	flagBias
	flagRowBias
	flagReLU
	flagLeaky
)

type kernel func(p *params)

// transposeParams is what kernels that pack read: a transposer takes its rows and the distance between
// columns of the result, copy takes from[0] and the distance between rows of the source.
type transposeParams struct {
	from   [8]unsafe.Pointer
	to     unsafe.Pointer
	step   int
	blocks int
}

// transposer turns so many rows into columns.
type transposer struct {
	rows int
	do   func(p *transposeParams)
}

// maxRows is the most rows of a tile.
const maxRows = 12

// width lists the kernels for tiles of up to cols columns, by number of rows.
type width struct {
	cols, last int // last: columns of the last vector
	kernel     [maxRows + 1]kernel
}

// family is the kernels of one element type at one level.
type family struct {
	widths []width // growing; up to panel, then possibly one for few rows
	rows   int     // rows of a tile
	panel  int     // columns of a tile
	wide   int     // columns of a tile of at most wideRows rows; 0: none
	// pieces cuts fewer than rows rows into tiles that exist.
	pieces [maxRows][]int

	kc int // terms of a sum done in one go, so that a panel of B stays in the first cache
	mc int // rows of A that stay in the second cache

	dot      kernel // dotRows dot products; nil: none
	dot1     kernel // one
	dotRows  int
	dotLanes int

	transposes []transposer             // the largest first
	copy       func(p *transposeParams) // rows of panel columns; nil: none

	// speed is how many multiply-adds take as long as one of float32 with AVX-512, about.
	speed int
	peak  func(times int)
	flops int // of one time of peak
}

// wideRows is the most rows of a tile of wide columns.
const wideRows = 6

// familyOf returns the kernels for T at a level, of products or of maxima.
func familyOf[T Float](level cpu.Level, most bool) *family {
	is32 := unsafe.Sizeof(T(0)) == 4
	switch {
	case is32 && most:
		return &maxima32[level]
	case most:
		return &maxima64[level]
	case is32:
		return &families32[level]
	}
	return &families64[level]
}

// widthFor returns the narrowest kernels for n columns, n at most panel, or wide.
func (f *family) widthFor(n int) *width {
	for i := range f.widths {
		if w := &f.widths[i]; n <= w.cols {
			return w
		}
	}
	panic("gemm: no kernel is so wide")
}

// columns tells a kernel of width w how many columns there are.
func (p *params) columns(w *width, n int) {
	p.cols = n
	p.mask = 1<<n - 1
	if n >= 64 {
		p.mask = ^uint64(0)
	}
	p.last = n - (w.cols - w.last)
}

// cut fills in pieces from the rows of kernels that exist.
func (f family) cut(sizes ...int) family {
	for r := 1; r < f.rows; r++ {
		best := []int(nil)
		for _, s := range sizes { // the largest first
			if s > r {
				continue
			}
			piece := append([]int{s}, f.pieces[r-s]...)
			// Fewest tiles, then the largest smallest one: a tile of few rows keeps the units waiting.
			if best == nil || len(piece) < len(best) || len(piece) == len(best) && least(piece) > least(best) {
				best = piece
			}
		}
		f.pieces[r] = best
	}
	return f
}

func least(s []int) int {
	m := s[0]
	for _, v := range s {
		m = min(m, v)
	}
	return m
}
