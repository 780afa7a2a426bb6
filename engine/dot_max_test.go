package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/engine"
)

// maxGraph is a random reduction by maximum of the sum of two operands, and what is done with it.
type maxGraph struct {
	t        dtypes.DType
	dims     []int     // of the sum
	axes     []int     // that are reduced
	missing  [2][]bool // axes that an operand repeats
	perm     [2][]int  // the order of its axes in memory
	reversed [2]int    // an axis that is turned around, or -1
	cut      bool      // operands are parts of larger ones
	use      int
	stored   [2][]int // the operands' dimensions
	data     [2][]float64
}

func drawMax(r *rand.Rand) *maxGraph {
	rank := 2 + r.IntN(4)
	types := []dtypes.DType{dtypes.Float32, dtypes.Float32, dtypes.Float64}
	g := &maxGraph{t: pickOne(r, types), cut: r.IntN(3) == 0, use: r.IntN(6)}
	for range rank {
		g.dims = append(g.dims, pickOne(r, []int{1, 2, 3, 4, 5, 9, 17}))
	}
	order := r.Perm(rank)
	g.axes = order[:1+r.IntN(2)]
	for k := range 2 {
		g.missing[k] = make([]bool, rank)
	}
	for i, a := range order[1:] { // mostly one axis of the terms, one of rows, one of columns, and others
		if i < 2 && r.IntN(8) > 0 {
			g.missing[i][a] = true
		} else if k := r.IntN(4); k < 2 {
			g.missing[k][a] = true
		}
	}
	kind := r.IntN(3)
	for k := range 2 {
		g.perm[k], g.reversed[k] = r.Perm(rank), r.IntN(4*rank)
		size := 1
		for _, a := range g.perm[k] {
			d := g.dims[a]
			switch {
			case g.missing[k][a]:
				d = 1
			case g.cut:
				d++
			}
			g.stored[k], size = append(g.stored[k], d), size*d
		}
		g.data[k] = numbers(size, r.Uint64())
		odd := []float64{0, math.Copysign(0, -1), math.Inf(-1), math.Inf(1), math.NaN()}[:1+kind*2]
		for i := range g.data[k] {
			if kind > 0 && r.IntN(4) == 0 {
				g.data[k][i] = pickOne(r, odd)
			}
		}
	}
	return g
}

func (g *maxGraph) build(in []*Node) []*Node {
	for k, x := range in {
		back := make([]int, len(g.dims))
		for i, a := range g.perm[k] {
			back[a] = i
		}
		x = TransposeAllAxes(ConvertDType(x, g.t), back...)
		for a, d := range g.dims {
			if g.cut && !g.missing[k][a] {
				x = SliceAxis(x, a, AxisRange(1, 1+d))
			}
		}
		if g.reversed[k] < len(g.dims) {
			x = Reverse(x, g.reversed[k])
		}
		in[k] = x
	}
	sum := Add(in[0], in[1])
	most := ReduceMax(sum, g.axes...)
	switch g.use {
	case 0:
		return []*Node{most, sum} // the sum is needed
	case 1:
		return []*Node{MaxScalar(most, 0)} // a product of matrices would take this over
	case 2:
		return []*Node{Add(most, OnesLike(most)), most}
	case 3:
		return []*Node{Reshape(most, -1)}
	}
	return []*Node{most}
}

// compareMaxima runs random graphs with products of maxima on the go backend and with the sums written out, and returns
// what is first found to be different, and in how many graphs there were such products.
func compareMaxima(t *testing.T, graphs int) (different string, found int) {
	for seed := range uint64(graphs) {
		g := drawMax(rand.New(rand.NewPCG(seed, 9)))
		eval := func(b compute.Backend) []*tensors.Tensor {
			operand := func(k int) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(g.data[k], g.stored[k]...) }
			out, err := ExecOnceN(b, g.build, operand(0), operand(1))
			if err != nil {
				t.Fatalf("graph %d: %v", seed, err)
			}
			return out
		}
		n := 0
		got := eval(watched{open(t, "simd"), func(e compute.Executable) { n += engine.Maxima(e) }})
		found += min(n, 1)
		for _, config := range []string{oracle, "simd:nofusion"} {
			for i, x := range eval(open(t, config)) {
				if j := firstOther(numbersOf(x), numbersOf(got[i]), config == oracle); j >= 0 {
					return fmt.Sprintf("graph %d %+v: element %d of output %d is not that of %s", seed, g, j, i, config), found
				}
			}
		}
	}
	return "", found
}

