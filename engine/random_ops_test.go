package engine_test

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// grow adds one random operation.
func (g *grower) grow() {
	x := pickOne(g.r, g.pool)
	axis := g.r.IntN(max(x.shape.Rank(), 1))
	switch k := g.r.IntN(28); {
	case k < 3:
		g.unary(x)
	case k < 9:
		g.binary(x)
	case k < 11:
		c, y := pickOne(g.r, g.pool), g.like(x)
		g.add("where", max(x.size, y.size), max(x.err, y.err),
			func(f compute.Function, i int) (compute.Value, error) { return f.Where(c.v[i], x.v[i], y.v[i]) })
	case k < 12:
		g.convert(x)
	case k < 20:
		g.shape(x, axis)
	case k < 23:
		g.reduce(x)
	case k < 25:
		g.index(x, axis)
	case k < 27:
		g.dot(x)
	default:
		g.window(x, axis)
	}
}

// unary adds a function of each element.
func (g *grower) unary(x twin) {
	t := x.shape.DType
	// squares builds x*x + 1, which is positive.
	squares := func(f compute.Function, i int) (compute.Value, error) {
		y, err := f.Mul(x.v[i], x.v[i])
		if err != nil {
			return nil, err
		}
		return f.Add(y, g.scalar(f, t, 1))
	}
	switch k := g.r.IntN(3); {
	case k == 0 && !x.exact():
		g.add("neg", x.size, x.err, func(f compute.Function, i int) (compute.Value, error) { return f.Neg(x.v[i]) })
	case k == 0:
		op := pickOne(g.r, exactUnary)
		size := x.size + 64
		if t.IsInt() {
			size = wild
		}
		g.add("exact unary", size, 0, func(f compute.Function, i int) (compute.Value, error) { return op(f, x.v[i]) })
	case k == 1 && t.IsFloat() && x.size <= 64:
		// Of tanh, every function here has slopes below 3.
		op := pickOne(g.r, smoothUnary)
		g.add("smooth", 3, 3*x.err+32, func(f compute.Function, i int) (compute.Value, error) {
			y, err := f.Tanh(x.v[i])
			if err != nil {
				return nil, err
			}
			return op(f, y)
		})
	case t.IsFloat() && x.size <= 1000:
		// Logarithm and roots of 1 + x^2 have slopes up to 1, and change by less than the relative error of 1 + x^2.
		op := pickOne(g.r, positiveUnary)
		size := 1 + x.size
		g.add("positive", size, x.err+8*size, func(f compute.Function, i int) (compute.Value, error) {
			y, err := squares(f, i)
			if err != nil {
				return nil, err
			}
			return op(f, y)
		})
	}
}

