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

// networks are what all networks make of an example.
type networks[T any] struct{ Joint, LogQ, Loss, Gradient T }

func allNetworks(m Model, p Policy, store *model.Store) func(in example[*Node]) networks[*Node] {
	return func(in example[*Node]) networks[*Node] {
		joint := m.LogJoint(store.Scope(em.Theta), gfn.Batch{in.X}, gfn.State{in.Z})
		logQ := logQ(p, store.Scope(em.Phi), in.X, in.Z)
		loss := VQ{m.Size}.loss(store.Scope("/vq"), in.X).total
		return networks[*Node]{joint, logQ, loss, Gradient(loss, in.X)[0]}
	}
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
		call[networks[*tensors.Tensor]](t, b, store, allNetworks(m, p, store), example[*tensors.Tensor]{x, z})
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
		got := eval(t, b, store, func(_ *model.Scope, x *Node) *Node {
			w := nn.SquareWindow(c.kernel, 2, 1)
			if c.up {
				return nn.ConvTranspose{Channels: 1, Window: w}.Apply(store.Scope("/net"), x)
			}
			return nn.Conv{Channels: 1, Window: w}.Apply(store.Scope("/net"), x)
		}, tensors.FromFlatDataAndDimensions(count(c.side, c.side), 1, c.side, c.side, 1))
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
		f := func(_ *model.Scope, x *Node) *Node { return residual(store.Scope("/net"), x, norm) }
		x := tensors.FromFlatDataAndDimensions([]float32{-1, 2, -1, 2}, 1, 2, 1, 2)
		eval(t, b, store, f, x)
		sharpen(t, store, "/net", 0)
		if got := eval(t, b, store, f, x); fmt.Sprint(got) != "[0 2 0 2]" {
			t.Errorf("%s: %v, want [0 2 0 2]", name, got)
		}
	}
	store := newStore(3)
	x := tensors.FromFlatDataAndDimensions([]float64{-1, 2, 0.5, -3, 1, 1, -2, 4}, 1, 2, 2, 2)
	same(t, "a block", call[pair[*tensors.Tensor]](t, b, store, func(x *Node) pair[*Node] {
		scope := store.Scope("/net")
		y := residual(scope, x, plain)
		r := Max(x, ZerosLike(x))
		w := func(name string) *Node { return scope.At("%s", name).GetVariable("weights").NodeValue(x.Graph()) }
		inner := nn.SquareWindow(3, 1, 1).Convolve(r, w("3x3"))
		return pair[*Node]{y, Add(r, nn.SquareWindow(1, 1, 0).Convolve(Max(inner, ZerosLike(inner)), w("1x1")))}
	}, x), 1e-12)
}

// chains are the two chains of layers.
type chains[T any] struct{ Down, Up pair[T] }

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
	f := func(in example[*Node]) chains[*Node] {
		down, up := store.Scope("/down"), store.Scope("/up")
		x := nn.ReLU(conv(down.At("down 1"), in.X, 4, 2, 1))
		x = conv(down.At("down 2"), x, 4, 2, 1)
		x = residuals(down, conv(down.At("down 3"), x, 3, 2, 1))
		e := residuals(up, conv(up.At("in"), in.Z, 1, 1, 0))
		e = transposed(up.At("up 3"), transposed(up.At("up 2"), transposed(up.At("up 1"), e, 3), 4), 4)
		e = nn.Conv{Channels: 1, Window: nn.SquareWindow(1, 1, 0), Bias: true}.Apply(up.At("out"), e)
		return chains[*Node]{
			Down: pair[*Node]{s.shrink(down, in.X, plain), x},
			Up:   pair[*Node]{s.enlarge(up, in.Z, plain), e},
		}
	}
	in := example[*tensors.Tensor]{s.noise(r, 2), tensors.FromFlatDataAndDimensions(grid, 2, 4, 4, 1)}
	call[chains[*tensors.Tensor]](t, b, store, f, in)
	sharpen(t, store, "/", 1.5)
	out := call[chains[*tensors.Tensor]](t, b, store, f, in)
	for name, c := range map[string]pair[*tensors.Tensor]{"down": out.Down, "up": out.Up} {
		got := same(t, name, c, 1e-5)
		if spread := slices.Max(got) - slices.Min(got); spread < 0.05 {
			t.Errorf("%s: its values differ by %g, so the test shows little", name, spread)
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
		out := call[networks[*tensors.Tensor]](t, b, store, allNetworks(m, p, store),
			example[*tensors.Tensor]{s.noise(r, 2), tensors.FromFlatDataAndDimensions(z, 2, s.Positions())})
		joint, logQ, loss := floats(t, out.Joint), floats(t, out.LogQ), floats(t, out.Loss)
		for i := range 2 {
			if !(joint[i] < 0) || !(logQ[i] < 0) || !(slices.Min(loss) > 0) {
				t.Errorf("%+v: log-joint %g, log q %g, VQ loss %g", s, joint[i], logQ[i], loss)
			}
		}
		if pixels := len(floats(t, out.Gradient)); pixels != 2*s.Pixels() {
			t.Errorf("%+v: a gradient of %d pixels", s, pixels)
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
	f := func(_ *model.Scope, z *Node) *Node {
		logits := m.Logits(store.Scope(em.Theta), z)
		bias := store.GetVariable(em.Theta + "/decoder/out/bias").NodeValue(z.Graph())
		return Sub(logits, BroadcastToShape(ExpandLeftToRank(bias, 4), logits.Shape()))
	}
	codes := tensors.FromFlatDataAndDimensions(z, 2, 6)
	once := eval(t, b, store, f, codes)
	sharpen(t, store, em.Theta+"/dictionary", 2)
	twice := eval(t, b, store, f, codes)
	spread := 0.0
	for i := range once {
		near(t, fmt.Sprint("pixel ", i), twice[i], 2*once[i], 1e-12)
		spread = max(spread, once[i]-once[0])
	}
	if spread < 1e-3 {
		t.Errorf("pixels differ by %g: the test shows nothing", spread)
	}
}

// bits are logits and what they are to be.
type bits[T any] struct{ Logits, X T }

// curve is a value and its gradient.
type curve[T any] struct{ Value, Slope T }

// The cross-entropy of logits is that of their sigmoids, and its gradient sigmoid - x, also far out.
func TestCrossEntropy(t *testing.T) {
	b := open(t)
	logits, x := []float64{-800, -30, -1, 0, 0, 2, 40, 900}, []float64{0, 1, 0, 0, 1, 1, 1, 0}
	out := call[curve[*tensors.Tensor]](t, b, newStore(0), func(in bits[*Node]) curve[*Node] {
		c := crossEntropy(in.Logits, in.X)
		return curve[*Node]{c, Gradient(ReduceAllSum(c), in.Logits)[0]}
	}, bits[[]float64]{logits, x})
	values, slopes := floats(t, out.Value), floats(t, out.Slope)
	want := []float64{0, 30, 0.3132616875182228, 0.6931471805599453, 0.6931471805599453, 0.12692801104297252, 0, 900}
	slope := []float64{0, -1, 0.2689414213699951, 0.5, -0.5, -0.11920292202211757, 0, 1}
	for i := range want {
		near(t, fmt.Sprintf("cross-entropy of %g", logits[i]), values[i], want[i], 1e-12*(1+want[i]))
		near(t, fmt.Sprintf("gradient at %g", logits[i]), slopes[i], slope[i], 1e-12)
	}
}
