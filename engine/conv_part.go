package engine

import "slices"

// convPart is a set of output positions that see the input through the same taps of the kernel. Without input dilation
// there is one; with a dilation of 2, say, even and odd positions see different taps, and the zeros between the elements
// of the input are never multiplied.
type convPart struct {
	p         *convPlan
	space     [][]int // by axis: output positions
	taps      [][]int // by axis: taps
	positions int
	tapCount  int
}

// parts divides the output positions of a convolution.
func (p *convPlan) parts() []*convPart {
	all := []*convPart{{p: p, positions: 1, tapCount: 1}}
	for axis := range p.space {
		var next []*convPart
		for _, part := range all {
			for phase := range p.inputDilations[axis] {
				space, taps := p.phase(axis, phase)
				if len(space) == 0 {
					continue
				}
				next = append(next, &convPart{
					p:     p,
					space: append(slices.Clone(part.space), space), positions: part.positions * len(space),
					taps: append(slices.Clone(part.taps), taps), tapCount: part.tapCount * len(taps),
				})
			}
		}
		all = next
	}
	return all
}

// phase returns the positions of an axis that lie a certain number of elements after one of the input, and the taps that
// meet elements of the input from there.
func (p *convPlan) phase(axis, phase int) (space, taps []int) {
	d := p.inputDilations[axis]
	for o := range p.space[axis] {
		if at := o*p.strides[axis] - p.paddings[axis][0]; (at%d+d)%d == phase {
			space = append(space, o)
		}
	}
	for t := range p.taps[axis] {
		if (phase+t*p.kernelDilations[axis])%d == 0 {
			taps = append(taps, t)
		}
	}
	return space, taps
}

// place sets at to the coordinates of a position of the part, and returns where its output is from that of its batch.
func (q *convPart) place(position int, at []int) int {
	off := 0
	for d := len(q.space) - 1; d >= 0; d-- {
		n := len(q.space[d])
		at[d] = q.space[d][position%n]
		position /= n
		off += at[d] * q.p.so[q.p.axes.OutputSpatial[d]]
	}
	return off
}

// under sets to to where the input under each tap is, from the base, or to -1, for the output at a place.
func (q *convPart) under(at []int, to []int) {
	p := q.p
	to[0] = 0
	n := 1
	for d, taps := range q.taps {
		line := p.table[d][at[d]*p.taps[d]:][:p.taps[d]]
		// The offsets so far, once for each tap of this axis; from the end, so that none is overwritten before it is read.
		for i := n - 1; i >= 0; i-- {
			base := to[i]
			for j := len(taps) - 1; j >= 0; j-- {
				v := line[taps[j]]
				if base < 0 || v < 0 {
					to[i*len(taps)+j] = -1
				} else {
					to[i*len(taps)+j] = base + v
				}
			}
		}
		n *= len(taps)
	}
}

// kernelAt is where the kernel's elements under tap number i of the part are.
func (q *convPart) kernelAt(i int) int {
	off := 0
	for d := len(q.taps) - 1; d >= 0; d-- {
		n := len(q.taps[d])
		off += q.taps[d][i%n] * q.p.sk[q.p.axes.KernelSpatial[d]]
		i /= n
	}
	return off
}