// binary adds an operation of two operands.
func (g *grower) binary(x twin) {
	r, t, y := g.r, x.shape.DType, g.like(x)
	both := func(name string, op binaryOp, size, err float64) {
		if x.exact() && y.exact() {
			err = 0
		}
		if t.IsInt() {
			size = wild
		}
		g.add(name, size, err, func(f compute.Function, i int) (compute.Value, error) { return op(f, x.v[i], y.v[i]) })
	}
	// apart builds op(x, y*y + 1), or op(x, y|1) of integers.
	apart := func(op binaryOp) func(f compute.Function, i int) (compute.Value, error) {
		return func(f compute.Function, i int) (compute.Value, error) {
			var d compute.Value
			var err error
			if t.IsFloat() {
				if d, err = f.Mul(y.v[i], y.v[i]); err == nil {
					d, err = f.Add(d, g.scalar(f, t, 1))
				}
			} else {
				d, err = f.BitwiseOr(y.v[i], g.scalar(f, t, 1))
			}
			if err != nil {
				return nil, err
			}
			return op(f, x.v[i], d)
		}
	}
	switch r.IntN(13) {
	case 0, 1, 2:
		both("add", compute.Function.Add, x.size+y.size, x.err+y.err+x.size+y.size)
	case 3:
		both("sub", compute.Function.Sub, x.size+y.size, x.err+y.err+x.size+y.size)
	case 4, 5:
		both("mul", compute.Function.Mul, x.size*y.size, x.size*y.err+y.size*x.err+x.size*y.size)
	case 6:
		both("max", compute.Function.Max, max(x.size, y.size), max(x.err, y.err))
	case 7:
		both("min", compute.Function.Min, max(x.size, y.size), max(x.err, y.err))
	case 8:
		both("bits", pickOne(r, bitBinary), wild, 1)
	case 9:
		if x.exact() && y.exact() && t != dtypes.Bool {
			op := pickOne(r, compares)
			g.add("compare", 1, 0, func(f compute.Function, i int) (compute.Value, error) { return op(f, x.v[i], y.v[i]) })
		}
	case 10:
		low, high := int32(r.IntN(3)), int32(3+r.IntN(3))
		g.add("clamp", x.size+5, x.err, func(f compute.Function, i int) (compute.Value, error) {
			return f.Clamp(g.scalar(f, t, low), x.v[i], g.scalar(f, t, high))
		})
	case 11:
		switch {
		case t.IsFloat() && y.size < 1000:
			g.add("div", x.size, x.err+x.size*y.err+8*x.size, apart(compute.Function.Div))
			g.add("atan2", 2, x.err+y.err*x.size+16, apart(compute.Function.Atan2))
		case t.IsInt():
			g.add("div", wild, 0, apart(compute.Function.Div))
		}
	default:
		switch {
		case t.IsFloat() && x.exact() && y.exact() && y.size < 1000:
			g.add("rem", x.size, 0, apart(compute.Function.Rem))
		case t.IsInt():
			op := pickOne(r, intBinary)
			g.add("shift", wild, 0, func(f compute.Function, i int) (compute.Value, error) {
				k, err := f.BitwiseAnd(y.v[i], g.scalar(f, t, 3))
				if err != nil {
					return nil, err
				}
				return op(f, x.v[i], k)
			})
			g.add("rem", wild, 0, apart(compute.Function.Rem))
		}
	}
}

// convert adds a value of another type, or of the same bits.
func (g *grower) convert(x twin) {
	t := x.shape.DType
	to := pickOne(g.r, append([]dtypes.DType{dtypes.Bool, dtypes.Float32, dtypes.Float64}, intTypes...))
	if t.IsInt() && to.IsInt() && t.Size() == to.Size() && g.r.IntN(2) == 0 {
		g.add("bitcast", wild, 0, func(f compute.Function, i int) (compute.Value, error) { return f.Bitcast(x.v[i], to) })
		return
	}
	switch {
	case !x.exact(), t.IsFloat() && to.IsUnsigned(): // negative numbers have no defined result
	case t.IsFloat() && to.IsInt() && to.Size() < 4: // nor those that do not fit
	case to.IsFloat() && t != dtypes.Bool && x.size > most:
	default:
		size := x.size
		if t.IsInt() && to.IsInt() {
			size = wild
		}
		if t == dtypes.Bool || to == dtypes.Bool {
			size = 1
		}
		g.add("convert", size, 0, func(f compute.Function, i int) (compute.Value, error) { return f.ConvertDType(x.v[i], to) })
	}
}

func (g *grower) view(name string, x twin, build func(f compute.Function, v compute.Value) (compute.Value, error)) {
	g.add(name, x.size+2, x.err, func(f compute.Function, i int) (compute.Value, error) { return build(f, x.v[i]) })
}

