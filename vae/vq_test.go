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

	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/optim"
)

// bookUpdate is a step of the codebook.
type bookUpdate[T any] struct {
	Z, Loss T
	Changes []T
}

// The codebook's first update, by hand: K = 3, e = -0.2, 0.1, 0.3 and four numbers.
func TestGoldenCodebook(t *testing.T) {
	b := open(t)
	store := newStore(0)
	at := store.Scope("/vq").At("codebook")
	at.VariableWithValue("entries", []float64{-0.2, 0.1, 0.3})
	v := VQ{Size{Height: 2, Width: 2, Rows: 2, Columns: 2, Codes: 3, Channels: 1, dtype: dtypes.Float64}}
	out := call[bookUpdate[*tensors.Tensor]](t, b, store, func(y *Node) bookUpdate[*Node] {
		book := v.codebook(store.Scope("/vq"), y.Graph())
		entries := book.entries.NodeValue(y.Graph())
		z := nearest(entries, y)
		e := DotGeneral(OneHot(z, 3, y.DType()), []int{-1}, nil, entries, []int{0}, nil)
		out := bookUpdate[*Node]{Z: z, Loss: MulScalar(ReduceAllMean(Square(Sub(y, e))), commitment)}
		for _, c := range book.follow(OneHot(z, 3, y.DType()), y) {
			out.Changes = append(out.Changes, c.Value)
		}
		return out
	}, []float64{0, 0.12, 0.15, -0.3})
	check := func(what string, x *tensors.Tensor, want ...float64) {
		for j, v := range floats(t, x) {
			near(t, fmt.Sprintf("number %d of %s", j, what), v, want[j], 1e-8*math.Abs(want[j]))
		}
	}
	check("the codes", out.Z, 1, 1, 1, 0)
	check("the loss", out.Loss, 0.00143125)
	for i, want := range [][]float64{
		{0.00100248139, 0.00298759305, 9.92555831e-06}, {-0.2001, 0.10017, 0.2997}, {-199.604703, 33.5286628, 30194.775},
	} {
		check(fmt.Sprint("change ", i), out.Changes[i], want...)
	}
	// Ties go to the first.
	if z := eval(t, b, store, func(_ *model.Scope, entries, y *Node) *Node { return nearest(entries, y) },
		[]float64{1, -1, 1}, []float64{0, 2}); fmt.Sprint(z) != "[0 0]" {
		t.Errorf("ties become %v", z)
	}
}

// vqInstance is a small VQ-VAE with its first variables.
func vqInstance(t *testing.T, dtype dtypes.DType) (v VQ, store *model.Store, x *tensors.Tensor) {
	v = VQ{Size{Height: 6, Width: 5, Rows: 2, Columns: 2, Codes: 3, Channels: 3, dtype: dtype}}
	return v, newStore(testkit.Seed(t)), v.noise(rand.New(rand.NewPCG(4, 4)), 6)
}

// through is the decoder's loss with the numbers of the encoder and with those of the codebook, and its gradients.
type through[T any] struct {
	Loss, Gradient pair[T]
	Codebook       T
}

