package engine

// bindConv is the convolution of integers, one output at a time.
func bindConv[T integer](fr *frame, l *lop) func() {
	p := planConv(l)
	ax := p.axes
	return rowsOf(p.batch*p.positions, p.k*p.outC*p.groups*4, func(lo, hi int) {
		x := elems[T](fr.mem[l.ins[0].v.slot], l.ins[0].v.size)
		k := elems[T](fr.mem[l.ins[1].v.slot], l.ins[1].v.size)
		y := elems[T](fr.mem[l.outs[0].slot], l.outs[0].size)
		at, tap := make([]int, len(p.space)), make([]int, len(p.taps))
		for i := lo; i < hi; i++ {
			b := i / p.positions
			unravel(i%p.positions, p.space, at)
			to := b * p.so[ax.OutputBatch]
			for i, d := range ax.OutputSpatial {
				to += at[i] * p.so[d]
			}
			for o := range p.outC * p.groups {
				var sum T
				from := p.base(b, o/p.outC)
				for t := range p.tapCount {
					unravel(t, p.taps, tap)
					off := p.under(at, tap)
					if off < 0 {
						continue
					}
					w := o * p.sk[ax.KernelOutputChannels]
					for i, d := range ax.KernelSpatial {
						w += tap[i] * p.sk[d]
					}
					for c := range p.inC {
						sum += x[from+off+c*p.si[ax.InputChannels]] * k[w+c*p.sk[ax.KernelInputChannels]]
					}
				}
				y[to+o*p.so[ax.OutputChannels]] = sum
			}
		}
	})
}
