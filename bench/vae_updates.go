package bench

import (
	"fmt"
	"time"

	"github.com/gomlx/compute"

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
	for _, m := range []struct {
		method, name string
		kinds        []string
	}{
		{vae.MethodGD, "vae ", []string{vae.UpdateE, vae.UpdateSleep, vae.UpdateM}},
		{vae.MethodPrior, "vae prior ", []string{vae.UpdateE, vae.UpdateSleep, vae.UpdateM}},
		{vae.MethodVQ, "vae ", []string{vae.UpdateVQ}},
	} {
		c := vae.PaperConfig()
		c.Method = m.method
		t, err := vae.NewTrial(b, c)
		if err != nil {
			return err
		}
		defer t.Close()
		for _, kind := range m.kinds {
			v, err := update(t, m.name+kind, kind, about)
			if err != nil {
				return err
			}
			if err := each(v); err != nil {
				return err
			}
		}
	}
	v, err := likelihood(b)
	if err != nil {
		return err
	}
	return each(v)
}

func update(t *vae.Trial, name, kind string, about time.Duration) (VAE, error) {
	begin := time.Now()
	if err := t.Update(kind); err != nil {
		return VAE{}, fmt.Errorf("%s: %w", name, err)
	}
	v := VAE{FirstS: time.Since(begin).Seconds()}
	var err error
	v.Measurement, err = measure(name, func() error { return t.Update(kind) }, about)
	return v, err
}

// likelihood measures the likelihood of as many images as a call holds.
func likelihood(b compute.Backend) (VAE, error) {
	t, err := vae.NewTrial(b, vae.PaperConfig())
	if err != nil {
		return VAE{}, err
	}
	defer t.Close()
	l, estimate := t.Likelihood()
	defer l.Close()
	begin := time.Now()
	if _, err := estimate(1); err != nil {
		return VAE{}, err
	}
	v := VAE{FirstS: time.Since(begin).Seconds()}
	images := l.Images()
	begin = time.Now()
	n, err := estimate(images)
	if err != nil {
		return VAE{}, err
	}
	took := time.Since(begin).Seconds()
	v.Measurement = once("vae NLL of an image", took/float64(images))
	v.Images, v.Distinct, v.AllS = images, n.Distinct, took/float64(images)*1e4
	return v, nil
}
