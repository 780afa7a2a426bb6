package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/nn"
)

// experiment is one corpus, on which both methods learn the same model from the same start by as many updates on the
// same minibatches.
type experiment struct {
	b compute.Backend
	m Words
	corpus
	seed, updates uint64
}

// newExperiment takes sentences from a file, or makes them if there is none.
func newExperiment(b compute.Backend, file string, seed, updates uint64) (experiment, error) {
	const most, longest, often = 20, 6, 40
	c, said, err := made(seed, most), "", error(nil)
	if file != "" {
		c, said, err = read(file, most)
		if err == nil {
			fmt.Println(said)
		}
	}
	return experiment{b, Words{NewLexicon(c.train, most, longest, often)}, c, seed, updates}, err
}

func (e experiment) data() em.Data {
	return must(em.Shuffled(e.seed, batch, e.m.Observe(e.train...)))
}

// state is how far a training has come, by held-out sentences.
type state struct {
	updates   uint64
	logP      float64 // of a sentence
	f1        float64 // of the word ends that are more probable than not; NaN if no true ones are known
	kl, f1ByQ float64 // the divergence of q from the exact posterior, of a sentence, and F1 by q; NaN if there is no q
}

// result is what both methods have come to.
type result struct {
	experiment
	exact, gflownet []state
	cut             []Sentence // held-out sentences with words that end where the model of GFlowNet-EM says
}

func last(of []state) state { return of[len(of)-1] }

// run trains by both methods.
func (e experiment) run() (*result, error) {
	r := &result{experiment: e}
	store := nn.NewStore(e.seed)
	exact, err := newExactEM(e, store)
	if err != nil {
		return nil, err
	}
	if r.exact, _, err = e.learn("exact EM", exact, store, nil); err != nil {
		return nil, err
	}
	store = nn.NewStore(e.seed)
	learner, err := em.New(e.b, store, e.spec())
	if err != nil {
		return nil, err
	}
	defer learner.Close()
	q, err := learner.Posterior()
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r.gflownet, r.cut, err = e.learn("GFlowNet-EM", learner, store, q)
	return r, err
}

// trained is a loop of either method.
type trained interface {
	Train(ctx context.Context, until func(em.State) bool, each func(em.Report) error) error
}

// learn makes all updates, and returns how it went, at first in small steps, and how held-out sentences are cut in the end.
func (e experiment) learn(
	name string, l trained, store *model.Store, q *em.Posterior,
) (all []state, cut []Sentence, err error) {
	meter, err := newMeter(e, store, q)
	if err != nil {
		return nil, nil, err
	}
	defer meter.ends.Finalize()
	look := func(updates uint64, samples int) error {
		var s state
		if s, cut, err = meter.measure(samples); err != nil {
			return err
		}
		s.updates = updates
		all = append(all, s)
		fmt.Fprintf(os.Stderr, "seed %d, %s, update %d of %d: log p(x) = %.4f, F1 = %.3f\n",
			e.seed, name, updates, e.updates, s.logP, s.f1)
		return nil
	}
	if err := look(0, 4); err != nil {
		return nil, nil, err
	}
	next := uint64(1)
	err = l.Train(context.Background(), func(s em.State) bool { return s.M >= e.updates }, func(r em.Report) error {
		switch m := r.State.M; {
		case m == e.updates:
			return look(m, 64)
		case m == next:
			next += 1 + m/4
			return look(m, 4)
		}
		return nil
	})
	return all, cut, err
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
