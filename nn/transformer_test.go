package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// slowTransformer is an Transformer on one sequence, row by row, with the variables of a store.
type slowTransformer struct {
	Transformer
	t     *testing.T
	store *model.Store
}

func (e slowTransformer) linear(path string, x [][]float64) (y [][]float64) {
	w, b := values(e.t, e.store, path+"/weights"), values(e.t, e.store, path+"/bias")
	for _, row := range x {
		y = append(y, slowLinear(row, w, b))
	}
	return y
}

func (e slowTransformer) norm(path string, x [][]float64) (y [][]float64) {
	scale, shift := values(e.t, e.store, path+"/scale"), values(e.t, e.store, path+"/shift")
	for _, row := range x {
		mean, variance := 0.0, 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / float64(len(row))
		}
		out := make([]float64, len(row))
		for i, v := range row {
			out[i] = (v-mean)/math.Sqrt(variance+1e-5)*(1+scale[i]) + shift[i]
		}
		y = append(y, out)
	}
	return y
}

func (e slowTransformer) attention(path string, x [][]float64, seen []bool) [][]float64 {
	width := len(x[0])
	each := width / e.Heads
	qkv := e.linear(path+"/qkv", x)
	mixed := make([][]float64, len(x))
	for i := range x {
		mixed[i] = make([]float64, width)
		for h := range e.Heads {
			weights, total := make([]float64, len(x)), 0.0
			for j := range x {
				if !seen[j] {
					continue
				}
				dot := 0.0
				for c := h * each; c < (h+1)*each; c++ {
					dot += qkv[i][c] * qkv[j][width+c]
				}
				weights[j] = math.Exp(dot / math.Sqrt(float64(each)))
				total += weights[j]
			}
			for j := range x {
				for c := h * each; c < (h+1)*each; c++ {
					mixed[i][c] += weights[j] / total * qkv[j][2*width+c]
				}
			}
		}
	}
	return e.linear(path+"/out", mixed)
}

func (e slowTransformer) apply(x [][]float64, seen []bool) [][]float64 {
	plus := func(x, y [][]float64) [][]float64 {
		for i, row := range y {
			for j := range row {
				row[j] += x[i][j]
			}
		}
		return y
	}
	for layer := range e.Layers {
		at := fmt.Sprintf("/net/%d/", layer)
		x = plus(x, e.attention(at+"attention", e.norm(at+"norm 1", x), seen))
		hidden := e.linear(at+"feed-forward/0", e.norm(at+"norm 2", x))
		for _, row := range hidden {
			for i, v := range row {
				row[i] = max(v, 0)
			}
		}
		x = plus(x, e.linear(at+"feed-forward/1", hidden))
	}
	return x
}

// An encoder agrees with loops, with and without a mask, and its gradient with differences of values.
func TestEncoder(t *testing.T) {
	const seed, batch, n, width = 3, 2, 5, 6
	t.Logf("seed %d", seed)
	net := Transformer{Layers: 2, Heads: 3, FeedForward: 7}
	mask := [][]bool{{true, true, true, false, false}, {false, true, true, true, true}}
	for _, name := range []string{"go", "simd"} {
		b, err := compute.NewWithConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Finalize()
		for _, masked := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, 0))
			store := seeded(4)
			x, weights := random(r, batch*n*width), tensors.FromFlatDataAndDimensions(random(r, batch*n*width), batch, n, width)
			exec := model.MustNewExec(b, store, func(_ *model.Scope, x, weights *Node) (y, sum, slope *Node) {
				var seen *Node
				if masked {
					seen = Const(x.Graph(), mask)
				}
				y = net.Apply(store.Scope("/net"), x, seen)
				sum = ReduceAllSum(Mul(y, weights))
				return y, sum, Gradient(sum, x)[0]
			})
			call := func(x []float64) (y []float64, sum float64, grad []float64) {
				a, b, c, err := exec.Call3(tensors.FromFlatDataAndDimensions(slices.Clone(x), batch, n, width), weights)
				if err != nil {
					t.Fatal(err)
				}
				return tensors.MustCopyFlatData[float64](a), tensors.ToScalar[float64](b), tensors.MustCopyFlatData[float64](c)
			}
			call(x)                                // makes the variables
			for v := range store.IterVariables() { // none at its special initial value, such as scales of 1
				if err := v.SetValue(tensors.FromFlatDataAndDimensions(random(r, v.Shape().Size()), v.Shape().Dimensions...)); err != nil {
					t.Fatal(err)
				}
			}
			y, _, grad := call(x)
			var want []float64
			for i := range batch {
				seen := slices.Repeat([]bool{true}, n)
				if masked {
					seen = mask[i]
				}
				rows := slices.Collect(slices.Chunk(slices.Clone(x[i*n*width:][:n*width]), width))
				for _, row := range (slowTransformer{net, t, store}).apply(rows, seen) {
					want = append(want, row...)
				}
			}
			what := fmt.Sprintf("%s, mask %t", name, masked)
			for i := range want {
				if math.Abs(y[i]-want[i]) > 1e-10 { // of values up to some hundred
					t.Errorf("%s: value %d is %v, want %v", what, i, y[i], want[i])
				}
			}
			direction := random(r, len(x))
			const h = 1e-6
			moved := func(h float64) float64 {
				z := slices.Clone(x)
				for i := range z {
					z[i] += h * direction[i]
				}
				_, sum, _ := call(z)
				return sum
			}
			slope, along := (moved(h)-moved(-h))/(2*h), 0.0
			for i, d := range direction {
				along += grad[i] * d
			}
			if !(math.Abs(slope-along) <= 1e-6*(1+math.Abs(slope))) {
				t.Errorf("%s: slope %v along a direction, the gradient says %v", what, slope, along)
			}
			exec.Finalize()
		}
	}
}
