package vae

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/mnist"
)

// Choices computes how probable every code is at each step of an encoding. Closing its codec closes it.
type Choices struct {
	codec *Codec
	logs  *program.Program[choiceIn[host], choiceLogs[host]]
}

type (
	choiceIn[T any]   struct{ X, Codes T }   // [1,H,W,1]; [1,n] uint8
	choiceLogs[T any] struct{ LogQ, LogP T } // [n,K] float64, log p(x|z) [1]
)

// Choices returns the codec's.
func (c *Codec) Choices() *Choices {
	out := &Choices{codec: c}
	out.logs = program.New[choiceIn[host], choiceLogs[host]](c.programs, "choices", out.graph)
	return out
}

// graph evaluates the policy at all prefixes of a latent at once.
func (s *Choices) graph(in choiceIn[*Node]) (out choiceLogs[*Node]) {
	c, z := s.codec, ConvertDType(in.Codes, dtypes.Int32)
	out.LogP = ConvertDType(c.model.LogLikelihood(c.theta(), gfn.Batch{in.X}, gfn.State{z}), dtypes.Float64)
	if c.config.Method == MethodVQ {
		return out
	}
	n := c.Positions()
	net, u := c.q(in.X)
	ranks := make([]int32, n)
	for at, rank := range c.ranks() {
		ranks[at] = int32(rank)
	}
	step := InsertAxes(Const(z.Graph(), ranks), 0) // [1,n]
	prefix := make([]*Node, n)
	for at, rank := range ranks {
		prefix[at] = Where(LessThan(step, Const(z.Graph(), rank)), z, Neg(OnesLike(z)))
	}
	states := gfn.State{Concatenate(prefix, 0)}
	h := net.Policy.Heads(net.Scope, u, states, n)
	out.LogQ = ConvertDType(gfn.Behaviour{}.LogProbs(h.Forward, net.Env.Legal(states)), dtypes.Float64)
	return out
}

// Ranks says of each position how many are filled before it; nil means row by row.
func (c *Codec) Ranks() []int {
	if c.order() == nil {
		return nil
	}
	return c.ranks()
}

// Of returns log q of every code given the image and the codes before it, [n][K], and log p(x|z). The former is nil
// of a VQ-VAE, which chooses nothing.
func (s *Choices) Of(images mnist.Images, z Codes) (logQ [][]float64, logP float64, err error) {
	c := s.codec
	if images.Len() != 1 || images.Size != (mnist.Size{Height: c.Height, Width: c.Width}) {
		return nil, 0, badinput.Errorf("one image of %dx%d pixels is needed", c.Height, c.Width)
	}
	if err := c.Check(z); err != nil {
		return nil, 0, badinput.Errorf("%w", err)
	}
	codes := tensors.FromFlatDataAndDimensions([]uint8(z), 1, len(z))
	y, err := s.logs.Call(choiceIn[host]{batchOf(images, []int{0}), codes})
	if err != nil {
		return nil, 0, err
	}
	logP = tensors.MustCopyFlatData[float64](y.LogP)[0]
	if y.LogQ == nil {
		return nil, logP, nil
	}
	flat := tensors.MustCopyFlatData[float64](y.LogQ)
	for t := range z {
		logQ = append(logQ, flat[t*c.Size.Codes:][:c.Size.Codes])
	}
	return logQ, logP, nil
}

// Weigh estimates log p(x) of an image from so many latents of q, with the effective sample size of their weights.
func (s *Choices) Weigh(images mnist.Images, samples int, seed uint64) (NLL, error) {
	c := s.codec
	if c.config.Method == MethodVQ {
		return NLL{}, badinput.Errorf("a VQ-VAE has no posterior that latents are drawn from")
	}
	l := Likelihood{
		Backend: c.programs.Backend, Store: c.programs.Store, Model: c.model, Proposal: c.config.policy(c.Size),
		Samples: samples, Seed: seed, Draws: samples,
	}
	defer l.Close()
	return l.Estimate(images.Len(), func(indices []int) *tensors.Tensor { return batchOf(images, indices) })
}
