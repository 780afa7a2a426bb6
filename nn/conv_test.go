package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	_ "github.com/gfnem/gfnem/engine"
)

// image layers under test: the network, and what it computes, pixel by pixel.
type imageLayer struct {
	name  string
	apply func(scope *model.Scope, x *Node) *Node
	slow  func(x, w []float64, rows, cols, in, out int) []float64
	out   int

	batch, rows, cols, in int
}

func convLayer(c Conv) imageLayer {
	return imageLayer{fmt.Sprintf("%+v", c), c.Apply, func(x, w []float64, rows, cols, in, out int) []float64 {
		small := func(axis, n int) int { return (n+2*c.Pad[axis]-c.Kernel[axis])/c.Stride[axis] + 1 }
		y := make([]float64, small(0, rows)*small(1, cols)*out)
		pairs(rows, cols, small(0, rows), small(1, cols), c.Window, func(large, little, tap int) {
			for i := range in {
				for o := range out {
					y[little*out+o] += x[large*in+i] * w[(tap*in+i)*out+o]
				}
			}
		})
		return y
	}, c.Channels, 0, 0, 0, 0}
}

func transposeLayer(c ConvTranspose) imageLayer {
	return imageLayer{fmt.Sprintf("transposed %+v", c), c.Apply, func(x, w []float64, rows, cols, in, out int) []float64 {
		large := func(axis, n int) int { return (n-1)*c.Stride[axis] - 2*c.Pad[axis] + c.Kernel[axis] }
		y := make([]float64, large(0, rows)*large(1, cols)*out)
		pairs(large(0, rows), large(1, cols), rows, cols, c.Window, func(big, little, tap int) {
			for i := range in {
				for o := range out {
					y[big*out+o] += x[little*in+i] * w[(tap*out+o)*in+i]
				}
			}
		})
		return y
	}, c.Channels, 0, 0, 0, 0}
}

// pairs lists which pixels of a large image meet which of a small one, under which tap.
func pairs(rows, cols, smallRows, smallCols int, w Window, do func(large, small, tap int)) {
	for r := range smallRows {
		for c := range smallCols {
			for i := range w.Kernel[0] {
				for j := range w.Kernel[1] {
					y, x := r*w.Stride[0]+i-w.Pad[0], c*w.Stride[1]+j-w.Pad[1]
					if y >= 0 && y < rows && x >= 0 && x < cols {
						do(y*cols+x, r*smallCols+c, i*w.Kernel[1]+j)
					}
				}
			}
		}
	}
}

// uneven is different for rows and columns in everything.
var uneven = Window{Kernel: [2]int{4, 3}, Stride: [2]int{2, 1}, Pad: [2]int{1, 0}}

// Values agree with the definition, and gradients, which are linear in each operand, with differences of values.
func TestImageLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"go:ops_sequential", "simd"} {
		b, err := compute.NewWithConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Finalize()
		for _, l := range []imageLayer{
			convLayer(Conv{9, SquareWindow(4, 2, 1), false}),
			convLayer(Conv{8, SquareWindow(3, 2, 1), false}),
			convLayer(Conv{2, SquareWindow(3, 1, 1), false}),
			convLayer(Conv{3, SquareWindow(2, 1, 0), false}),
			convLayer(Conv{3, SquareWindow(1, 1, 0), false}),
			convLayer(Conv{2, SquareWindow(3, 3, 0), false}), // does not see all pixels
			convLayer(Conv{9, uneven, false}),
			transposeLayer(ConvTranspose{8, uneven}),
			transposeLayer(ConvTranspose{9, SquareWindow(4, 2, 1)}),
			transposeLayer(ConvTranspose{2, SquareWindow(3, 2, 1)}),
			transposeLayer(ConvTranspose{8, SquareWindow(2, 3, 0)}), // leaves gaps
		} {
			l.batch, l.rows, l.cols, l.in = 2, 7, 8, 3
			t.Run(name+" "+l.name, func(t *testing.T) { checkImageLayer(t, b, l, r) })
		}
		// Large enough for several tiles of positions, of terms and of channels.
		l := convLayer(Conv{8, SquareWindow(3, 1, 1), false})
		l.batch, l.rows, l.cols, l.in = 7, 9, 10, 70
		t.Run(name+" large", func(t *testing.T) { checkImageLayer(t, b, l, r) })
	}
}

func checkImageLayer(t *testing.T, b compute.Backend, l imageLayer, r *rand.Rand) {
	batch, rows, cols, in := l.batch, l.rows, l.cols, l.in
	store := seeded(1)
	scope := store.Scope("/net")
	x := normals(r, batch*rows*cols*in)
	tx := tensors.FromFlatDataAndDimensions(x, batch, rows, cols, in)
	weights := func() []float64 {
		return tensors.MustCopyFlatData[float64](store.GetVariable("/net/weights").MustValue())
	}
	out, err := model.CallOnceN(b, store, func(_ *model.Scope, x *Node) []*Node {
		y := l.apply(scope, x)
		// The loss weighs the outputs unevenly: with c the weights, its gradients are those of <c, y>.
		c := Sin(MulScalar(ConvertDType(IotaFull(y.Graph(), y.Shape()), dtypes.Float64), 0.7))
		loss := ReduceAllSum(Mul(c, y))
		return append([]*Node{y, c}, Gradient(loss, x, scope.GetVariable("weights").NodeValue(y.Graph()))...)
	}, tx)
	if err != nil {
		t.Fatal(err)
	}
	flat := func(i int) []float64 { return tensors.MustCopyFlatData[float64](out[i]) }
	y, c := flat(0), flat(1)
	w := weights()
	each := func(x []float64, w []float64) []float64 {
		var all []float64
		for i := range batch {
			all = append(all, l.slow(x[i*rows*cols*in:(i+1)*rows*cols*in], w, rows, cols, in, l.out)...)
		}
		return all
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-10) {
			t.Fatalf("%s is %g, want %g", what, got, want)
		}
	}
	want := each(x, w)
	if len(want) != len(y) {
		t.Fatalf("%d outputs, want %d", len(y), len(want))
	}
	for i := range y {
		near(fmt.Sprint("output ", i), y[i], want[i])
	}
	score := func(y []float64) (s float64) {
		for i := range y {
			s += c[i] * y[i]
		}
		return s
	}
	for _, o := range []struct {
		name string
		v    []float64
		grad []float64
	}{{"x", x, flat(2)}, {"w", w, flat(3)}} {
		for range 30 {
			i := r.IntN(len(o.v))
			old := o.v[i]
			base := score(each(x, w))
			o.v[i] = old + 1
			near(fmt.Sprint("gradient of ", o.name, i), o.grad[i], score(each(x, w))-base)
			o.v[i] = old
		}
	}
}

func normals(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}
