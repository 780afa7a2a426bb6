package bench

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

const (
	vaeBatch    = 128
	vaeChannels = 128
	vaeCodes    = 8
	vaeLatents  = 16 // a 4x4 grid
)

// images are 28x28 with one pixel in five set.
func images() *tensors.Tensor {
	r := rng.New(0, "bench images")
	x := make([]float32, vaeBatch*28*28)
	for i := range x {
		if r.Float64() > 0.8 {
			x[i] = 1
		}
	}
	return tensors.FromFlatDataAndDimensions(x, vaeBatch, 28, 28, 1)
}

// decode maps embedded codes [batch,4,4,1] to logits of pixels [batch,28,28,1].
func decode(scope *model.Scope, z *Node) *Node {
	const c = vaeChannels
	y := nn.Conv{Channels: c, Kernel: 1, Stride: 1}.Apply(scope.At("in"), z)
	y = nn.Residual(scope.At("residual 1"), y)
	y = nn.Residual(scope.At("residual 2"), y)
	y = nn.ReLU(nn.ConvTranspose{Channels: c, Kernel: 3, Stride: 2, Pad: 1}.Apply(scope.At("up 1"), y))
	y = nn.ReLU(nn.ConvTranspose{Channels: c, Kernel: 4, Stride: 2, Pad: 1}.Apply(scope.At("up 2"), y))
	y = nn.ReLU(nn.ConvTranspose{Channels: c, Kernel: 4, Stride: 2, Pad: 1}.Apply(scope.At("up 3"), y))
	return nn.Conv{Channels: 1, Kernel: 1, Stride: 1, Bias: true}.Apply(scope.At("out"), y)
}

// crossEntropy is -log p of binary pixels, given their logits.
func crossEntropy(logits, x *Node) *Node {
	soft := Add(Max(logits, ZerosLike(logits)), Log1P(Exp(Neg(Abs(logits)))))
	return Sub(soft, Mul(x, logits))
}

// vaeM is one update of the decoder.
func vaeM(b compute.Backend) (func() error, error) {
	return trained(b, 2e-4, func(scope *model.Scope, in []*Node) *Node {
		return ReduceAllMean(crossEntropy(decode(scope, in[0]), in[1]))
	}, normal(vaeBatch, 4, 4, 1), images())
}

// imageEncoder maps images to 64 features.
func imageEncoder(scope *model.Scope, x *Node) *Node {
	const c = vaeChannels
	y := nn.ReLU(nn.Conv{Channels: c, Kernel: 4, Stride: 2, Pad: 1}.Apply(scope.At("down 1"), x))
	y = nn.Conv{Channels: c, Kernel: 4, Stride: 2, Pad: 1}.Apply(scope.At("down 2"), y)
	y = nn.Conv{Channels: c, Kernel: 3, Stride: 2, Pad: 1}.Apply(scope.At("down 3"), y)
	y = nn.Residual(scope.At("residual 2"), nn.Residual(scope.At("residual 1"), y))
	return nn.Linear(scope.At("features"), Reshape(y, vaeBatch, 16*c), 64)
}

// codeLogits scores the next code, given features of the image [n,64] and the codes so far [n, 16 K], one-hot.
func codeLogits(scope *model.Scope, features, state *Node) *Node {
	v := nn.MLP{Widths: []int{128, 128, 64}}.Apply(scope.At("state"), state)
	return nn.MLP{Widths: []int{128, vaeLatents * vaeCodes}}.Apply(scope.At("head"), Concatenate([]*Node{features, v}, 1))
}

