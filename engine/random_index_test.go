package engine_test

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// index adds an operation that finds or moves elements by position.
func (g *grower) index(x twin, axis int) {
	s, r := x.shape, g.r
	if s.Rank() == 0 || s.DType == dtypes.Bool {
		return
	}
	isMin, reverse, exclusive := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	n := float64(s.Dimensions[axis])
	if x.exact() && s.DType.IsInt() {
		n = wild
	}
	switch r.IntN(6) {
	case 0:
		if x.exact() {
			g.add("argminmax", 1000, 0, func(f compute.Function, i int) (compute.Value, error) {
				return f.ArgMinMax(x.v[i], axis, dtypes.Int32, isMin)
			})
		}
	case 1:
		err := 0.0
		if !x.exact() {
			err = n*x.err + n*n*x.size
		}
		g.add("cumsum", x.size*n, err, func(f compute.Function, i int) (compute.Value, error) {
			return f.CumSum(x.v[i], axis, compute.CumSumOptions{Exclusive: exclusive, Reverse: reverse})
		})
	case 2: // rows of a table
		n := 1 + r.IntN(5)
		idx := make([]int32, n)
		for i := range idx {
			idx[i] = int32(r.IntN(9) - 1)
		}
		sizes := slices.Clone(s.Dimensions)
		sizes[0] = 1
		offset := make([]int, s.Rank()-1)
		for i := range offset {
			offset[i] = i + 1
		}
		g.view("gather", x, func(f compute.Function, v compute.Value) (compute.Value, error) {
			at, err := f.Constant(idx, n, 1)
			if err != nil {
				return nil, err
			}
			return f.Gather(v, at, 1, offset, []int{0}, []int{0}, sizes, false)
		})
	case 3:
		n := 1 + r.IntN(5)
		idx := make([]int64, n)
		for i := range idx {
			idx[i] = int64(r.IntN(s.Dimensions[0]))
		}
		up := slices.Clone(s.Dimensions)
		up[0] = n
		shape := shapes.Make(s.DType, up...)
		data := g.data(shape)
		window := make([]int, s.Rank()-1)
		for i := range window {
			window[i] = i + 1
		}
		kind := r.IntN(3)
		size, err := x.size+8*float64(n), x.err
		if s.DType.IsInt() {
			size = wild
		}
		if err > 0 {
			err += float64(n) * size
		}
		g.add("scatter", size, err, func(f compute.Function, i int) (compute.Value, error) {
			at, err := f.Constant(idx, n, 1)
			if err != nil {
				return nil, err
			}
			u, err := f.Constant(data, up...)
			if err != nil {
				return nil, err
			}
			op := []func(a, b, c compute.Value, d int, e, g, h []int, k, l bool) (compute.Value, error){f.ScatterSum, f.ScatterMax, f.ScatterMin}[kind]
			return op(x.v[i], at, u, 1, window, []int{0}, []int{0}, false, false)
		})
	case 4:
		g.boxes(x)
	default:
		if !x.exact() {
			return
		}
		g.add("sort", x.size, 0, func(f compute.Function, i int) (compute.Value, error) {
			c, err := f.Closure()
			if err != nil {
				return nil, err
			}
			a, _ := c.Parameter("a", shapes.Make(s.DType), nil)
			b, _ := c.Parameter("b", shapes.Make(s.DType), nil)
			less, err := c.LessThan(a, b)
			if err != nil {
				return nil, err
			}
			if err := c.Return([]compute.Value{less}, nil); err != nil {
				return nil, err
			}
			out, err := f.Sort(c, axis, true, x.v[i])
			if err != nil {
				return nil, err
			}
			return out[0], nil
		})
	}
}

// boxes gathers slices at places of two axes, some of them out of range.
func (g *grower) boxes(x twin) {
	if x.shape.Rank() < 2 {
		return
	}
	b := drawBoxes(g.r, x.shape.Dimensions)
	g.view("gather boxes", x, func(f compute.Function, v compute.Value) (compute.Value, error) {
		at, err := f.Constant(b.idx, b.dims...)
		if err != nil {
			return nil, err
		}
		return f.Gather(v, at, b.vector, b.offset, b.collapsed, b.axes, b.sizes, false)
	})
}

