package main

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/lvm/lvmtest"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
)

func TestLaws(t *testing.T) {
	env := envs.Uniform(causes, 2)
	envtest.Run(t, env)
	lvmtest.Run(t, noisyOR{}, env)
}

// A short training raises the held-out likelihood, and the same seed gives the same bits.
func TestTraining(t *testing.T) {
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	truth := nn.NewStore(1)
	draw := func(stream string, n int) []*tensors.Tensor {
		p, err := lvm.Draw(b, truth.Scope(em.Theta), noisyOR{}, rng.Key(1, stream), n)
		if err != nil {
			t.Fatal(err)
		}
		return p.X
	}
	train, test := draw("train", 200), draw("test", 200)
	exact := em.Classical{Model: noisyOR{}, Env: envs.Uniform(causes, 2)}
	logLik := func(s *model.Store) float64 {
		l, err := exact.LogLikelihood(b, s, test...)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	fit := func() float64 {
		s := nn.NewStore(2)
		l, err := em.New(b, s, em.Spec{
			Model: noisyOR{}, Env: exact.Env, Policy: policy{}, Data: em.Full(train...), Seed: 2,
			Sleep: em.Sleep{Weight: 1, Batch: 50},
			Wake:  em.Wake{Objective: gfn.VarGrad{}, Samples: 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := l.Train(t.Context(), func(s em.State) bool { return s.M == 40 }, nil); err != nil {
			t.Fatal(err)
		}
		return logLik(s)
	}
	start, first, second := logLik(nn.NewStore(2)), fit(), fit()
	if first <= start {
		t.Errorf("held-out log-likelihood went from %g to %g", start, first)
	}
	if first != second {
		t.Errorf("the same training ends at %g and at %g", first, second)
	}
}

// training is the learner as a job of run.Drive, which saves it and continues it.
type training struct{ *em.Learner }

func (t training) Done() bool { return t.Learner.State().Iteration == 4 }

func (t training) Step() (run.Tick, error) {
	r, err := t.Learner.Step()
	return run.Tick{Step: r.State.Iteration, Total: 4, Log: map[string]float64{"loss": r.Wake.Loss}}, err
}

func (t training) State() (run.State, error) { return run.StoreState(t.Store(), t.Learner.State()) }

func (t training) Restore(s run.State) error {
	var counters em.State
	if err := run.RestoreStore(t.Store(), s, &counters); err != nil {
		return err
	}
	t.SetState(counters)
	return nil
}

// The learner can be stopped anywhere, and is continued from states of its own alone.
func TestJob(t *testing.T) {
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := lvm.Draw(b, nn.NewStore(1).Scope(em.Theta), noisyOR{}, rng.Key(1, "train"), 20)
	if err != nil {
		t.Fatal(err)
	}
	runtest.Job(t, func() run.Job {
		l, err := newLearner(b, nn.NewStore(2), em.Full(p.X...), 2, 4)
		if err != nil {
			t.Fatal(err)
		}
		l.Gate = em.Blocks{First: 2}
		t.Cleanup(l.Close)
		return training{l}
	}, runtest.Options{})
}
