package vae

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/nn"
)

// parameters counts the trainable numbers below a scope.
func parameters(store *model.Store, scope string) (n int) {
	for v := range store.Scope(scope).IterVariables() {
		if v.Trainable {
			n += v.Shape().Size()
		}
	}
	return n
}

// The published networks have so many parameters.
func TestParameterCounts(t *testing.T) {
	b := open(t)
	for _, c := range []struct{ codes, gfn, prior int }{{4, 928_321, 1_037_316}, {8, 944_769, 1_042_440}, {10, 952_993, 1_045_002}} {
		m := Model{Size: Paper(c.codes), Learned: true}
		p := Policy{Size: m.Size}
		store := newStore(1)
		x := m.noise(rand.New(rand.NewPCG(1, 1)), 1)
		z := tensors.FromFlatDataAndDimensions(make([]int32, m.Positions()), 1, m.Positions())
		eval(t, b, store, func(in []*Node) []*Node {
			joint := m.LogJoint(store.Scope(em.Theta), gfn.Batch{in[0]}, gfn.State{in[1]})
			return []*Node{joint, p.logQ(store.Scope(em.Phi), in[0], in[1]), VQ{m.Size}.loss(store.Scope("/vq"), in[0]).total}
		}, x, z)
		for scope, want := range map[string]int{
			em.Phi: c.gfn, em.Theta + "/decoder": 999_681, em.Theta + "/dictionary": c.codes, em.Theta + "/prior": c.prior,
			"/vq/encoder": 741_249, "/vq/decoder": 1_001_729, "/vq/codebook": 0,
		} {
			if got := parameters(store, scope); got != want {
				t.Errorf("K = %d: %s has %d parameters, want %d", c.codes, scope, got, want)
			}
		}
	}
}

// Convolutions and transposed convolutions of small matrices, by hand.
func TestGoldenConvolutions(t *testing.T) {
	b := open(t)
	count := func(rows, columns int) []float32 {
		x := make([]float32, rows*columns)
		for i := range x {
			x[i] = float32(i + 1)
		}
		return x
	}
	for _, c := range []struct {
		kernel, side int
		up           bool
		want         []float64
	}{
		{3, 2, true, []float64{5, 14, 10, 14, 36, 24, 15, 34, 20}},
		{4, 2, true, []float64{6, 17, 20, 14, 16, 42, 52, 34, 32, 82, 92, 58, 30, 69, 76, 44}},
		{3, 3, false, []float64{94, 106, 106, 94}},
		{4, 4, false, []float64{696, 732, 732, 696}},
	} {
		store := newStore(0)
		store.Scope("/net").VariableWithValue("weights", tensors.FromFlatDataAndDimensions(count(c.kernel, c.kernel), c.kernel, c.kernel, 1, 1))
		got := eval(t, b, store, func(in []*Node) []*Node {
			w := nn.SquareWindow(c.kernel, 2, 1)
			if c.up {
				return []*Node{nn.ConvTranspose{Channels: 1, Window: w}.Apply(store.Scope("/net"), in[0])}
			}
			return []*Node{nn.Conv{Channels: 1, Window: w}.Apply(store.Scope("/net"), in[0])}
		}, tensors.FromFlatDataAndDimensions(count(c.side, c.side), 1, c.side, c.side, 1))[0]
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("kernel %d, side %d, up %v: %v, want %v", c.kernel, c.side, c.up, got, c.want)
		}
	}
}

// The skip of a residual block carries the rectified input: with zero weights, -1 becomes 0 and 2 stays 2.
func TestResidual(t *testing.T) {
	b := open(t)
	for name, norm := range map[string]norm{"plain": plain, "batch-norm": batchNorm(nil)} {
		store := newStore(0)
		f := func(in []*Node) []*Node { return []*Node{residual(store.Scope("/net"), in[0], norm)} }
		x := tensors.FromFlatDataAndDimensions([]float32{-1, 2, -1, 2}, 1, 2, 1, 2)
		eval(t, b, store, f, x)
		sharpen(t, store, "/net", 0)
		if got := eval(t, b, store, f, x)[0]; fmt.Sprint(got) != "[0 2 0 2]" {
			t.Errorf("%s: %v, want [0 2 0 2]", name, got)
		}
	}
	store := newStore(3)
	x := tensors.FromFlatDataAndDimensions([]float64{-1, 2, 0.5, -3, 1, 1, -2, 4}, 1, 2, 2, 2)
	out := eval(t, b, store, func(in []*Node) []*Node {
		scope := store.Scope("/net")
		y := residual(scope, in[0], plain)
		r := Max(in[0], ZerosLike(in[0]))
		w := func(name string) *Node { return scope.At("%s", name).GetVariable("weights").NodeValue(in[0].Graph()) }
		inner := nn.SquareWindow(3, 1, 1).Convolve(r, w("3x3"))
		return []*Node{y, Add(r, nn.SquareWindow(1, 1, 0).Convolve(Max(inner, ZerosLike(inner)), w("1x1")))}
	}, x)
	for i := range out[0] {
		near(t, fmt.Sprint("entry ", i), out[0][i], out[1][i], 1e-12)
	}
}

