package vae

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
)

// isModel reports whether a variable belongs to the model or the policy, not to an optimiser.
func isModel(path string) bool {
	return strings.HasPrefix(path, em.Theta+"/") || strings.HasPrefix(path, em.Phi+"/")
}

// posterior returns a store with the model and a policy to draw from: those of the training, or, since a VQ-VAE has no
// posterior, its decoder with a policy that is fitted to it now.
func (s *session) posterior() (*model.Store, error) {
	if s.Method != MethodVQ {
		return s.store, nil
	}
	store, err := s.copyStore()
	if err != nil {
		return nil, err
	}
	return store, s.fit(store)
}

// copyStore copies the variables of the model, so that what is fitted to it is no part of the training.
func (s *session) copyStore() (*model.Store, error) {
	arrays, err := run.StoreArrays(s.store)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(arrays, func(path string, _ run.Array) bool { return strings.HasPrefix(path, optim.Root+"/") })
	store := nn.NewStore(s.Config.Seed)
	return store, run.SetStore(store, arrays)
}

// fit trains a policy by E-steps on training images, with the decoder as it is and a uniform prior. For the last third of the
// updates the rate is the reduced one.
func (s *session) fit(store *model.Store) error {
	seed := rng.New(s.Config.Seed, "fit a posterior").Uint64()
	data, err := shuffled(seed, s.Batch, s.train)
	if err != nil {
		return err
	}
	m := Model{Size: s.size, Decoder: VQ{s.size}}
	spec := s.spec(s.size, data, 1)
	spec.Model, spec.Seed, spec.Wake.Reward = m, seed, m.Reward
	spec.Gate = em.Gate{First: math.MaxInt}
	spec.Wake.Optimizer.Groups[0].Rate = optim.Rate{
		Base: s.LR, Drops: []optim.Drop{{Step: uint64(s.FitUpdates) * 2 / 3, Factor: s.ReducedLR / s.LR}},
	}
	l, err := em.New(s.backend, store, spec)
	if err != nil {
		return err
	}
	defer l.Close()
	bar := run.NewProgress(s.progress, int64(s.FitUpdates), "posterior")
	defer bar.Done()
	for i := range s.FitUpdates {
		r, err := l.Step()
		if err != nil {
			return fmt.Errorf("fit a posterior to the decoder: %w", err)
		}
		bar.Set(int64(i+1), fmt.Sprintf("loss %.4g", r.Wake.Loss))
	}
	return nil
}

// likelihood estimates the likelihood of test images.
func (s *session) likelihood() (*NLL, error) {
	store, err := s.posterior()
	if err != nil {
		return nil, err
	}
	images := firstOf(s.test, s.NLLImages)
	bar := run.NewProgress(s.progress, int64(images.Len()), "likelihood")
	defer bar.Done()
	l := &Likelihood{
		Backend: s.backend, Store: store, Model: s.codec.model, Proposal: s.policy(s.size), Samples: s.Samples, Seed: s.Config.Seed,
		Progress: func(done int) { bar.Set(int64(done), fmt.Sprintf("%d images", done)) },
	}
	defer l.Close()
	out, err := l.Estimate(images.Len(), func(indices []int) *tensors.Tensor { return batchOf(images, indices) })
	return &out, err
}
