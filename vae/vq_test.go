package vae

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"

	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/optim"
)

// The codebook's first update, by hand: K = 3, e = -0.2, 0.1, 0.3 and four numbers.
func TestGoldenCodebook(t *testing.T) {
	b := open(t)
	store := newStore(0)
	at := store.Scope("/vq").At("codebook")
	at.VariableWithValue("entries", []float64{-0.2, 0.1, 0.3})
	v := VQ{Size{Height: 2, Width: 2, Rows: 2, Columns: 2, Codes: 3, Channels: 1, dtype: dtypes.Float64}}
	out := eval(t, b, store, func(in []*Node) []*Node {
		y := in[0]
		book := v.codebook(store.Scope("/vq"), y.Graph())
		entries := book.entries.NodeValue(y.Graph())
		z := nearest(entries, y)
		e := DotGeneral(OneHot(z, 3, y.DType()), []int{-1}, nil, entries, []int{0}, nil)
		changes := book.follow(OneHot(z, 3, y.DType()), y)
		out := []*Node{z, MulScalar(ReduceAllMean(Square(Sub(y, e))), commitment)}
		for _, c := range changes {
			out = append(out, c.Value)
		}
		return out
	}, []float64{0, 0.12, 0.15, -0.3})
	for i, want := range [][]float64{
		{1, 1, 1, 0}, {0.00143125}, {0.00100248139, 0.00298759305, 9.92555831e-06}, {-0.2001, 0.10017, 0.2997}, {-199.604703, 33.5286628, 30194.775},
	} {
		for j := range want {
			near(t, fmt.Sprintf("number %d of result %d", j, i), out[i][j], want[j], 1e-8*math.Abs(want[j]))
		}
	}
	// Ties go to the first.
	if z := eval(t, b, store, func(in []*Node) []*Node { return []*Node{nearest(in[0], in[1])} },
		[]float64{1, -1, 1}, []float64{0, 2})[0]; fmt.Sprint(z) != "[0 0]" {
		t.Errorf("ties become %v", z)
	}
}

// vqInstance is a small VQ-VAE with its first variables.
func vqInstance(t *testing.T, dtype dtypes.DType) (v VQ, store *model.Store, x *tensors.Tensor) {
	v = VQ{Size{Height: 6, Width: 5, Rows: 2, Columns: 2, Codes: 3, Channels: 3, dtype: dtype}}
	return v, newStore(testkit.Seed(t)), v.noise(rand.New(rand.NewPCG(4, 4)), 6)
}

// The decoder's gradient goes through to the encoder's numbers as if there were no codebook, which gets none.
func TestStraightThrough(t *testing.T) {
	b := open(t)
	v, store, x := vqInstance(t, dtypes.Float64)
	out := eval(t, b, store, func(in []*Node) []*Node {
		x := ConvertDType(in[0], dtypes.Float64)
		scope := store.Scope("/vq")
		g := x.Graph()
		y := v.numbers(scope, x, batchNorm(&[]optim.Assignment{}))
		book := v.codebook(scope, g)
		entries := book.entries.NodeValue(g)
		e := Reshape(v.lookUp(entries, nearest(entries, y)), y.Shape().Dimensions...)
		loss := func(e *Node) *Node {
			grid := Reshape(e, x.Shape().Dim(0), v.Rows, v.Columns, 1)
			return ReduceAllMean(crossEntropy(v.enlarge(scope.At(decoderScope), grid, batchNorm(&[]optim.Assignment{})), x))
		}
		through := loss(straightThrough(y, e))
		plain := loss(e)
		grads := Gradient(through, y, entries)
		return []*Node{through, plain, grads[0], Gradient(plain, e)[0], grads[1]}
	}, x)
	near(t, "the loss", out[0][0], out[1][0], 1e-12)
	if slices.Max(out[2]) == 0 {
		t.Error("no gradient goes through")
	}
	for i := range out[2] {
		near(t, "a gradient", out[2][i], out[3][i], 1e-12)
	}
	for i := range out[4] {
		near(t, "a gradient of the codebook", out[4][i], 0, 0)
	}
	// And the gradient of the encoder has the distance from the codebook, weighted.
	out = eval(t, b, store, func(in []*Node) []*Node {
		l := v.loss(store.Scope("/vq"), ConvertDType(in[0], dtypes.Float64))
		paths, grads := gradients(l.total, store, "/vq")
		for _, path := range paths {
			if strings.Contains(path, "codebook") || strings.Contains(path, "norm/mean") {
				t.Errorf("%s is trained by gradients", path)
			}
		}
		return grads
	}, x)
	for i := range out {
		if !slices.ContainsFunc(out[i], func(v float64) bool { return v != 0 }) {
			t.Errorf("variable %d has no gradient", i)
		}
	}
}

