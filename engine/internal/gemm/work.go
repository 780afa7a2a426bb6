package gemm

import (
	"sync"
	"unsafe"
)

// work is what one goroutine needs to compute part of a product.
type work[T Float] struct {
	p       params
	t       transposeParams
	a, b, s []T // packed A, packed B, a strip of results
}

var works32, works64, jobs32, jobs64 sync.Pool

func getWork[T Float]() *work[T] {
	pool := &works32
	if unsafe.Sizeof(T(0)) == 8 {
		pool = &works64
	}
	if w, ok := pool.Get().(*work[T]); ok {
		return w
	}
	return new(work[T])
}

// forget drops the pointers to matrices.
func (w *work[T]) forget() {
	w.p.a, w.p.b, w.p.c, w.p.bias, w.p.rowBias = nil, nil, nil, nil, nil
	clear(w.t.from[:])
}

// free gives w back.
func (w *work[T]) free() {
	w.forget()
	if unsafe.Sizeof(T(0)) == 8 {
		works64.Put(w)
	} else {
		works32.Put(w)
	}
}

func getJob[T Float]() *job[T] {
	pool := &jobs32
	if unsafe.Sizeof(T(0)) == 8 {
		pool = &jobs64
	}
	if g, ok := pool.Get().(*job[T]); ok {
		return g
	}
	g := new(job[T])
	g.chunk, g.packer, g.slice, g.items = g.doChunk, g.doPack, g.doSlice, g.doItems
	return g
}

// free gives g back, without pointers to the matrices.
func (g *job[T]) free() {
	g.view = view{}
	g.bias, g.rowBias, g.fn = nil, nil, nil
	g.own.forget()
	if unsafe.Sizeof(T(0)) == 8 {
		jobs64.Put(g)
	} else {
		jobs32.Put(g)
	}
}

// line is the size of a cache line; buffers start at one.
const line = 64

// grow makes s at least n long, starting at a cache line. Its contents are lost.
func grow[T Float](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	size := int(unsafe.Sizeof(T(0)))
	s = make([]T, n+n/8+line/size)
	skip := 0
	if r := int(uintptr(base(s)) % line); r != 0 {
		skip = (line - r) / size
	}
	s = s[skip:]
	return s[:n]
}
