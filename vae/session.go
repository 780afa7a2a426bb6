package vae

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/run"
)

// Task learns images as grids of codes.
type Task struct{}

var _ run.Grown = Task{}

// Name implements run.Task.
func (Task) Name() string { return "vae" }

// Presets implements run.Task.
func (Task) Presets() []string { return []string{"quick", "best", "paper", "static"} }

// Config implements run.Task.
func (Task) Config(preset string) any { return run.PresetOf(presets, preset) }

// Before implements run.Grown: runs were as published in what could not be set.
func (Task) Before() any { return Task{}.Config("paper") }

// Start implements run.Task.
func (Task) Start(b compute.Backend, config any) (run.Session, error) {
	c := *config.(*Config)
	set, err := mnist.Options{Seed: c.DataSeed, Stochastic: c.Pixels == pixelsStochastic}.Open(c.Data)
	if err != nil {
		return nil, err
	}
	return newSession(b, c, set)
}

// session is a model in training.
type session struct {
	Config
	size        Size
	backend     compute.Backend
	hash        string                  // of the data
	train, test mnist.Images            // test are those that are measured, maybe for validation
	table       *tensors.Tensor         // train, in the backend's memory
	data        em.Data                 // minibatches of it
	batches     func(step uint64) []int // and the numbers of their images
	store       *model.Store
	loop        *loop
	release     func() // its programs
	codec       *Codec
	progress    io.Writer // may be nil
}

var _ run.Session = (*session)(nil)

func newSession(b compute.Backend, c Config, set *mnist.Set) (*session, error) {
	s := &session{
		Config: c, size: c.size(set.Size), backend: b, hash: set.Hash(), store: c.newStore(),
	}
	s.train, s.test = set.Train, set.Test
	if c.Eval.On == onValidation {
		s.train, s.test = validation(set)
	}
	s.train, s.test = firstOf(s.train, c.TrainImages), firstOf(s.test, c.TestImages)
	if err := s.size.Validate(); err != nil {
		return nil, badinput.Errorf("%w", err)
	}
	if s.train.Len() < c.Batch {
		return nil, badinput.Errorf("%s: %d training images are fewer than a batch of %d", c.Data, s.train.Len(), c.Batch)
	}
	if s.test.Len() == 0 { // rather now than when all updates are made
		return nil, badinput.Errorf("%s has no %s images to evaluate on", c.Data, c.Eval.On)
	}
	if c.Eval.NLL { // also rather now
		bytes := float64(c.Eval.Samples) * float64(latentBytes(s.size.Positions()))
		if err := memory.Fits("the estimate of a likelihood", bytes, "eval.samples"); err != nil {
			return nil, err
		}
	}
	var err error
	if s.table, err = tableOf(b, s.train); err != nil {
		return nil, err
	}
	if s.data, s.batches, err = shuffled(c.Seed, c.Batch, s.table); err != nil {
		return nil, err
	}
	if s.loop, s.release, err = s.newLoop(); err != nil {
		return nil, err
	}
	s.codec = newCodec(b, s.store, c, s.size)
	return s, nil
}

// newStore is a store whose variables start as configured.
func (c *Config) newStore() *model.Store {
	store := nn.NewStore(c.Seed)
	store.RootScope().SetParam(nn.GainParam, c.Model.Gain)
	return store
}

// perEpoch is the number of minibatches of an epoch; images that would make an incomplete one are left out.
func (s *session) perEpoch() uint64 { return uint64(s.train.Len() / s.Batch) }

func (s *session) total() uint64 { return uint64(s.Epochs) * s.perEpoch() }

// Done implements run.Job.
func (s *session) Done() bool { return s.made() >= s.total() }

// Progress implements run.Session.
func (s *session) Progress() (step, total uint64) { return s.made(), s.total() }

// made is the number of minibatches seen.
func (s *session) made() uint64 { return s.loop.State().Iteration }

// Steps between notes of losses, and measured images behind a point of the curve of the bound.
const (
	logEvery = 20
	watched  = 256
)

// Step implements run.Job: one minibatch.
func (s *session) Step() (run.Tick, error) {
	r, err := s.loop.Step()
	if errors.Is(err, em.ErrDiverged) {
		return run.Tick{}, fmt.Errorf("%w: %w", run.ErrGaveUp, err)
	} else if err != nil {
		return run.Tick{}, err
	}
	text, log := s.told(r)
	made := s.made()
	tick := run.Tick{Step: made, Total: s.total(), Text: fmt.Sprintf("epoch %d of %d, %s", 1+(made-1)/s.perEpoch(), s.Epochs, text)}
	if made%logEvery == 0 {
		tick.Log = log
	}
	if e := uint64(s.Eval.Every); e > 0 && (made%e == 0 || s.Done()) {
		b, err := s.codec.bounds(firstOf(s.test, watched), s.Config.Seed)
		if err != nil {
			return run.Tick{}, err
		}
		log["test/bound"], log["test/reconstruction"] = b.Bound, b.Reconstruction
		tick.Log = log
	}
	return tick, nil
}

// saved is the part of a state that is not arrays. Height and Width let a run decode without its data.
type saved struct {
	Height  int      `json:"height"`
	Width   int      `json:"width"`
	Trainer em.State `json:"trainer"`
}

// State implements run.Job.
func (s *session) State() (run.State, error) {
	return run.StoreState(s.store, saved{s.size.Height, s.size.Width, s.loop.State()})
}

// Restore implements run.Job.
func (s *session) Restore(state run.State) error {
	var from saved
	if err := state.Rest(&from); err != nil {
		return err
	}
	if from.Height != s.size.Height || from.Width != s.size.Width {
		return badinput.Errorf("the checkpoint is of images of %dx%d, the configuration of %dx%d", from.Height, from.Width,
			s.size.Height, s.size.Width)
	}
	if err := from.Trainer.Check(s.total()); err != nil {
		return err
	}
	if err := run.SetStore(s.store, state.Arrays); err != nil {
		return err
	}
	s.loop.SetState(from.Trainer)
	return nil
}

// Seed implements run.Session.
func (s *session) Seed() uint64 { return s.Config.Seed }

// Data implements run.Session.
func (s *session) Data() map[string]string { return map[string]string{"images": s.hash} }

// Parameters implements run.Session. The codebook and the running statistics of a VQ-VAE belong to them.
func (s *session) Parameters() (map[string]run.Array, error) {
	arrays, err := run.StoreArrays(s.store)
	maps.DeleteFunc(arrays, notModel)
	return arrays, err
}

// notModel reports whether a variable belongs neither to the model nor to the policy, but to an optimiser.
func notModel(path string, _ run.Array) bool {
	return !strings.HasPrefix(path, em.Theta+"/") && !strings.HasPrefix(path, em.Phi+"/")
}

// Watch makes evaluation show its progress.
func (s *session) Watch(w io.Writer) { s.progress = w }

// Close implements run.Session.
func (s *session) Close() {
	s.release()
	s.codec.Close()
}
