package engine

import (
	"slices"

	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/engine/internal/gemm"
)

// smallMatrix is the most elements of a matrix that a row program multiplies rows by, or sums products into.
const smallMatrix = 1 << 14

// dot lowers a product: operands become [batch, rows, terms] and [batch, terms, columns], in any layout.
func (c *compiler) dot(n *node, v *value) {
	at := n.attr.(dotAttr)
	l, r := c.views[n.inputs[0]], c.views[n.inputs[1]]
	free := func(a *access, contract, batch []int) (axes []int) {
		for i := range a.dims {
			if !slices.Contains(contract, i) && !slices.Contains(batch, i) {
				axes = append(axes, i)
			}
		}
		return axes
	}
	lf, rf := free(l, at.lhsContract, at.lhsBatch), free(r, at.rhsContract, at.rhsBatch)
	pick := func(a *access, axes []int) int {
		k := 1
		for _, i := range axes {
			k *= a.dims[i]
		}
		return k
	}
	b, m, k, w := pick(l, at.lhsBatch), pick(l, lf), pick(l, at.lhsContract), pick(r, rf)
	if v.size == 0 {
		return
	}
	if k == 0 {
		c.emit(&lop{form: formOpaque, node: n, outs: []*value{v}, opaque: zeroStep{}})
		return
	}
	t := n.shape.DType
	lhs := c.matrix(l, t, at.lhsBatch, lf, at.lhsContract, b, m, k)
	rhs := c.matrix(r, t, at.rhsBatch, at.rhsContract, rf, b, k, w)
	isFloat := t == dtypes.Float32 || t == dtypes.Float64
	if isFloat && b == 1 && k*w <= smallMatrix && m > 1 && lhs.strides[2] == 1 {
		// Rows times a matrix. The rows are [m,k]; the matrix has to be ready before.
		rows := &access{v: lhs.v, off: lhs.off, dims: []int{m, k}, strides: lhs.strides[1:]}
		c.emit(&lop{form: formDot, node: n, ins: []*access{rows, rhs}, outs: []*value{v}, rows: m, n: k, cols: w})
		return
	}
	if isFloat && b == 1 && m*w <= smallMatrix && k > 1 && lhs.strides[1] == 1 && rhs.strides[2] == 1 && k >= 4*max(m, w) {
		// A sum over rows [k,m] and [k,w].
		a := &access{v: lhs.v, off: lhs.off, dims: []int{k, m}, strides: []int{lhs.strides[2], 1}}
		d := &access{v: rhs.v, off: rhs.off, dims: []int{k, w}, strides: rhs.strides[1:]}
		c.emit(&lop{form: formOuter, node: n, ins: []*access{a, d}, outs: []*value{v}, rows: k, n: w,
			reducer: reducerOf(sumOp, t)})
		return
	}
	c.emit(&lop{form: formOpaque, node: n, ins: []*access{lhs, rhs}, outs: []*value{v}, opaque: dotStep{b, m, k, w, t}})
}

// matrix returns an operand as [batch, rows, cols], with strides of any kind that are not negative.
func (c *compiler) matrix(a *access, t dtypes.DType, batch, rows, cols []int, b, m, n int) *access {
	a = a.permute(slices.Concat(batch, rows, cols))
	negative := slices.ContainsFunc(a.strides, func(s int) bool { return s < 0 })
	if x := a.reshape([]int{b, m, n}); x != nil && !negative {
		// Axes of size 1 have whatever stride is most useful.
		if n == 1 {
			x.strides[2] = 1
		}
		if m == 1 {
			x.strides[1] = n
			if n > 1 && x.strides[2] != 1 {
				x.strides[1] = 1
			}
		}
		return x
	}
	return c.copied(a, t).reshape([]int{b, m, n})
}

// dotStep is a product as a step of its own.
type dotStep struct {
	b, m, k, n int
	t          dtypes.DType
}

func (d dotStep) bind(fr *frame, l *lop) func() {
	x, y, z := l.ins[0], l.ins[1], l.outs[0]
	switch d.t {
	case dtypes.Float32:
		return bindGemm[float32](fr, l, d, false)
	case dtypes.Float64:
		return bindGemm[float64](fr, l, d, false)
	case dtypes.Int8:
		return bindDot[int8](fr, d, x, y, z)
	case dtypes.Int16:
		return bindDot[int16](fr, d, x, y, z)
	case dtypes.Int32:
		return bindDot[int32](fr, d, x, y, z)
	case dtypes.Int64:
		return bindDot[int64](fr, d, x, y, z)
	case dtypes.Uint8:
		return bindDot[uint8](fr, d, x, y, z)
	case dtypes.Uint16:
		return bindDot[uint16](fr, d, x, y, z)
	case dtypes.Uint32:
		return bindDot[uint32](fr, d, x, y, z)
	}
	return bindDot[uint64](fr, d, x, y, z)
}

