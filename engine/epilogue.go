package engine

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/engine/internal/gemm"
)

// epilogues makes the addition of a row to a product, and then a rectifier, part of the product, which does them while its
// elements are in registers. Convolutions take over a rectifier.
func (c *compiler) epilogues(outs []*value) {
	e := &epilogue{uses: map[*value]int{}, gone: map[*lop]bool{}}
	for _, v := range outs {
		e.uses[v]++
	}
	for _, l := range c.lops {
		for _, a := range l.ins {
			e.uses[a.v]++
		}
	}
	for i, l := range c.lops {
		if l.form != formMap || l.node == nil {
			continue
		}
		merged := e.bias(l)
		if merged == nil {
			merged = e.rectifier(l)
		}
		if merged != nil {
			merged.outs = l.outs
			l.outs[0].def = merged
			c.lops[i] = merged
		}
	}
	c.lops = slices.DeleteFunc(c.lops, func(l *lop) bool { return e.gone[l] })
}

// epilogue looks for operations that a product can take over.
type epilogue struct {
	uses map[*value]int
	gone map[*lop]bool
}

// product returns the product that makes all elements of a in order and that nothing else reads, and its columns.
func (e *epilogue) product(a *access, uses int) (d *lop, cols int) {
	d = a.v.def
	isFloat := a.v.t == dtypes.Float32 || a.v.t == dtypes.Float64
	if d == nil || !isFloat || d.act != gemm.None || e.uses[a.v] != uses || !a.isDense() || a.size() != a.v.size {
		return nil, 0
	}
	if d.form == formDot {
		return d, d.cols
	}
	if step, ok := d.opaque.(dotStep); ok && step.b == 1 {
		return d, step.n
	}
	return nil, 0
}

// bias returns a product with what l adds to it, or nil.
func (e *epilogue) bias(l *lop) *lop {
	if l.node.op != compute.OpTypeAdd {
		return nil
	}
	for i, a := range l.ins {
		d, cols := e.product(a, 1)
		if d == nil || d.biased || cols < 2 {
			continue
		}
		row := l.ins[1-i]
		dims, strides := row.collapse()
		if k := len(dims); k == 0 || dims[k-1] != cols || strides[k-1] != 1 || k > 2 || k == 2 && strides[0] != 0 {
			continue
		}
		merged := *d
		merged.ins, merged.biased = append(slices.Clone(d.ins), row), true
		e.gone[d] = true
		return &merged
	}
	return nil
}

// rectifier returns a product or convolution with the rectifier that l applies to it, or nil: the greater of x and 0, or
// of x and a multiple of x.
func (e *epilogue) rectifier(l *lop) *lop {
	if l.node.op != compute.OpTypeMax {
		return nil
	}
	for i, a := range l.ins {
		if isAll(l.node.inputs[1-i], 0) {
			if d := e.rectified(a, 1); d != nil {
				merged := *d
				merged.act = gemm.ReLU
				e.gone[d] = true
				return &merged
			}
		}
		m := l.ins[1-i].v.def
		if m == nil || m.form != formMap || m.node == nil || m.node.op != compute.OpTypeMul || e.uses[m.outs[0]] != 1 ||
			!l.ins[1-i].isDense() || l.ins[1-i].size() != m.outs[0].size {
			continue
		}
		for j, x := range m.ins {
			slope, ok := numberOf(m.node.inputs[1-j])
			if x.v != a.v || !ok || slope <= 0 || slope >= 1 || !x.isDense() || x.size() != a.v.size {
				continue
			}
			if d := e.rectified(a, 2); d != nil {
				merged := *d
				merged.act, merged.slope = gemm.Leaky, slope
				e.gone[d], e.gone[m] = true, true
				return &merged
			}
		}
	}
	return nil
}

// rectified returns the product or convolution that can take over what is done to a.
func (e *epilogue) rectified(a *access, uses int) *lop {
	if d, _ := e.product(a, uses); d != nil {
		return d
	}
	d := a.v.def
	if d == nil || d.act != gemm.None || e.uses[a.v] != uses || !a.isDense() || a.size() != a.v.size {
		return nil
	}
	if _, ok := d.opaque.(convolution); !ok || a.v.t != dtypes.Float32 && a.v.t != dtypes.Float64 {
		return nil
	}
	if p := planConv(d); p.k == 0 || p.sums() {
		return nil
	}
	return d
}

// numberOf returns the value of a constant that is one number everywhere.
func numberOf(n *node) (float64, bool) {
	for n.op == compute.OpTypeBroadcastInDim || n.op == compute.OpTypeReshape {
		n = n.inputs[0]
	}
	if n.op != compute.OpTypeConstant || n.shape.Size() != 1 {
		return 0, false
	}
	switch n.shape.DType {
	case dtypes.Float32:
		return float64(*(*float32)(n.constant)), true
	case dtypes.Float64:
		return *(*float64)(n.constant), true
	}
	return 0, false
}

// epilogueOf returns what a product of n columns does at its end, in a frame with the given memory.
func epilogueOf[T gemm.Float](l *lop, mem []ptr, n int) gemm.Options[T] {
	o := gemm.Options[T]{Act: l.act, Slope: T(l.slope)}
	if l.biased {
		bias := l.ins[2]
		o.Bias = elems[T](add(mem[bias.v.slot], bias.off, sizeOf(bias.v.t)), n)
	}
	return o
}