// shape adds an operation that moves elements to where their places say.
func (g *grower) shape(x twin, axis int) {
	r, s := g.r, x.shape
	t, rank := s.DType, s.Rank()
	perm := r.Perm(rank)
	switch r.IntN(9) {
	case 0:
		d := slices.Clone(s.Dimensions)
		switch r.IntN(3) {
		case 0:
			d = []int{s.Size()}
		case 1:
			d = slices.Insert(d, r.IntN(rank+1), 1)
		default:
			if rank > 1 {
				d = append([]int{d[0] * d[1]}, d[2:]...)
			}
		}
		g.view("reshape", x, func(f compute.Function, v compute.Value) (compute.Value, error) { return f.Reshape(v, d...) })
	case 1:
		g.view("transpose", x, func(f compute.Function, v compute.Value) (compute.Value, error) { return f.Transpose(v, perm...) })
	case 2, 3:
		var d, axes []int
		for i := 0; i < rank || len(d) < 1; i++ {
			if r.IntN(3) == 0 {
				d = append(d, 1+r.IntN(4))
			}
			if i < rank {
				axes = append(axes, len(d))
				k := s.Dimensions[i]
				if k == 1 {
					k = 1 + r.IntN(4)
				}
				d = append(d, k)
			}
		}
		g.view("broadcast", x, func(f compute.Function, v compute.Value) (compute.Value, error) {
			return f.BroadcastInDim(v, shapes.Make(t, d...), axes)
		})
	case 4:
		lo, hi, st := make([]int, rank), make([]int, rank), make([]int, rank)
		for i, d := range s.Dimensions {
			lo[i] = r.IntN(d)
			hi[i] = lo[i] + 1 + r.IntN(d-lo[i])
			st[i] = 1 + r.IntN(2)
		}
		g.view("slice", x, func(f compute.Function, v compute.Value) (compute.Value, error) { return f.Slice(v, lo, hi, st) })
	case 5:
		axes := perm[:min(rank, 1+axis)]
		g.view("reverse", x, func(f compute.Function, v compute.Value) (compute.Value, error) { return f.Reverse(v, axes...) })
	case 6:
		y := g.like(x)
		if rank > 0 {
			g.add(fmt.Sprint("concatenate ", axis), max(x.size, y.size), max(x.err, y.err),
				func(f compute.Function, i int) (compute.Value, error) {
					return f.Concatenate(axis, x.v[i], y.v[i], x.v[i])
				})
		}
	case 7:
		pads := make([]compute.PadAxis, rank)
		for i := range pads {
			if r.IntN(2) == 0 {
				pads[i] = compute.PadAxis{Start: r.IntN(3), End: r.IntN(3), Interior: r.IntN(2)}
			}
		}
		if t != dtypes.Bool {
			g.view("pad", x, func(f compute.Function, v compute.Value) (compute.Value, error) {
				return f.Pad(v, g.scalar(f, t, 2), pads...)
			})
		}
	default:
		if rank > 0 && t != dtypes.Bool {
			g.add("iota", float64(s.Dimensions[axis]), 0, func(f compute.Function, i int) (compute.Value, error) { return f.Iota(s, axis) })
		}
	}
}

// reduce adds a reduction.
func (g *grower) reduce(x twin) {
	rank := x.shape.Rank()
	if rank == 0 {
		return
	}
	axes := g.r.Perm(rank)[:1+g.r.IntN(rank)]
	n := 1.0
	for _, a := range axes {
		n *= float64(x.shape.Dimensions[a])
	}
	op, name, size, err := compute.Function.ReduceSum, "reduce sum", n*x.size, n*x.err+n*n*x.size
	switch g.r.IntN(6) {
	case 0:
		op, name, size, err = compute.Function.ReduceMax, "reduce max", x.size, x.err
	case 1:
		op, name, size, err = compute.Function.ReduceMin, "reduce min", x.size, x.err
	case 2:
		op, name, size = pickOne(g.r, bitReductions), "reduce bits", wild
	case 3:
		if !x.exact() || x.size > 16 || n > 4 {
			return
		}
		op, name, size = compute.Function.ReduceProduct, "reduce product", 1<<16
	}
	if x.shape.DType.IsInt() {
		size = wild
	}
	if x.exact() {
		err = 0
	}
	g.add(fmt.Sprint(name, axes), size, err, func(f compute.Function, i int) (compute.Value, error) { return op(f, x.v[i], axes...) })
}

// scalar returns a whole number of a type.
func (g *grower) scalar(f compute.Function, t dtypes.DType, v int32) compute.Value {
	c, err := f.Constant([]int32{v})
	if err != nil {
		g.t.Fatal(err)
	}
	if c, err = f.ConvertDType(c, t); err != nil {
		g.t.Fatal(err)
	}
	return c
}
