package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/vae"
)

// VAE is the time of one kind of update of a discrete VAE, or of the likelihood of an image.
type VAE struct {
	Measurement
	// FirstS is how long the first call took, which compiles.
	FirstS float64 `json:"first_s"`
	// Of the likelihood of images: how many were measured, how many different latents they had, and how long 10,000 would take.
	Images   int     `json:"images,omitempty"`
	Distinct float64 `json:"distinct,omitempty"`
	AllS     float64 `json:"seconds_for_10000,omitempty"`
}

// RunVAE measures the updates of the methods at the paper's size, K = 8 and batch 128, for about the given time each, and the
// likelihood of an image with 5,000 samples.
func RunVAE(b compute.Backend, about time.Duration, each func(VAE) error) error {
	measured := func(name string, step func() error) error {
		begin := time.Now()
		if err := step(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		v := VAE{FirstS: time.Since(begin).Seconds()}
		var err error
		if v.Measurement, err = measure(name, step, about); err != nil {
			return err
		}
		return each(v)
	}
	for _, m := range []struct{ method, name string }{{vae.MethodGD, "vae "}, {vae.MethodPrior, "vae prior "}} {
		c := vae.PaperConfig()
		c.Method = m.method
		for _, u := range []struct {
			name string
			only func(*em.Spec)
		}{
			{"E", func(s *em.Spec) { s.Gate, s.Sleep = em.Never, em.Sleep{} }},
			{"sleep", func(s *em.Spec) { s.Gate, s.Sleep.Alone = em.Never, true }},
			{"M", func(s *em.Spec) { s.Gate = em.Turns{Length: math.MaxInt32} }},
		} {
			spec := c.Spec(vae.Paper(c.Model.Codes), em.Full(images(vaeBatch)), 1)
			u.only(&spec)
			l, err := em.New(b, nn.NewStore(c.Seed), spec)
			if err != nil {
				return err
			}
			defer l.Close()
			if err := measured(m.name+u.name, func() error {
				_, err := l.Step()
				return err
			}); err != nil {
				return err
			}
		}
	}
	c := vae.PaperConfig()
	c.Method, c.Eval.Every = vae.MethodVQ, 0
	vq, err := vae.Task{}.Start(b, &c)
	if err != nil {
		return err
	}
	defer vq.Close()
	if err := measured("vae VQ", func() error {
		_, err := vq.Step()
		return err
	}); err != nil {
		return err
	}
	v, err := likelihood(b)
	if err != nil {
		return err
	}
	return each(v)
}

// likelihood measures the likelihood of as many images as a call holds. It draws from a policy that is not trained: there are
// hardly two equal latents, so that a trained one takes at most as long.
func likelihood(b compute.Backend) (VAE, error) {
	c := vae.PaperConfig()
	size := vae.Paper(c.Model.Codes)
	l := &vae.Likelihood{
		Backend: b, Store: nn.NewStore(c.Seed), Model: vae.Model{Size: size}, Proposal: vae.Policy{Size: size}, Samples: c.Eval.Samples,
	}
	defer l.Close()
	take := func(indices []int) *tensors.Tensor { return images(len(indices)) }
	begin := time.Now()
	if _, err := l.Estimate(1, take); err != nil {
		return VAE{}, err
	}
	v := VAE{FirstS: time.Since(begin).Seconds()}
	count := l.Images()
	begin = time.Now()
	n, err := l.Estimate(count, take)
	if err != nil {
		return VAE{}, err
	}
	took := time.Since(begin).Seconds()
	v.Measurement = once("vae NLL of an image", took/float64(count))
	v.Images, v.Distinct, v.AllS = count, n.Distinct, took/float64(count)*1e4
	return v, nil
}
