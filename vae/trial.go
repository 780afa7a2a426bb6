package vae

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/rng"
)

// Trial makes single updates of a configuration on random images of 28x28 pixels, for measuring.
type Trial struct {
	config  Config
	size    Size
	backend compute.Backend
	store   *model.Store
	images  mnist.Images
	made    map[string]trainer
}

// Updates that a trial can make.
const (
	UpdateE     = "E"
	UpdateSleep = "sleep"
	UpdateM     = "M"
	UpdateVQ    = "VQ"
)

// NewTrial prepares a trial. It compiles nothing yet.
func NewTrial(b compute.Backend, c Config) (*Trial, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	side := mnist.Size{Height: 28, Width: 28}
	r := rng.New(c.Seed, "trial images")
	pixels := make([]byte, c.Batch*side.Pixels())
	for i := range pixels {
		if r.Float64() > 0.8 {
			pixels[i] = 1
		}
	}
	return &Trial{
		config: c, size: c.size(side), backend: b, store: c.newStore(), images: mnist.NewImages(side, pixels),
		made: map[string]trainer{},
	}, nil
}

// Update makes one update, of the kind that is named.
func (t *Trial) Update(kind string) error {
	one, ok := t.made[kind]
	if !ok {
		var err error
		if one, err = t.trainer(kind); err != nil {
			return err
		}
		t.made[kind] = one
	}
	_, _, err := one.step()
	return err
}

func (t *Trial) trainer(kind string) (trainer, error) {
	table, err := tableOf(t.backend, t.images)
	if err != nil {
		return nil, err
	}
	data, err := shuffled(t.config.Seed, t.config.Batch, table)
	if err != nil {
		return nil, err
	}
	c := t.config
	c.Best = false // each update alone
	spec := c.spec(t.size, data, 1)
	switch kind {
	case UpdateE:
		spec = spec.WithoutM()
		spec.Sleep = em.Sleep{}
	case UpdateSleep:
		spec = spec.WithoutM()
		spec.Sleep.Alone = true
	case UpdateM:
		spec.Gate = em.Gate{Alternate: math.MaxInt32}
	case UpdateVQ:
		return t.config.vqTrainer(t.backend, t.store, t.size, data, 1)
	default:
		return nil, fmt.Errorf("there is no update %q", kind)
	}
	l, err := em.New(t.backend, t.store, spec)
	return gfnTrainer{l}, err
}

// Likelihood estimates the likelihood of the first images by a policy that is not trained: there are hardly two equal latents, so
// that a trained one takes at most as long. Close the result at the end.
func (t *Trial) Likelihood() (*Likelihood, func(images int) (NLL, error)) {
	m := Model{Size: t.size, Learned: t.config.learnsPrior()}
	l := &Likelihood{
		Backend: t.backend, Store: t.store, Model: m, Proposal: t.config.policy(t.size), Samples: t.config.Samples, Seed: t.config.Seed,
	}
	return l, func(images int) (NLL, error) {
		return l.Estimate(images, func(indices []int) *tensors.Tensor { return batchOf(t.images, indices) })
	}
}

// Close releases the compiled programs.
func (t *Trial) Close() {
	for _, one := range t.made {
		one.close()
	}
	clear(t.made)
}
