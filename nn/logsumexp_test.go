package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/internal/testkit"
)

// logSumExp is the sum as it is written, for numbers that are not too large.
func logSumExp(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v)
	}
	return math.Log(sum)
}

// TestLogSumExp compares values and gradients with those of the host, on both backends, where entries and whole rows may
// be -Inf, and rows are so large or so small that their exponentials are not numbers.
func TestLogSumExp(t *testing.T) {
	simd, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	defer simd.Finalize()
	const rows, width = 9, 5
	inf := math.Inf(-1)
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	var x []float64
	offset := func(row int) float64 { return []float64{0, 1e4, -1e4}[row%3] }
	for i := range rows * width {
		row := i / width
		v := 3*r.NormFloat64() + offset(row)
		if row >= 6 || row >= 3 && i%2 == 0 {
			v = inf
		}
		x = append(x, v)
	}
	x[7*width+2] = 700 // alone in its row
	for _, b := range []compute.Backend{newBackend(t), simd} {
		for _, axis := range []int{1, -1, 0} {
			in := tensors.FromFlatDataAndDimensions(append([]float64{}, x...), rows, width)
			out, err := CallOnceN(b, func(x *Node) []*Node {
				if axis == 0 {
					x = Transpose(x, 0, 1)
				}
				y := LogSumExp(x, axis)
				weights := AddScalar(ConvertDType(Iota(x.Graph(), y.Shape(), 0), dtypes.Float64), 1) // row i counts i+1
				loss := ReduceAllSum(Mul(weights, Where(IsFinite(y), y, ZerosLike(y))))
				grad := Gradient(loss, x)[0]
				bare := Gradient(ReduceAllSum(y), x)[0] // without a choice of rows
				if axis == 0 {
					grad, bare = Transpose(grad, 0, 1), Transpose(bare, 0, 1)
				}
				return []*Node{y, grad, bare}
			}, in)
			if err != nil {
				t.Fatal(err)
			}
			y, grad, bare := tensors.MustCopyFlatData[float64](out[0]), tensors.MustCopyFlatData[float64](out[1]), tensors.MustCopyFlatData[float64](out[2])
			for row := range rows {
				shifted, top := []float64{}, offset(row)
				if row == 7 {
					top = 700
				}
				for _, v := range x[row*width : (row+1)*width] {
					shifted = append(shifted, v-top)
				}
				sum := logSumExp(shifted)
				want := sum + top
				if !(math.Abs(y[row]-want) <= 1e-12*max(1, math.Abs(want))) && !(want == inf && y[row] == inf) {
					t.Errorf("%s, axis %d, row %d: %g, want %g", b.Name(), axis, row, y[row], want)
				}
				for k, v := range shifted {
					softmax := math.Exp(v - sum)
					if want == inf {
						softmax = 0
					}
					for name, g := range map[string]float64{"weighed": grad[row*width+k] / float64(row+1), "bare": bare[row*width+k]} {
						if !(math.Abs(g-softmax) <= 1e-12) {
							t.Errorf("%s, axis %d, row %d: the %s gradient of entry %d is %g, want %g", b.Name(), axis, row, name, k, g, softmax)
						}
					}
				}
			}
		}
	}
}

// The gradient is that of finite differences. NaN is not hidden, and three axes are as good as two.
func TestLogSumExpDifferences(t *testing.T) {
	b := newBackend(t)
	value := func(x []float64) (y, grad []float64) {
		out, err := CallOnceN(b, func(x *Node) []*Node {
			y := LogSumExp(x, 1)
			return []*Node{y, Gradient(ReduceAllSum(Square(y)), x)[0]}
		}, tensors.FromFlatDataAndDimensions(append([]float64{}, x...), 2, 3, 2))
		if err != nil {
			t.Fatal(err)
		}
		return tensors.MustCopyFlatData[float64](out[0]), tensors.MustCopyFlatData[float64](out[1])
	}
	loss := func(x []float64) (sum float64) {
		y, _ := value(x)
		for _, v := range y {
			sum += v * v
		}
		return sum
	}
	r := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	x := make([]float64, 12)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	_, grad := value(x)
	const h = 1e-5
	for i, v := range x {
		x[i] = v + h
		up := loss(x)
		x[i] = v - h
		down := loss(x)
		x[i] = v
		if d := (up - down) / (2 * h); !(math.Abs(d-grad[i]) <= 1e-8*max(1, math.Abs(d))) { // h^2 and rounding / h
			t.Errorf("entry %d: gradient %.12g, by differences %.12g", i, grad[i], d)
		}
	}
	x[3] = math.NaN()
	if y, _ := value(x); !math.IsNaN(y[1]) || math.IsNaN(y[0]) {
		t.Errorf("with a NaN: %v", y)
	}
}