// vaeE is one trajectory-balance update of the encoder: 16 codes are sampled one after the other, decoded for the reward,
// and the log-probabilities of all of them differentiated in one batched pass. Codes are positions first: [16, K].
func vaeE(b compute.Backend) (func() error, error) {
	store := nn.NewStore(0)
	opt := optim.Optimizer{Groups: []optim.Group{{Scope: "/phi", Rate: optim.Rate{Base: 2e-4}}}}
	table := normal(vaeCodes)
	step := uint64(0)
	exec, err := model.NewExec(b, store, func(_ *model.Scope, in []*Node) *Node {
		x, table := in[2], in[3]
		phi := store.Scope("/phi")
		u := imageEncoder(phi.At("image"), x)
		hot := sampleCodes(phi, in[0], StopGradient(u))
		z := Reshape(ReduceSum(Mul(hot, BroadcastToShape(ExpandLeftToRank(table, 3), hot.Shape())), 2), vaeBatch, 4, 4, 1)
		logR := Neg(ReduceSum(crossEntropy(decode(store.Scope("/theta"), z), x), 1, 2, 3))
		logQ := scoreCodes(phi, u, hot)
		zeta := OnePlus(nn.Param(phi, x.Graph(), x.DType(), "zeta", 0))
		loss := ReduceAllMean(Square(Add(zeta, DivScalar(Sub(logQ, StopGradient(logR)), vaeLatents))))
		opt.Minimize(store, loss, in[1])
		return loss
	})
	if err != nil {
		return nil, err
	}
	x := images()
	for _, t := range []*tensors.Tensor{x, table} {
		if err := t.ToDevice(b, 0); err != nil {
			return nil, err
		}
	}
	return func() error {
		step++
		_, err := exec.Call(rng.Key(0, "codes", step), opt.Rates(0), x, table)
		return err
	}, nil
}

// sampleCodes draws a code for every position in turn and returns them one-hot, [batch, 16, K].
func sampleCodes(phi *model.Scope, key, features *Node) *Node {
	g := features.Graph()
	stream := rng.In(key)
	state := Zeros(g, shapes.Make(dtypes.Float32, vaeBatch, vaeLatents*vaeCodes))
	positions := Iota(g, shapes.Make(dtypes.Int32, 1, vaeLatents, 1), 1)
	for t := range vaeLatents {
		logits := SliceAxis(codeLogits(phi, features, state), 1, AxisRange(t*vaeCodes, (t+1)*vaeCodes))
		code := stream.Categorical(Softmax(logits, -1))
		here := ConvertDType(Equal(positions, Scalar(g, dtypes.Int32, t)), dtypes.Float32)
		hot := Mul(InsertAxes(OneHot(code, vaeCodes, dtypes.Float32), 1), here)
		state = Add(state, Reshape(hot, vaeBatch, vaeLatents*vaeCodes))
	}
	return StopGradient(Reshape(state, vaeBatch, vaeLatents, vaeCodes))
}

// scoreCodes is log q of codes, all positions in one pass.
func scoreCodes(phi *model.Scope, features, hot *Node) *Node {
	g := features.Graph()
	shape := shapes.Make(dtypes.Int32, vaeLatents, vaeLatents)
	before := ConvertDType(LessThan(Iota(g, shape, 1), Iota(g, shape, 0)), dtypes.Float32) // [step, position]
	all := []int{vaeBatch, vaeLatents, vaeLatents, vaeCodes}
	states := Mul(BroadcastToDims(InsertAxes(hot, 1), all...), BroadcastToDims(Reshape(before, 1, vaeLatents, vaeLatents, 1), all...))
	rows := vaeBatch * vaeLatents
	u := Reshape(BroadcastToDims(InsertAxes(features, 1), vaeBatch, vaeLatents, 64), rows, 64)
	logits := Reshape(codeLogits(phi, u, Reshape(states, rows, vaeLatents*vaeCodes)), all...)
	same := ConvertDType(Equal(Iota(g, shape, 1), Iota(g, shape, 0)), dtypes.Float32)
	own := ReduceSum(Mul(logits, BroadcastToDims(Reshape(same, 1, vaeLatents, vaeLatents, 1), all...)), 2) // [batch, step, K]
	return ReduceSum(Mul(LogSoftmax(own, -1), hot), 1, 2)
}