// The decoder's gradient goes through to the encoder's numbers as if there were no codebook, which gets none.
func TestStraightThrough(t *testing.T) {
	b := open(t)
	v, store, x := vqInstance(t, dtypes.Float64)
	out := call[through[*tensors.Tensor]](t, b, store, func(x *Node) through[*Node] {
		x = ConvertDType(x, dtypes.Float64)
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
		straight, plain := loss(straightThrough(y, e)), loss(e)
		return through[*Node]{
			Loss:     pair[*Node]{straight, plain},
			Gradient: pair[*Node]{Gradient(straight, y)[0], Gradient(plain, e)[0]},
			Codebook: Gradient(straight, entries)[0],
		}
	}, x)
	same(t, "the loss", out.Loss, 1e-12)
	if slices.Max(same(t, "the gradient", out.Gradient, 1e-12)) == 0 {
		t.Error("no gradient goes through")
	}
	for _, v := range floats(t, out.Codebook) {
		near(t, "a gradient of the codebook", v, 0, 0)
	}
	// And the gradient of the encoder has the distance from the codebook, weighted.
	all := call[[]*tensors.Tensor](t, b, store, func(x *Node) []*Node {
		l := v.loss(store.Scope("/vq"), ConvertDType(x, dtypes.Float64))
		paths, grads := gradients(l.total, store, "/vq")
		for _, path := range paths {
			if strings.Contains(path, "codebook") || strings.Contains(path, "norm/mean") {
				t.Errorf("%s is trained by gradients", path)
			}
		}
		return grads
	}, x)
	for i, gradient := range all {
		if !slices.ContainsFunc(floats(t, gradient), func(v float64) bool { return v != 0 }) {
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
	scale := constant(at, y.DType(), "scale", 1, c).NodeValue(g)
	shift := constant(at, y.DType(), "shift", 0, c).NodeValue(g)
	row := func(v *Node) *Node { return BroadcastToShape(InsertAxes(v, 0), flat.Shape()) }
	return Reshape(Add(Mul(unit, row(scale)), row(shift)), y.Shape().Dimensions...)
}

// normed is what batch normalisation makes, and the gradients by its inputs.
type normed[T any] struct{ Value, Y, Scale, Shift pair[T] }

// norms are batch normalisation, the running statistics after it, and an evaluation.
type norms[T any] struct {
	Normed                     normed[T]
	Mean, Variance, Evaluation T
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
	out := call[norms[*tensors.Tensor]](t, b, store, func(y *Node) (out norms[*Node]) {
		scope := store.Scope("/net")
		weigh := func(y *Node) *Node {
			return ReduceAllSum(Mul(y, Sin(ConvertDType(IotaFull(y.Graph(), y.Shape()), y.DType()))))
		}
		fast, slow := batchNorm(&changes)(scope, y), slowNorm(scope, y)
		variable := func(name string) *Node { return scope.At("norm").GetVariable(name).NodeValue(y.Graph()) }
		by := func(v *Node) pair[*Node] {
			return pair[*Node]{Gradient(weigh(fast), v)[0], Gradient(weigh(slow), v)[0]}
		}
		out.Normed = normed[*Node]{pair[*Node]{fast, slow}, by(y), by(variable("scale")), by(variable("shift"))}
		for _, c := range changes {
			switch c.Variable.Name() {
			case "mean":
				out.Mean = c.Value
			case "variance":
				out.Variance = c.Value
			}
		}
		out.Evaluation = batchNorm(nil)(scope, y)
		return out
	}, y)
	same(t, "the value", out.Normed.Value, 1e-11)
	same(t, "the gradient", out.Normed.Y, 1e-11)
	same(t, "the gradient by the scale", out.Normed.Scale, 1e-11)
	same(t, "the gradient by the shift", out.Normed.Shift, 1e-11)
	means, variances, evaluations := floats(t, out.Mean), floats(t, out.Variance), floats(t, out.Evaluation)
	for c := range 4 {
		mean, squares := 0.0, 0.0
		for i := range 12 {
			mean += flat[i*4+c] / 12
		}
		for i := range 12 {
			squares += (flat[i*4+c] - mean) * (flat[i*4+c] - mean)
		}
		near(t, "a running mean", means[c], 0.9*0.1*float64(c+1)+0.1*mean, 1e-12)
		near(t, "a running variance", variances[c], 0.9*float64(c+1)+0.1*squares/11, 1e-12)
		scale, shift := []float64{1, 2, -0.5, 3}[c], []float64{0, 1, 2, -1}[c]
		near(t, "an evaluation", evaluations[c], (flat[c]-0.1*float64(c+1))/math.Sqrt(float64(c+1)+1e-5)*scale+shift, 1e-12)
	}
}

// The perplexity of even use is K, of one code 1.
func TestPerplexity(t *testing.T) {
	b := open(t)
	for _, c := range []struct {
		use  []float64
		want float64
	}{{[]float64{0.25, 0.25, 0.25, 0.25}, 4}, {[]float64{0, 1, 0, 0}, 1}} {
		x, err := model.CallOnce(b, newStore(0), func(_ *model.Scope, use *Node) *Node {
			return ConvertDType(perplexity(use), dtypes.Float64)
		}, c.use)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "perplexity", tensors.ToScalar[float64](x), c.want, 1e-6)
	}
}
