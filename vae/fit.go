package vae

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
)

// refresh continues a training by E-updates alone.
func (s *session) refresh(store *model.Store) error {
	spec := s.spec()
	updates := s.Eval.ExtraEUpdates
	bar := run.NewProgress(s.progress, int64(updates), "posterior")
	defer bar.Done()
	if err := s.expect(store, spec, s.made(), updates, bar, 0); err != nil {
		return fmt.Errorf("eval.extra_e_updates: %w", err)
	}
	return nil
}

// expect makes E-updates, the first of which is a given iteration, when so many steps of a progress bar are done.
func (s *session) expect(store *model.Store, spec em.Spec, first uint64, updates int, bar *run.Progress, done int) error {
	spec.Prepare, spec.Gate, spec.MStep.Latents, spec.MStep.Persist = pick, em.Never, nil, em.Persistent{}
	l, err := em.New(s.backend, store, spec)
	if err != nil {
		return err
	}
	defer l.Close()
	l.SetState(em.State{Iteration: first})
	for i := range updates {
		r, err := l.Step()
		if err != nil {
			return fmt.Errorf("update %d of the posterior: %w", i, err)
		}
		bar.Set(int64(done+i+1), fmt.Sprintf("E-step, loss %.4g", r.Wake.Loss))
	}
	return nil
}

// fit trains a policy for the decoder of a VQ-VAE, which has none, on training images, with a uniform prior. For the first third
// of the updates the policy imitates the encoder of the VQ-VAE, since from a random start it would hardly find the few latents
// that explain an image; then come E-steps, the last third of all updates with the reduced rate.
func (s *session) fit(store *model.Store) error {
	seed := rng.New(s.Config.Seed, "fit a posterior").Uint64()
	data, _, err := shuffled(seed, s.Batch, s.table)
	if err != nil {
		return err
	}
	m := Model{Size: s.size, Decoder: VQ{s.size}}
	spec := s.Spec(s.size, data, 1)
	spec.Model, spec.Seed, spec.Wake.Reward = m, seed, m.Reward
	updates := s.Eval.FitUpdates
	imitations := updates / 3
	spec.Wake.Optimizer = s.phi(fall{uint64(imitations), uint64(updates - imitations), s.Optim.Smooth})
	bar := run.NewProgress(s.progress, int64(updates), "posterior")
	defer bar.Done()
	if err := s.imitate(store, spec, imitations, bar); err != nil {
		return fmt.Errorf("fit a posterior to the encoder: %w", err)
	}
	store.RootScope().SetParam(nn.SeedParam, seed) // of variables that imitation has not made
	if err := s.expect(store, spec, 0, updates-imitations, bar, imitations); err != nil {
		return fmt.Errorf("fit a posterior to the decoder: %w", err)
	}
	return nil
}

// imitationWeight is that of the published sleep phase, which has the same loss on dreamt images.
const imitationWeight = 10

// imitate raises log q of the latents that the VQ-VAE gives to images.
func (s *session) imitate(store *model.Store, spec em.Spec, updates int, bar *run.Progress) error {
	opt := spec.Wake.Optimizer
	p := s.policy(s.size)
	programs := program.NewSet(s.backend, store)
	defer programs.Close()
	type imitated[T any] struct{ Loss T }
	update := program.New[hostIn, imitated[float64]](programs, "imitation", func(in nodesIn) imitated[*Node] {
		net := gfn.Net{Env: s.size.Env(), Policy: p, Scope: store.Scope(em.Phi)}
		x := pick(in.X)
		z := VQ{s.size}.Encode(store.Scope(em.Theta), x[0])
		tr := net.Backtrack(rng.In(in.Key), p.Encode(net.Scope, x), gfn.State{z}, nil, gfn.Behaviour{})
		loss := Neg(ReduceAllMean(ReduceSum(net.Score(tr, gfn.Behaviour{}).LogPF, 1)))
		opt.Minimize(store, MulScalar(loss, imitationWeight/float64(s.size.Positions())), in.Rates)
		return imitated[*Node]{loss}
	})
	for i := range updates {
		at := uint64(i)
		out, err := update.Call(hostIn{rng.Key(spec.Seed, "imitate", at), opt.Rates(0), spec.Data(at)})
		if err != nil {
			return err
		}
		bar.Set(int64(i+1), fmt.Sprintf("imitation, loss %.4g", out.Loss))
	}
	return nil
}

// likelihoodAfter estimates the likelihood of test images once a posterior is fitted to a copy of the model, which is
// no part of the training.
func (s *session) likelihoodAfter(fit func(*model.Store) error) (*NLL, error) {
	store, err := s.store.Clone()
	if err != nil {
		return nil, err
	}
	if err := fit(store); err != nil {
		return nil, err
	}
	return s.likelihood(store)
}

// likelihood estimates the likelihood of test images, drawing from the policy of a store.
func (s *session) likelihood(store *model.Store) (*NLL, error) {
	images := firstOf(s.test, s.Eval.Images)
	bar := run.NewProgress(s.progress, int64(images.Len()), "likelihood")
	defer bar.Done()
	l := &Likelihood{
		Backend: s.backend, Store: store, Model: s.codec.model, Proposal: s.policy(s.size),
		Samples: s.Eval.Samples, Seed: s.Config.Seed,
		Progress: func(done int) { bar.Set(int64(done), fmt.Sprintf("%d images", done)) },
	}
	defer l.Close()
	out, err := l.Estimate(images.Len(), func(indices []int) *tensors.Tensor { return batchOf(images, indices) })
	return &out, err
}
