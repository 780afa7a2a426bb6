package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// encoderWeights are those of layers that normalise before attention and before a feed-forward network: scale and shift,
// products and biases, in the order in which encoderPass uses them.
func encoderWeights(width, layers int) (w []*tensors.Tensor) {
	add := func(scale float64, dims ...int) {
		w = append(w, tensor(dtypes.Float32, uint64(len(w)), scale, dims...))
	}
	norm := func() { add(0.1, width); add(0.1, width) }
	dense := func(in, out int) { add(1/math.Sqrt(float64(in)), in, out); add(0.1, out) }
	for range layers {
		norm()
		dense(width, 3*width)
		dense(width, width)
		norm()
		dense(width, 4*width)
		dense(4*width, width)
	}
	return w
}

// encoderPass maps x [batch, positions, width] by attention of 4 heads and feed-forward networks.
func encoderPass(x *Node, w []*Node) *Node {
	const heads = 4
	next := func() *Node { v := w[0]; w = w[1:]; return v }
	batch, n, width := x.Shape().Dim(0), x.Shape().Dim(1), x.Shape().Dim(2)
	norm := func(x *Node) *Node {
		c := Sub(x, ReduceAndKeep(x, ReduceMean, -1))
		y := Div(c, Sqrt(AddScalar(ReduceAndKeep(Square(c), ReduceMean, -1), 1e-5)))
		return Add(Mul(y, ExpandLeftToRank(OnePlus(next()), 3)), ExpandLeftToRank(next(), 3))
	}
	dense := func(x *Node) *Node {
		y := DotGeneral(x, []int{2}, nil, next(), []int{0}, nil)
		return Add(y, ExpandLeftToRank(next(), 3))
	}
	for len(w) > 0 {
		qkv := Reshape(dense(norm(x)), batch, n, 3, heads, width/heads)
		part := func(i int) *Node { return Squeeze(SliceAxis(qkv, 2, AxisElem(i)), 2) }
		scores := MulScalar(DotGeneral(part(0), []int{3}, []int{0, 2}, part(1), []int{3}, []int{0, 2}), 1/math.Sqrt(float64(width/heads)))
		mixed := DotGeneral(Softmax(scores, -1), []int{3}, []int{0, 1}, part(2), []int{1}, []int{0, 2})
		x = Add(x, dense(Reshape(TransposeAllAxes(mixed, 0, 2, 1, 3), batch, n, width)))
		x = Add(x, dense(Max(dense(norm(x)), ScalarZero(x.Graph(), dtypes.Float32))))
	}
	return x
}

// repeatedPass applies a pass several times to in[0], in a loop that carries the weights in[1:], one that captures them, or
// without a loop.
func repeatedPass(how string, times int, in []*Node) *Node {
	x, w := in[0], in[1:]
	if how == "unrolled" {
		for range times {
			x = encoderPass(x, w)
		}
		return x
	}
	g := x.Graph()
	state := []*Node{ScalarZero(g, dtypes.Int32), x}
	if how == "carried" {
		state = append(state, w...)
	}
	params := func(g *Graph) (p []*Node) {
		for i, s := range state {
			p = append(p, Parameter(g, fmt.Sprint("state", i), s.Shape()))
		}
		return p
	}
	cond := NewClosure(g, func(g *Graph) []*Node {
		return []*Node{LessThan(params(g)[0], Const(g, int32(times)))}
	})
	body := NewClosure(g, func(g *Graph) []*Node {
		p := params(g)
		p[0] = AddScalar(p[0], 1)
		if how == "carried" {
			p[1] = encoderPass(p[1], p[2:])
		} else {
			p[1] = encoderPass(p[1], w)
		}
		return p
	})
	return While(cond, body, state...)[1]
}

// encoderLoop compiles passes of a network of two layers on 16 sentences of 20 words, and moves its inputs to the backend.
func encoderLoop(t testing.TB, how string, times, width int) (*Exec, []any) {
	backend := open(t, "simd")
	exec := MustNewExec(backend, func(in []*Node) *Node { return repeatedPass(how, times, in) })
	args := []any{tensor(dtypes.Float32, 99, 1, 16, 20, width)}
	for _, w := range encoderWeights(width, 2) {
		args = append(args, w)
	}
	for _, a := range args {
		if err := a.(*tensors.Tensor).ToDevice(backend, 0); err != nil {
			t.Fatal(err)
		}
	}
	return exec, args
}

// TestWhileEncoder checks that a network gives the same bits however it is repeated.
func TestWhileEncoder(t *testing.T) {
	var want []float32
	for _, how := range []string{"unrolled", "captured", "carried"} {
		exec, args := encoderLoop(t, how, 3, 32)
		got := must(tensors.CopyFlatData[float32](exec.MustCall(args...)[0]))
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: other results than unrolled", how)
		}
	}
}

// BenchmarkWhileEncoder is 20 passes in a loop that carries the weights, captures them, or is unrolled.
func BenchmarkWhileEncoder(b *testing.B) {
	for _, width := range []int{64, 512} {
		for _, how := range []string{"carried", "captured", "unrolled"} {
			b.Run(fmt.Sprint(how, width), func(b *testing.B) {
				exec, args := encoderLoop(b, how, 20, width)
				_ = exec.MustCall(args...)[0].FinalizeAll()
				b.ReportAllocs()
				for b.Loop() {
					_ = exec.MustCall(args...)[0].FinalizeAll()
				}
			})
		}
	}
}

// BenchmarkWhileCount is a loop of 1000 iterations that does nothing but count.
func BenchmarkWhileCount(b *testing.B) {
	for _, extra := range []int{0, 30} {
		b.Run(fmt.Sprint("invariants", extra), func(b *testing.B) {
			exec := MustNewExec(open(b, "simd"), func(n *Node) *Node {
				g := n.Graph()
				state := []*Node{ScalarZero(g, dtypes.Int32), n}
				for i := range extra {
					state = append(state, AddScalar(n, i))
				}
				params := func(g *Graph) (p []*Node) {
					for i, s := range state {
						p = append(p, Parameter(g, fmt.Sprint("state", i), s.Shape()))
					}
					return p
				}
				cond := NewClosure(g, func(g *Graph) []*Node { p := params(g); return []*Node{LessThan(p[0], p[1])} })
				body := NewClosure(g, func(g *Graph) []*Node { p := params(g); p[0] = AddScalar(p[0], 1); return p })
				return While(cond, body, state...)[0]
			})
			n := tensors.FromValue(int32(1000))
			for b.Loop() {
				_ = exec.MustCall(n)[0].FinalizeAll()
			}
		})
	}
}
