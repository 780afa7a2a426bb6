package engine

import (
	"sync"

	"github.com/gfnem/gfnem/engine/internal/gemm"
	"github.com/gfnem/gfnem/engine/internal/par"
)

// The gradient of a convolution's kernel is a convolution again, of few output positions (taps of the original) and as
// many taps as the original had outputs: what was a batch is an input channel, and what were input channels are a batch.
// Its elements are sums of products of rows that are contiguous in both operands.

const (
	sumTerms = 512 // terms that are added at a time
	sumWidth = 64  // output batches of a job
)

// sums reports whether p is best computed as a sum of products of rows: [batch] of the input times [channels] of the
// kernel.
func (p *convPlan) sums() bool {
	ax := p.axes
	if p.groups > 1 || p.si[ax.InputBatch] != 1 || p.sk[ax.KernelOutputChannels] != 1 || p.so[ax.OutputChannels] != 1 {
		return false
	}
	for _, d := range p.inputDilations {
		if d > 1 {
			return false
		}
	}
	return p.outC >= 8 && p.positions <= 256 && p.k >= 4*p.positions && p.so[ax.OutputBatch] >= p.outC
}

func bindConvSums[T gemm.Float](fr *frame, l *lop, p *convPlan) func() {
	x, w, y := l.ins[0].v, l.ins[1].v, l.outs[0]
	size := sizeOf(y.t)
	part := p.parts()[0]
	shared := convSums[T]{convPart: part, kernel: make([]int, part.tapCount)}
	for t := range shared.kernel {
		shared.kernel[t] = part.kernelAt(t)
	}
	places := make([]int, len(p.space))
	for i := range p.positions {
		shared.outs = append(shared.outs, part.place(i, places))
		under := make([]int, max(1, part.tapCount))
		part.under(places, under)
		shared.under = append(shared.under, under)
	}
	wide := min(p.batch, sumWidth)
	across := (p.batch + wide - 1) / wide
	each := 1 // positions of a job
	if across == 1 {
		each = max(1, min(p.positions, sumWidth/wide))
	}
	groups := (p.positions + each - 1) / each
	step := roundUp(each*wide, cacheLine/size) + cacheLine/size
	scratch := &fr.prog.backend.scratch
	bytes := (sumTerms*(step+p.outC) + each*wide*p.outC) * size
	shared.wide, shared.step = wide, step
	idle := sync.Pool{New: func() any {
		s := shared
		s.terms = make([]int, 0, sumTerms)
		return &s
	}}
	body := func(lo, hi int) {
		buf := scratch.get(bytes)
		s := idle.Get().(*convSums[T])
		s.x, s.w, s.y = elems[T](fr.mem[x.slot], x.size), elems[T](fr.mem[w.slot], w.size), elems[T](fr.mem[y.slot], y.size)
		s.patches, s.rows = elems[T](buf, sumTerms*step), elems[T](add(buf, sumTerms*step, size), sumTerms*p.outC)
		s.tile = elems[T](add(buf, sumTerms*(step+p.outC), size), each*wide*p.outC)
		for job := lo; job < hi; job++ {
			first := job / across * each
			s.sum(first, min(each, p.positions-first), job%across*wide)
		}
		s.x, s.w, s.y, s.patches, s.rows, s.tile = nil, nil, nil, nil, nil, nil
		idle.Put(s)
		scratch.put(buf, bytes)
	}
	return func() { par.For(groups*across, max(1, 1<<21/(p.k*wide*each*p.outC)), body) }
}

// convSums adds up terms.
type convSums[T gemm.Float] struct {
	*convPart
	kernel     []int   // where each tap is in the kernel
	outs       []int   // where each position is in the output
	under      [][]int // by position: the input under each tap
	wide, step int

	x, w, y             []T
	patches, rows, tile []T
	offsets             [][]int // under, of the positions of the job
	terms               []int   // where the terms at hand are in the kernel
	added               bool
}

// sum computes n output positions from first on, for the output batches from b on.
func (s *convSums[T]) sum(first, n, b int) {
	p := s.p
	wide := min(s.wide, p.batch-b)
	s.offsets = s.under[first : first+n]
	outs := s.outs[first : first+n]
	to := gemm.Dense(s.tile[:n*wide*p.outC], n*wide, p.outC)
	s.added = false
	for c := range p.inC {
		for t := range s.tapCount {
			if s.fill(c*p.si[p.axes.InputChannels]+b, t, wide) {
				s.terms = append(s.terms, c*p.sk[p.axes.KernelInputChannels]+s.kernel[t])
			}
			if len(s.terms) == sumTerms {
				s.flush(to)
			}
		}
	}
	s.flush(to)
	if !s.added {
		clear(to.Data)
	}
	for i := range n {
		for j := range wide {
			copy(s.y[outs[i]+(b+j)*p.so[p.axes.OutputBatch]:][:p.outC], s.tile[(i*wide+j)*p.outC:])
		}
	}
}

// fill sets the next row of the patches to the elements of the input under a tap, for each position; it reports whether
// there are any.
func (s *convSums[T]) fill(from, tap, wide int) bool {
	missing := true
	for _, o := range s.offsets {
		missing = missing && o[tap] < 0
	}
	if missing {
		return false
	}
	row := s.patches[len(s.terms)*s.step:]
	for i, o := range s.offsets {
		cell := row[i*wide:][:wide]
		if o[tap] < 0 {
			clear(cell)
		} else {
			copy(cell, s.x[from+o[tap]:])
		}
	}
	return true
}

// flush adds the terms at hand.
func (s *convSums[T]) flush(to gemm.Matrix[T]) {
	k, n := len(s.terms), s.p.outC
	if k == 0 {
		return
	}
	rows := s.w[s.terms[0]:]
	for i, t := range s.terms {
		if t != s.terms[0]+i*n { // not one after the other
			for j, t := range s.terms {
				copy(s.rows[j*n:][:n], s.w[t:])
			}
			rows = s.rows
			break
		}
	}
	a := gemm.Matrix[T]{Data: s.patches, Rows: to.Rows, Cols: k, RowStride: 1, ColStride: s.step}
	gemm.Gemm(to, a, gemm.Dense(rows[:k*n], k, n), gemm.Options[T]{Add: s.added})
	s.added = true
	s.terms = s.terms[:0]
}