// span is the number of elements of v from the offset of a on.
func (a *access) span() int { return a.v.size - a.off }

// bindGemm multiplies floats, or finds the maxima of their sums.
func bindGemm[T gemm.Float](fr *frame, l *lop, d dotStep, most bool) func() {
	x, y, z := l.ins[0], l.ins[1], l.outs[0]
	dims := []gemm.Dim{{N: d.b, A: x.strides[0], B: y.strides[0], C: d.m * d.n}}
	matrix := func(a *access, rows, cols int) gemm.Matrix[T] {
		data := elems[T](add(fr.mem[a.v.slot], a.off, sizeOf(d.t)), a.span())
		return gemm.Matrix[T]{Data: data, Rows: rows, Cols: cols, RowStride: a.strides[1], ColStride: a.strides[2]}
	}
	return func() {
		c := gemm.Dense(elems[T](fr.mem[z.slot], z.size), d.m, d.n)
		o := epilogueOf[T](l, fr.mem, d.n)
		o.Max = most
		gemm.Batch(dims, c, matrix(x, d.m, d.k), matrix(y, d.k, d.n), o)
	}
}

// bindDot multiplies integers, which wrap around.
func bindDot[T number](fr *frame, d dotStep, x, y *access, z *value) func() {
	return func() {
		a, b := elems[T](fr.mem[x.v.slot], x.v.size), elems[T](fr.mem[y.v.slot], y.v.size)
		c := elems[T](fr.mem[z.slot], z.size)
		for i := range d.b {
			for r := range d.m {
				row := c[(i*d.m+r)*d.n:][:d.n]
				clear(row)
				for k := range d.k {
					v := a[x.off+i*x.strides[0]+r*x.strides[1]+k*x.strides[2]]
					from := y.off + i*y.strides[0] + k*y.strides[1]
					for j := range row {
						row[j] += v * b[from+j*y.strides[2]]
					}
				}
			}
		}
	}
}

// dot multiplies the rows of a block by a matrix.
func (g *rowGen) dot(l *lop) {
	from := g.load(l.ins[0], l.outs[0].t)
	to := g.result(l.outs[0])
	if l.outs[0].t == dtypes.Float32 {
		g.emit(rowsTimes[float32](l, from, to, l.rows/g.m, 4))
	} else {
		g.emit(rowsTimes[float64](l, from, to, l.rows/g.m, 8))
	}
}

func rowsTimes[T gemm.Float](l *lop, from, to operand, per, size int) instr {
	k, n, y := l.n, l.cols, l.ins[1]
	return func(c *rowCtx) {
		o := epilogueOf[T](l, c.mem, n)
		m := c.rows * per
		a := gemm.Dense(elems[T](c.at(from), m*k), m, k)
		b := gemm.Matrix[T]{Data: elems[T](add(c.mem[y.v.slot], y.off, size), y.span()), Rows: k, Cols: n,
			RowStride: y.strides[1], ColStride: y.strides[2]}
		gemm.Gemm(gemm.Dense(elems[T](c.at(to), m*n), m, n), a, b, o)
	}
}

// outer adds the products of the rows of a block to an accumulator.
func (g *rowGen) outer(l *lop) {
	x, y := g.load(l.ins[0], l.outs[0].t), g.load(l.ins[1], l.outs[0].t)
	off := g.sum(l.outs[0], l.reducer, l.outs[0].size)
	if l.outs[0].t == dtypes.Float32 {
		g.emit(sumProducts[float32](l, x, y, off, l.rows/g.m))
	} else {
		g.emit(sumProducts[float64](l, x, y, off, l.rows/g.m))
	}
}

func sumProducts[T gemm.Float](l *lop, x, y operand, off, per int) instr {
	n := l.n
	m := l.outs[0].size / n
	return func(c *rowCtx) {
		k := c.rows * per
		a := gemm.Dense(elems[T](c.at(x), k*m), k, m).T()
		b := gemm.Dense(elems[T](c.at(y), k*n), k, n)
		gemm.Gemm(gemm.Dense(elems[T](add(c.part, off, 1), m*n), m, n), a, b, gemm.Options[T]{Add: !c.first})
	}
}