// firstOther returns where two results differ, or -1. A zero of the go backend has any sign.
func firstOther(x, y []float64, zeros bool) int {
	for i := range x {
		same := x[i] == y[i] && (zeros || math.Signbit(x[i]) == math.Signbit(y[i]))
		if !same && (x[i] == x[i] || y[i] == y[i]) {
			return i
		}
	}
	return -1
}

// numbersOf is the elements of a tensor of floats.
func numbersOf(x *tensors.Tensor) (out []float64) {
	if x.DType() == dtypes.Float64 {
		return tensors.MustCopyFlatData[float64](x)
	}
	for _, v := range tensors.MustCopyFlatData[float32](x) {
		out = append(out, float64(v))
	}
	return out
}

// TestMaxima compares products of maxima with sums that are written out, bit by bit, and catches a broken twin.
func TestMaxima(t *testing.T) {
	const graphs = 1500
	different, found := compareMaxima(t, graphs)
	if different != "" {
		t.Error(different)
	}
	if found < graphs/10 {
		t.Errorf("only %d of %d graphs have products of maxima", found, graphs)
	}
	t.Logf("%d of %d graphs have products of maxima", found, graphs)
	defer engine.BreakMaxima()()
	if different, _ = compareMaxima(t, graphs); different == "" {
		t.Error("a broken twin was not caught")
	}
}

// farthest is, for each row of x [m,k] and of y [n,k], the greatest sum of their elements: [m,n].
func farthest(x, y *Node) *Node { return ReduceMax(Add(InsertAxes(x, 1), InsertAxes(y, 0)), -1) }

// TestMaximaMemory checks that a large product of maxima needs no memory for the sums, and has the same bits on any
// number of threads.
func TestMaximaMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const m, n, k = 400, 300, 200
	var first []float32
	for _, threads := range []int{1, 2, 3, 8} {
		runtime.GOMAXPROCS(threads)
		arena := 0
		b := watched{open(t, "simd"), func(e compute.Executable) { arena = engine.Arena(e) }}
		out, err := ExecOnce(b, func(x, y *Node) *Node { return farthest(Exp(x), Transpose(Exp(y), 0, 1)) },
			tensor(dtypes.Float32, 1, 1, m, k), tensor(dtypes.Float32, 2, 1, k, n))
		if err != nil {
			t.Fatal(err)
		}
		if most := 4 * (m*k + k*n + 64); arena > most {
			t.Errorf("%d bytes between steps, more than the %d of the operands", arena, most)
		}
		got := tensors.MustCopyFlatData[float32](out)
		if first == nil {
			first = got
		}
		if !slices.Equal(first, got) {
			t.Errorf("other bits on %d threads", threads)
		}
	}
}

// TestMaximaGradient differentiates a product of maxima.
func TestMaximaGradient(t *testing.T) {
	eval := func(config string) []*tensors.Tensor {
		out, err := ExecOnceN(open(t, config), func(in []*Node) []*Node {
			y := farthest(in[0], in[1])
			loss := ReduceAllSum(Mul(y, Sin(IotaFull(y.Graph(), y.Shape()))))
			return append(Gradient(loss, in...), y)
		}, tensor(dtypes.Float64, 1, 1, 9, 7), tensor(dtypes.Float64, 2, 1, 11, 7))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := eval(oracle)
	for i, got := range eval("simd") {
		if !want[i].InDelta(got, 1e-12) {
			t.Errorf("output %d: %v, want %v", i, got, want[i])
		}
	}
}
