package bench

import (
	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/vae"
)

const vaeBatch = 128

// images are 28x28 with one pixel in five set.
func images(count int) *tensors.Tensor {
	r := rng.New(0, "bench images")
	x := make([]float32, count*28*28)
	for i := range x {
		if r.Float64() > 0.8 {
			x[i] = 1
		}
	}
	return tensors.FromFlatDataAndDimensions(x, count, 28, 28, 1)
}

// vaeM is one update of the decoder on given codes.
func vaeM(b compute.Backend) (func() error, error) {
	m := vae.Model{Size: vae.Paper(8)}
	r := rng.New(0, "bench codes")
	codes := make([]int32, vaeBatch*m.Positions())
	for i := range codes {
		codes[i] = int32(r.IntN(m.Codes))
	}
	return trained(b, 2e-4, func(scope *model.Scope, in []*Node) *Node {
		return ReduceAllMean(vae.CrossEntropy(m.Logits(scope, in[0]), in[1]))
	}, tensors.FromFlatDataAndDimensions(codes, vaeBatch, m.Positions()), images(vaeBatch))
}

// vaeE is one trajectory-balance update of the encoder: 16 codes are sampled one after the other, decoded for the reward,
// and the log-probabilities of all of them differentiated in one batched pass.
func vaeE(b compute.Backend) (func() error, error) {
	m := vae.Model{Size: vae.Paper(8)}
	x := images(vaeBatch)
	if err := x.ToDevice(b, 0); err != nil {
		return nil, err
	}
	l, err := em.New(b, nn.NewStore(0), em.Spec{
		Model: m, Env: m.Env(), Policy: vae.Policy{Size: m.Size}, Data: em.Full(x),
		Wake: em.Wake{
			Objective: gfn.TB{}, Reward: m.Reward, Rescore: true,
			Optimizer: optim.Optimizer{Groups: []optim.Group{{Scope: em.Phi, Rate: optim.Rate{Base: 2e-4}}}},
		},
		Gate: em.Never,
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := l.Step()
		return err
	}, nil
}
