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
	r := g.r
	x := pickOne(r, g.pool)
	s := x.shape
	t := s.DType
	rank := s.Rank()
	axis := func() int { return r.IntN(max(rank, 1)) }
	perm := r.Perm(rank)
	switch r.IntN(26) {
	case 0:
		op := pickOne(r, exactUnary)
		if !x.exact {
			op = compute.Function.Neg
		}
		g.add("exact unary", x.exact, x.size+64, x.depth, func(f compute.Function, i int) (compute.Value, error) { return op(f, x.v[i]) })
	case 1:
		if t.IsFloat() && x.size <= 64 {
			op := pickOne(r, smoothUnary)
			g.add("smooth", false, 64, x.depth+1, func(f compute.Function, i int) (compute.Value, error) {
				y, err := f.Tanh(x.v[i])
				if err != nil {
					return nil, err
				}
				return op(f, y)
			})
		}
	case 2:
		if t.IsFloat() && x.size <= 1000 {
			op := pickOne(r, positiveUnary)
			g.add("positive", false, 64, x.depth+1, func(f compute.Function, i int) (compute.Value, error) {
				y, err := f.Mul(x.v[i], x.v[i])
				if err != nil {
					return nil, err
				}
				if y, err = f.Add(y, g.scalar(f, t, 1)); err != nil {
					return nil, err
				}
				return op(f, y)
			})
		}
	case 3, 4, 5, 6:
		y := g.like(x)
		op := pickOne(r, exactBinary)
		g.add("binary", x.exact && y.exact, max(x.size+y.size, x.size*y.size), max(x.depth, y.depth),
			func(f compute.Function, i int) (compute.Value, error) { return op(f, x.v[i], y.v[i]) })
	case 7:
		y := g.like(x)
		if t.IsFloat() {
			g.add("div", false, 2*x.size+2, max(x.depth, y.depth)+1, func(f compute.Function, i int) (compute.Value, error) {
				d, err := f.Mul(y.v[i], y.v[i])
				if err != nil {
					return nil, err
				}
				if d, err = f.Add(d, g.scalar(f, t, 1)); err != nil {
					return nil, err
				}
				return f.Div(x.v[i], d)
			})
		} else if t.IsInt() {
			op := pickOne(r, []func(f compute.Function, a, b compute.Value) (compute.Value, error){
				compute.Function.ShiftLeft, compute.Function.ShiftRightArithmetic, compute.Function.ShiftRightLogical, compute.Function.Pow})
			g.add("shift", x.exact && y.exact, 1<<12, x.depth, func(f compute.Function, i int) (compute.Value, error) {
				k, err := f.BitwiseAnd(y.v[i], g.scalar(f, t, 3))
				if err != nil {
					return nil, err
				}
				return op(f, x.v[i], k)
			})
		}
	case 8:
		if y := g.like(x); x.exact && y.exact && t != dtypes.Bool {
			op := pickOne(r, compares)
			g.add("compare", true, 1, 0, func(f compute.Function, i int) (compute.Value, error) { return op(f, x.v[i], y.v[i]) })
		}
	case 9, 10:
		c, y := pickOne(r, g.pool), g.like(x)
		g.add("where", x.exact && y.exact, max(x.size, y.size), max(x.depth, y.depth),
			func(f compute.Function, i int) (compute.Value, error) { return f.Where(c.v[i], x.v[i], y.v[i]) })
	case 11:
		to := pickOne(r, append([]dtypes.DType{dtypes.Bool, dtypes.Float32, dtypes.Float64}, intTypes...))
		if x.exact && (!t.IsFloat() || !to.IsUnsigned() && to != dtypes.Int8) {
			size := x.size
			if t.IsUnsigned() || t.IsInt() && to.IsUnsigned() {
				size = 1 << 30 // may have wrapped
			}
			if to.IsFloat() && t.IsInt() && x.size > 1<<20 {
				break
			}
			g.add("convert", true, min(size, 1<<20), 0, func(f compute.Function, i int) (compute.Value, error) { return f.ConvertDType(x.v[i], to) })
		}
	case 12:
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
	case 13:
		g.view("transpose", x, func(f compute.Function, v compute.Value) (compute.Value, error) { return f.Transpose(v, perm...) })
	case 14, 15:
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
	case 16:
		lo, hi, st := make([]int, rank), make([]int, rank), make([]int, rank)
		for i, d := range s.Dimensions {
			lo[i] = r.IntN(d)
			hi[i] = lo[i] + 1 + r.IntN(d-lo[i])
			st[i] = 1 + r.IntN(2)
		}
		g.view("slice", x, func(f compute.Function, v compute.Value) (compute.Value, error) { return f.Slice(v, lo, hi, st) })
	case 17:
		axes := perm[:min(rank, 1+axis())]
		g.view("reverse", x, func(f compute.Function, v compute.Value) (compute.Value, error) { return f.Reverse(v, axes...) })
	case 18:
		y := g.like(x)
		if k := axis(); rank > 0 {
			g.add(fmt.Sprint("concatenate ", k), x.exact && y.exact, max(x.size, y.size), max(x.depth, y.depth),
				func(f compute.Function, i int) (compute.Value, error) {
					return f.Concatenate(k, x.v[i], y.v[i], x.v[i])
				})
		}
	case 19:
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
	case 20, 21, 22:
		if rank == 0 {
			break
		}
		axes := perm[:1+r.IntN(rank)]
		op := pickOne(r, reductions)
		g.add(fmt.Sprint("reduce ", axes), x.exact, x.size*float64(s.Size()), x.depth,
			func(f compute.Function, i int) (compute.Value, error) { return op(f, x.v[i], axes...) })
	case 23:
		g.index(x, axis())
	case 24:
		g.dot(x)
	default:
		g.window(x, axis())
	}
}

func (g *grower) view(name string, x twin, build func(f compute.Function, v compute.Value) (compute.Value, error)) {
	g.add(name, x.exact, x.size+2, x.depth, func(f compute.Function, i int) (compute.Value, error) { return build(f, x.v[i]) })
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
