package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae"
)

const vaeBatch = 128

// images are 28x28 with one pixel in five set.
func images(count int) *tensors.Tensor {
	return random("bench images", func(r *rand.Rand) float32 {
		if r.Float64() > 0.8 {
			return 1
		}
		return 0
	}, count, 28, 28, 1)
}

// vaeM updates the decoder on given codes.
func vaeM(b compute.Backend, _ Options) (prepared, error) {
	c, size := vae.PaperConfig(), vae.Paper(8)
	loss := c.Spec(size, nil, 1).MStep.Loss
	codes := below(size.Codes, "bench codes", vaeBatch, size.Positions())
	return adam(b, 2e-4, codes, images(vaeBatch), func(scope *model.Scope, z, x *Node) *Node {
		return loss(scope, gfn.Batch{x}, gfn.State{z}, nil)
	})
}

// vaeUpdate is one kind of update of a method, with K = 8.
func vaeUpdate(method string, only func(*em.Spec)) repeated {
	return func(b compute.Backend, _ Options) (prepared, error) {
		c := vae.PaperConfig()
		c.Method = method
		spec := c.Spec(vae.Paper(8), em.Full(images(vaeBatch)), 1)
		only(&spec)
		return learning[em.Report](em.New(b, nn.NewStore(c.Seed), spec))
	}
}

// The kinds. In an E-update 16 codes are sampled one after the other, decoded for the reward, and the log-probabilities
// of all of them differentiated in one batched pass.
var (
	eAlone     = func(s *em.Spec) { s.Gate, s.Sleep = em.Never, em.Sleep{} }
	sleepAlone = func(s *em.Spec) { s.Gate, s.Sleep.Alone = em.Never, true }
	mAlone     = func(s *em.Spec) { s.Gate = em.Turns{Length: math.MaxInt32} }
)

func vqStep(b compute.Backend, _ Options) (prepared, error) {
	c := vae.PaperConfig()
	c.Method, c.Eval.Every = vae.MethodVQ, 0
	return learning[run.Tick](vae.Task{}.Start(b, &c))
}

// vaeUpdates are those of all methods, and the likelihood of an image.
func vaeUpdates(b compute.Backend, o Options, each func(Result) error) error {
	if err := (variants{
		{"E", nil, vaeUpdate(vae.MethodGD, eAlone)},
		{"sleep", nil, vaeUpdate(vae.MethodGD, sleepAlone)},
		{"M", nil, vaeUpdate(vae.MethodGD, mAlone)},
		{"prior E", nil, vaeUpdate(vae.MethodPrior, eAlone)},
		{"prior sleep", nil, vaeUpdate(vae.MethodPrior, sleepAlone)},
		{"prior M", nil, vaeUpdate(vae.MethodPrior, mAlone)},
		{"VQ", nil, vqStep},
	}).measure(b, o, each); err != nil {
		return err
	}
	r, err := likelihood(b, vae.PaperConfig().Eval.Samples)
	if err != nil {
		return fmt.Errorf("likelihood: %w", err)
	}
	return each(r)
}

// likelihood measures as many images as a call holds. It draws from a policy that is not trained: there are hardly two
// equal latents, so that a trained one takes at most as long.
func likelihood(b compute.Backend, samples int) (r Result, err error) {
	size := vae.Paper(8)
	l := &vae.Likelihood{
		Backend: b, Store: nn.NewStore(0), Samples: samples,
		Model: vae.Model{Size: size}, Proposal: vae.Policy{Size: size},
	}
	defer l.Close()
	take := func(indices []int) *tensors.Tensor { return images(len(indices)) }
	begin := time.Now()
	if _, err := l.Estimate(1, take); err != nil {
		return r, err
	}
	first, count := time.Since(begin), max(1, l.Draws/samples)
	begin = time.Now()
	n, err := l.Estimate(count, take)
	if err != nil {
		return r, err
	}
	one := time.Since(begin) / time.Duration(count)
	r = summary([]time.Duration{one})
	r.Workload, r.FirstS = "NLL of an image", first.Seconds()
	r.Values = map[string]float64{
		"images": float64(count), "samples": float64(samples), "distinct": n.Distinct,
		"seconds_for_10000": 1e4 * one.Seconds(),
	}
	return r, nil
}
