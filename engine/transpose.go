package engine

import (
	"github.com/gfnem/gfnem/engine/internal/par"
	"github.com/gfnem/gfnem/engine/internal/vec"
)

// transposes reports whether an access jumps along its last axis while another one is contiguous: read in order it
// would use one element of each cache line.
func (a *access) transposes() bool {
	dims, strides := a.collapse()
	k := len(dims) - 1
	if k < 1 || a.size() < 1<<12 || strides[k] == 0 || strides[k] == 1 {
		return false
	}
	for i, s := range strides {
		if s == 1 && dims[i] >= 4 && dims[k] >= 4 {
			return true
		}
	}
	return false
}

// transposed copies such an access: matrices [q,p] become [p,q], tile by tile.
type transposed struct{}

func (transposed) bind(fr *frame, l *lop) func() {
	a, v := l.ins[0], l.outs[0]
	dims, strides := a.collapse()
	out := denseStrides(dims)
	last := len(dims) - 1
	p := 0
	for i, s := range strides {
		if s == 1 {
			p = i
		}
	}
	var outer walk // positions in the input; those in the output run along
	var to walk
	for i, d := range dims {
		if i != p && i != last {
			outer.dims, outer.strides = append(outer.dims, d), append(outer.strides, strides[i])
			to.dims, to.strides = append(to.dims, d), append(to.strides, out[i])
		}
	}
	size := sizeOf(v.t)
	m := matrixCopy{rows: dims[p], cols: dims[last], fromStep: strides[last], toStep: out[p], size: size}
	// A unit of work is a band of rows of one matrix.
	const band = 64
	bands := (m.rows + band - 1) / band
	n := product(outer.dims) * bands
	grain := max(1, 1<<16/(band*m.cols))
	if m.whole() {
		bands, n = 1, product(outer.dims)
		grain = max(1, 1<<16/(m.rows*m.cols))
	}
	whole := m.whole()
	body := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from := add(fr.mem[a.v.slot], a.off+outer.at(i/bands), size)
			dst := add(fr.mem[v.slot], to.at(i/bands), size)
			if whole {
				m.dense(dst, from)
				continue
			}
			first := i % bands * band
			m.tiles(dst, from, first, min(first+band, m.rows))
		}
	}
	return func() { par.For(n, grain, body) }
}

// matrixCopy writes [rows, cols]: element (i,j) is from[i + j*fromStep], and goes to to[i*toStep + j].
type matrixCopy struct{ rows, cols, fromStep, toStep, size int }

// whole reports whether the matrix is dense on both sides and of a size that vec
// knows.
func (m matrixCopy) whole() bool {
	return m.fromStep == m.rows && m.toStep == m.cols && m.size >= 4
}

func (m matrixCopy) dense(to, from ptr) {
	n := m.rows * m.cols
	if m.size == 4 {
		vec.U32.Transpose(elems[uint32](to, n), elems[uint32](from, n), m.cols, m.rows)
	} else {
		vec.U64.Transpose(elems[uint64](to, n), elems[uint64](from, n), m.cols, m.rows)
	}
}

func (m matrixCopy) tiles(to, from ptr, lo, hi int) {
	switch m.size {
	case 1:
		tiles[uint8](m, to, from, lo, hi)
	case 2:
		tiles[uint16](m, to, from, lo, hi)
	case 4:
		tiles[uint32](m, to, from, lo, hi)
	default:
		tiles[uint64](m, to, from, lo, hi)
	}
}

func tiles[T any](m matrixCopy, to, from ptr, lo, hi int) {
	const side = 16
	for j0 := 0; j0 < m.cols; j0 += side {
		j1 := min(j0+side, m.cols)
		for i0 := lo; i0 < hi; i0 += side {
			i1 := min(i0+side, hi)
			for i := i0; i < i1; i++ {
				row := elems[T](add(to, i*m.toStep+j0, m.size), j1-j0)
				src := add(from, i+j0*m.fromStep, m.size)
				for j := range row {
					row[j] = *(*T)(add(src, j*m.fromStep, m.size))
				}
			}
		}
	}
}
