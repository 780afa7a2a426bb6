package engine

import (
	"github.com/gfnem/gfnem/engine/internal/gemm"
)

// patcher copies the input under the taps of the kernel: row i of the matrix is output position first+i.
type patcher struct {
	p     *convPlan
	last  bool // terms are (tap, channel); otherwise (channel, tap)
	inner int  // taps of the last axis, or 1 if there is no axis
}

func (p *convPlan) channelsPatch(last bool) *patcher {
	x := &patcher{p: p, last: last, inner: 1}
	if n := len(p.taps); n > 0 {
		x.inner = p.taps[n-1]
	}
	return x
}

// fillPatches writes n rows of p.k terms; x starts at the base of a batch and group.
func fillPatches[T gemm.Float](q *patcher, to, x []T, first, n int) {
	p := q.p
	step := p.si[p.axes.InputChannels]
	axes := len(p.space)
	at, tap := make([]int, axes), make([]int, axes)
	unravel(first, p.space, at)
	single := []int{0}
	for i := range n {
		row := to[i*p.k : i*p.k+p.k]
		line := single // offsets under the taps of the last axis
		if axes > 0 {
			o := at[axes-1]
			line = p.table[axes-1][o*q.inner : (o+1)*q.inner]
		}
		clear(tap)
		for t := 0; t < p.tapCount; t += q.inner {
			off := 0
			for d := range axes - 1 {
				v := p.table[d][at[d]*p.taps[d]+tap[d]]
				if v < 0 {
					off = -1
					break
				}
				off += v
			}
			if q.last {
				cell := row[t*p.inC : (t+q.inner)*p.inC]
				for j, v := range line {
					c := cell[j*p.inC : (j+1)*p.inC]
					if off < 0 || v < 0 {
						clear(c)
					} else {
						copy(c, x[off+v:])
					}
				}
			} else {
				for c := range p.inC {
					cell := row[c*p.tapCount+t:][:q.inner]
					if off < 0 {
						clear(cell)
						continue
					}
					from := off + c*step
					for j, v := range line {
						if v < 0 {
							cell[j] = 0
						} else {
							cell[j] = x[from+v]
						}
					}
				}
			}
			for d := axes - 2; d >= 0; d-- {
				if tap[d]++; tap[d] < p.taps[d] {
					break
				}
				tap[d] = 0
			}
		}
		for d := axes - 1; d >= 0; d-- {
			if at[d]++; at[d] < p.space[d] {
				break
			}
			at[d] = 0
		}
	}
}