// dot multiplies by a random matrix, in a random layout, possibly with a batch axis.
func (g *grower) dot(x twin) {
	s, r := x.shape, g.r
	if s.Rank() == 0 || s.DType == dtypes.Bool || s.DType == dtypes.Int8 || s.DType == dtypes.Uint8 {
		return
	}
	axes := r.Perm(s.Rank())
	k := axes[0]
	batch := axes[1:][:r.IntN(min(2, s.Rank()))]
	dims := []int{s.Dimensions[k], 1 + r.IntN(4)}
	contract := 0
	if r.IntN(2) == 0 {
		dims, contract = []int{dims[1], dims[0]}, 1
	}
	var rb []int
	for _, b := range batch {
		rb = append(rb, len(dims))
		dims = append(dims, s.Dimensions[b])
	}
	shape := shapes.Make(s.DType, dims...)
	data := g.data(shape)
	swap := r.IntN(2) == 0
	n := float64(s.Dimensions[k])
	size, bound := 4*n*x.size, 0.0
	if !x.exact() {
		bound = 4 * n * (x.err + (n+1)*x.size)
	}
	if s.DType.IsInt() {
		size = wild
	}
	g.add("dot", size, bound, func(f compute.Function, i int) (compute.Value, error) {
		m, err := f.Constant(data, dims...)
		if err != nil {
			return nil, err
		}
		if swap {
			return f.DotGeneral(m, []int{contract}, rb, x.v[i], []int{k}, batch, compute.DotGeneralConfig{})
		}
		return f.DotGeneral(x.v[i], []int{k}, batch, m, []int{contract}, rb, compute.DotGeneralConfig{})
	})
}

// window adds a reduction of windows or a loop.
func (g *grower) window(x twin, axis int) {
	s, r := x.shape, g.r
	if s.Rank() == 0 || s.DType == dtypes.Bool {
		return
	}
	switch r.IntN(3) {
	case 0:
		win := make([]int, s.Rank())
		st := make([]int, s.Rank())
		pads := make([][2]int, s.Rank())
		for i, d := range s.Dimensions {
			win[i], st[i] = 1+r.IntN(min(d, 3)), 1+r.IntN(2)
			pads[i] = [2]int{r.IntN(win[i]), r.IntN(win[i])}
		}
		kind := pickOne(r, []compute.ReduceOpType{compute.ReduceOpSum, compute.ReduceOpMax, compute.ReduceOpMin})
		n := 1.0
		for _, w := range win {
			n *= float64(w)
		}
		size, bound := n*x.size, 0.0
		if !x.exact() {
			bound = n*x.err + n*n*x.size
		}
		if s.DType.IsInt() {
			size = wild
		}
		g.add("window", size, bound, func(f compute.Function, i int) (compute.Value, error) {
			return f.ReduceWindow(x.v[i], kind, win, st, nil, nil, pads)
		})
	case 1: // x = x + y, four times, with y captured
		y := g.like(x)
		if !y.shape.IsScalar() && !y.shape.Equal(s) {
			return
		}
		size, bound := x.size+4*y.size, 0.0
		if !x.exact() || !y.exact() {
			bound = x.err + 4*y.err + 4*size
		}
		if s.DType.IsInt() {
			size = wild
		}
		g.add("while", size, bound, func(f compute.Function, i int) (compute.Value, error) {
			zero := g.scalar(f, dtypes.Int32, 0)
			params := func(c compute.Function) (n, v compute.Value) {
				n, _ = c.Parameter("n", shapes.Make(dtypes.Int32), nil)
				v, _ = c.Parameter("v", s, nil)
				return n, v
			}
			cond, err := f.Closure()
			if err != nil {
				return nil, err
			}
			n, _ := params(cond)
			four, _ := cond.Constant([]int32{4})
			more, err := cond.LessThan(n, four)
			if err != nil {
				return nil, err
			}
			if err := cond.Return([]compute.Value{more}, nil); err != nil {
				return nil, err
			}
			body, _ := f.Closure()
			n, v := params(body)
			one, _ := body.Constant([]int32{1})
			n, _ = body.Add(n, one)
			if v, err = body.Add(v, y.v[i]); err != nil {
				return nil, err
			}
			if err := body.Return([]compute.Value{n, v}, nil); err != nil {
				return nil, err
			}
			out, err := f.While(cond, body, zero, x.v[i])
			if err != nil {
				return nil, err
			}
			return out[1], nil
		})
	default:
		y := g.like(x)
		if !y.shape.Equal(s) {
			return
		}
		yes := r.IntN(2) == 0
		size, bound := x.size+y.size, 0.0
		if !x.exact() || !y.exact() {
			bound = x.err + y.err + size
		}
		if s.DType.IsInt() {
			size = wild
		}
		g.add("if", size, bound, func(f compute.Function, i int) (compute.Value, error) {
			p, _ := f.Constant([]bool{yes})
			a, _ := f.Closure()
			v, err := a.Add(x.v[i], y.v[i])
			if err != nil {
				return nil, err
			}
			if err := a.Return([]compute.Value{v}, nil); err != nil {
				return nil, err
			}
			b, _ := f.Closure()
			w, err := b.Sub(y.v[i], x.v[i])
			if err != nil {
				return nil, err
			}
			if err := b.Return([]compute.Value{w}, nil); err != nil {
				return nil, err
			}
			out, err := f.If(p, a, b)
			if err != nil {
				return nil, err
			}
			return out[0], nil
		})
	}
}