// slowNorm is batch normalisation by the definition, differentiated by GoMLX.
func slowNorm(scope *model.Scope, y *Node) *Node {
	g, c := y.Graph(), y.Shape().Dim(-1)
	flat := Reshape(y, -1, c)
	mean := ReduceAndKeep(flat, ReduceMean, 0)
	centred := Sub(flat, BroadcastToShape(mean, flat.Shape()))
	variance := ReduceAndKeep(Square(centred), ReduceMean, 0)
	unit := Div(centred, BroadcastToShape(Sqrt(AddScalar(variance, 1e-5)), flat.Shape()))
	at := scope.At("norm")
	scale := constant(at, y.DType(), "scale", initializer.One, c).NodeValue(g)
	shift := constant(at, y.DType(), "shift", initializer.Zero, c).NodeValue(g)
	row := func(v *Node) *Node { return BroadcastToShape(InsertAxes(v, 0), flat.Shape()) }
	return Reshape(Add(Mul(unit, row(scale)), row(shift)), y.Shape().Dimensions...)
}

// Batch normalisation has the value and the gradient of its definition, moves the running statistics as published, and
// uses them in evaluation.
func TestBatchNorm(t *testing.T) {
	b := open(t)
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	flat := make([]float64, 2*3*2*4)
	for i := range flat {
		flat[i] = 1 + 2*r.NormFloat64()
	}
	y := tensors.FromFlatDataAndDimensions(flat, 2, 3, 2, 4)
	store := newStore(1)
	at := store.Scope("/net").At("norm")
	at.VariableWithValue("scale", []float64{1, 2, -0.5, 3})
	at.VariableWithValue("shift", []float64{0, 1, 2, -1})
	at.VariableWithValue("mean", []float64{0.1, 0.2, 0.3, 0.4})
	at.VariableWithValue("variance", []float64{1, 2, 3, 4})
	var changes []optim.Assignment
	out := eval(t, b, store, func(in []*Node) []*Node {
		scope := store.Scope("/net")
		weigh := func(y *Node) *Node {
			return ReduceAllSum(Mul(y, Sin(ConvertDType(IotaFull(y.Graph(), y.Shape()), y.DType()))))
		}
		fast, slow := batchNorm(&changes)(scope, in[0]), slowNorm(scope, in[0])
		g := in[0].Graph()
		vars := []*Node{in[0], scope.At("norm").GetVariable("scale").NodeValue(g), scope.At("norm").GetVariable("shift").NodeValue(g)}
		nodes := append([]*Node{fast}, Gradient(weigh(fast), vars...)...)
		nodes = append(append(nodes, slow), Gradient(weigh(slow), vars...)...)
		return append(nodes, changes[0].Value, changes[1].Value, batchNorm(nil)(scope, in[0]))
	}, y)
	for i := range 4 {
		for j := range out[i] {
			near(t, fmt.Sprintf("result %d, entry %d", i, j), out[i][j], out[4+i][j], 1e-11)
		}
	}
	for c := range 4 {
		mean, squares := 0.0, 0.0
		for i := range 12 {
			mean += flat[i*4+c] / 12
		}
		for i := range 12 {
			squares += (flat[i*4+c] - mean) * (flat[i*4+c] - mean)
		}
		near(t, "a running mean", out[8][c], 0.9*0.1*float64(c+1)+0.1*mean, 1e-12)
		near(t, "a running variance", out[9][c], 0.9*float64(c+1)+0.1*squares/11, 1e-12)
		scale, shift := []float64{1, 2, -0.5, 3}[c], []float64{0, 1, 2, -1}[c]
		near(t, "an evaluation", out[10][c], (flat[c]-0.1*float64(c+1))/math.Sqrt(float64(c+1)+1e-5)*scale+shift, 1e-12)
	}
}

// The perplexity of even use is K, of one code 1.
func TestPerplexity(t *testing.T) {
	out := eval(t, open(t), newStore(0), func(in []*Node) []*Node { return []*Node{perplexity(in[0]), perplexity(in[1])} },
		[]float64{0.25, 0.25, 0.25, 0.25}, []float64{0, 1, 0, 0})
	near(t, "perplexity", out[0][0], 4, 1e-6)
	near(t, "perplexity", out[1][0], 1, 1e-6)
}