// The image encoder and the decoder are the published chains of layers from 28x28 to 4x4 and back, activations where they are and
// where they are not.
func TestChains(t *testing.T) {
	b := open(t)
	s := Paper(8)
	s.Channels = 3
	r := rand.New(rand.NewPCG(2, 2))
	grid := make([]float32, 2*16)
	for i := range grid {
		grid[i] = float32(r.NormFloat64())
	}
	store := newStore(5)
	conv := func(scope *model.Scope, y *Node, kernel, stride, pad int) *Node {
		return nn.Conv{Channels: 3, Window: nn.SquareWindow(kernel, stride, pad)}.Apply(scope, y)
	}
	transposed := func(scope *model.Scope, y *Node, kernel int) *Node {
		return nn.ReLU(nn.ConvTranspose{Channels: 3, Window: nn.SquareWindow(kernel, 2, 1)}.Apply(scope, y))
	}
	residuals := func(scope *model.Scope, y *Node) *Node {
		return residual(scope.At("residual 2"), residual(scope.At("residual 1"), y, plain), plain)
	}
	f := func(in []*Node) []*Node {
		down, up := store.Scope("/down"), store.Scope("/up")
		x := nn.ReLU(conv(down.At("down 1"), in[0], 4, 2, 1))
		x = conv(down.At("down 2"), x, 4, 2, 1)
		x = residuals(down, conv(down.At("down 3"), x, 3, 2, 1))
		e := residuals(up, conv(up.At("in"), in[1], 1, 1, 0))
		e = transposed(up.At("up 3"), transposed(up.At("up 2"), transposed(up.At("up 1"), e, 3), 4), 4)
		e = nn.Conv{Channels: 1, Window: nn.SquareWindow(1, 1, 0), Bias: true}.Apply(up.At("out"), e)
		return []*Node{s.shrink(down, in[0], plain), x, s.enlarge(up, in[1], plain), e}
	}
	x, e := s.noise(r, 2), tensors.FromFlatDataAndDimensions(grid, 2, 4, 4, 1)
	eval(t, b, store, f, x, e)
	sharpen(t, store, "/", 1.5)
	out := eval(t, b, store, f, x, e)
	for i := 0; i < len(out); i += 2 {
		for j := range out[i] {
			near(t, fmt.Sprintf("chain %d, entry %d", i/2, j), out[i][j], out[i+1][j], 1e-5)
		}
		if spread := slices.Max(out[i]) - slices.Min(out[i]); spread < 0.05 {
			t.Errorf("chain %d: its values differ by %g, so the test shows little", i/2, spread)
		}
	}
}

