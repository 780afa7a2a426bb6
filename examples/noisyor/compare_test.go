package main

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
)

// All methods learn something in a few updates, of as many trajectories.
func TestContenders(t *testing.T) {
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	d := newCompared(b, 1, 20)
	start := d.outcome(nn.NewStore(d.seed + 1))
	for _, c := range contenders() {
		if got := c.learn(d, rates{0.02, 0.05}); !(got.test > start.test+0.05) || !(got.validation > start.validation+0.05) {
			t.Errorf("%s: from %+v to %+v", c.name, start, got)
		}
	}
	for _, w := range ways {
		h, ok := w.objective.(gfn.HVI)
		if w.wake+w.dreams+w.drawn != 7 || ok && h.Samples != w.wake {
			t.Errorf("%+v does not evaluate seven trajectories", w)
		}
	}
}

// A learner with chains that persist can be stopped anywhere, and goes on with the same bits.
func TestChainsJob(t *testing.T) {
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	d := newCompared(b, 1, 4)
	d.train.X = []*tensors.Tensor{firstRows(d.train.X[0], comparedBatch)} // every update is on all of them
	w := ways[slices.IndexFunc(ways, func(w way) bool { return w.persist })]
	runtest.Job(t, func() run.Job {
		l := d.learner(nn.NewStore(2), w, rates{0.02, 0.05})
		l.Gate = em.Blocks{}
		t.Cleanup(l.Close)
		return training{l}
	}, runtest.Options{})
}

func TestChosen(t *testing.T) {
	end := func(validation, test float64) outcome { return outcome{validation: validation, test: test} }
	c := contender{tries: make([]rates, 3), ends: [][]outcome{
		{end(-2, -1), end(-1, -1)}, {end(-1, -4), end(-3, -4)}, {end(math.Inf(-1), 0), end(0, 0)},
	}}
	if got := c.chosen(); got != 1 {
		t.Errorf("the choice is %d", got)
	}
}