// Networks fit images and grids of any size, and reduce 28 to 4 as published.
func TestSizes(t *testing.T) {
	var sides []int
	side := 28
	for _, w := range Paper(8).windows() {
		side = (side+2*w.Pad[0]-w.Kernel[0])/w.Stride[0] + 1
		sides = append(sides, w.Kernel[0], side)
	}
	if fmt.Sprint(sides) != "[4 14 4 7 3 4]" {
		t.Errorf("kernels and sides %v", sides)
	}
	b := open(t)
	r := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	sizes := []Size{
		{Height: 28, Width: 28, Rows: 5, Columns: 3, Codes: 3, Channels: 2},
		{Height: 1, Width: 7, Rows: 1, Columns: 7, Codes: 2, Channels: 1},
	}
	for range 6 {
		s := Size{Height: 1 + r.IntN(20), Width: 1 + r.IntN(20), Codes: 2 + r.IntN(4), Channels: 1 + r.IntN(3)}
		s.Rows, s.Columns = 1+r.IntN(min(s.Height, 4)), 1+r.IntN(min(s.Width, 4))
		sizes = append(sizes, s)
	}
	for _, s := range sizes {
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		store := newStore(1)
		m, p := Model{Size: s, Learned: true}, Policy{Size: s, Conditional: true}
		z := make([]int32, 2*s.Positions())
		for i := range z {
			z[i] = int32(r.IntN(s.Codes))
		}
		out := eval(t, b, store, func(in []*Node) []*Node {
			joint := m.LogJoint(store.Scope(em.Theta), gfn.Batch{in[0]}, gfn.State{in[1]})
			vq := VQ{s}.loss(store.Scope("/vq"), in[0])
			return []*Node{joint, p.logQ(store.Scope(em.Phi), in[0], in[1]), vq.total, Gradient(vq.total, in[0])[0]}
		}, s.noise(r, 2), tensors.FromFlatDataAndDimensions(z, 2, s.Positions()))
		for i := range 2 {
			if !(out[0][i] < 0) || !(out[1][i] < 0) || !(out[2][0] > 0) {
				t.Errorf("%+v: log-joint %g, log q %g, VQ loss %g", s, out[0][i], out[1][i], out[2])
			}
		}
		if len(out[3]) != 2*s.Pixels() {
			t.Errorf("%+v: a gradient of %d pixels", s, len(out[3]))
		}
	}
}

func TestBadSizes(t *testing.T) {
	for _, change := range []func(*Size){
		func(s *Size) { s.Codes = 1 }, func(s *Size) { s.Codes = 257 }, func(s *Size) { s.Rows = 29 }, func(s *Size) { s.Columns = 0 },
		func(s *Size) { s.Channels = 0 }, func(s *Size) { s.Height = 0 }, func(s *Size) { s.Width = -1 },
		func(s *Size) { s.Height, s.Width, s.Rows, s.Columns = 100, 100, 40, 40 },
	} {
		s := Paper(8)
		change(&s)
		if s.Validate() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if err := Paper(8).Validate(); err != nil {
		t.Error(err)
	}
}

// Before its last bias the decoder of GFlowNet-EM is positively homogeneous: doubling the dictionary doubles it.
func TestHomogeneous(t *testing.T) {
	b := open(t)
	s := Size{Height: 9, Width: 8, Rows: 3, Columns: 2, Codes: 3, Channels: 5, dtype: dtypes.Float64}
	m := Model{Size: s}
	store := newStore(7)
	z := []int32{0, 1, 2, 0, 1, 1, 2, 2, 0, 1, 0, 2}
	f := func(in []*Node) []*Node {
		logits := m.Logits(store.Scope(em.Theta), in[0])
		bias := store.GetVariable(em.Theta + "/decoder/out/bias").NodeValue(in[0].Graph())
		return []*Node{Sub(logits, BroadcastToShape(ExpandLeftToRank(bias, 4), logits.Shape()))}
	}
	codes := tensors.FromFlatDataAndDimensions(z, 2, 6)
	once := eval(t, b, store, f, codes)[0]
	sharpen(t, store, em.Theta+"/dictionary", 2)
	twice := eval(t, b, store, f, codes)[0]
	spread := 0.0
	for i := range once {
		near(t, fmt.Sprint("pixel ", i), twice[i], 2*once[i], 1e-12)
		spread = max(spread, once[i]-once[0])
	}
	if spread < 1e-3 {
		t.Errorf("pixels differ by %g: the test shows nothing", spread)
	}
}

// The cross-entropy of logits is that of their sigmoids, and its gradient sigmoid - x, also far out.
func TestCrossEntropy(t *testing.T) {
	b := open(t)
	logits, x := []float64{-800, -30, -1, 0, 0, 2, 40, 900}, []float64{0, 1, 0, 0, 1, 1, 1, 0}
	out := eval(t, b, newStore(0), func(in []*Node) []*Node {
		c := crossEntropy(in[0], in[1])
		return []*Node{c, Gradient(ReduceAllSum(c), in[0])[0]}
	}, logits, x)
	want := []float64{0, 30, 0.3132616875182228, 0.6931471805599453, 0.6931471805599453, 0.12692801104297252, 0, 900}
	slope := []float64{0, -1, 0.2689414213699951, 0.5, -0.5, -0.11920292202211757, 0, 1}
	for i := range want {
		near(t, fmt.Sprintf("cross-entropy of %g", logits[i]), out[0][i], want[i], 1e-12*(1+want[i]))
		near(t, fmt.Sprintf("gradient at %g", logits[i]), out[1][i], slope[i], 1e-12)
	}
}
