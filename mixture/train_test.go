package mixture

import (
	"maps"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
)

// A training that is stopped anywhere and continued by another ends with the same bits and logs the same.
func TestResume(t *testing.T) {
	b := open(t)
	whole := PaperConfig()
	whole.Points, whole.Iterations, whole.Gate.ESteps, whole.Gate.FirstESteps, whole.Wake.Epsilon = 40, 4, 3, 5, 0.1
	batches := QuickConfig()
	batches.Points, batches.Batch, batches.Iterations, batches.Gate.ESteps, batches.Moves.Count = 40, 16, 5, 2, 2
	for name, c := range map[string]Config{"whole data, gradients": whole, "minibatches, moves, closed form": batches} {
		job := runtest.Job(t, func() run.Job {
			tr, err := newTrainer(b, c, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(tr.Close)
			return tr
		}, runtest.Options{})
		if s := job.(*trainer).Counters(); s.M != uint64(c.Iterations*c.Gate.MSteps) || s.Skipped != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The policy's rate drops when half of the E-updates are made.
func TestDrop(t *testing.T) {
	c := QuickConfig()
	c.Points, c.Iterations, c.Gate.ESteps, c.Optim.Phi.Drop = 40, 4, 2, 0
	tr, err := newTrainer(open(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	before := ""
	for update := range 8 {
		if _, err := tr.Step(); err != nil {
			t.Fatal(err)
		}
		s, err := tr.State()
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(s.Arrays, func(path string, _ run.Array) bool { return !strings.HasPrefix(path, em.Phi+"/") })
		after := run.StateHash(run.State{Arrays: s.Arrays})
		if (after != before) != (update < 4) {
			t.Errorf("update %d of 8 moves the policy: %t", update, after != before)
		}
		before = after
	}
}

// A state of a longer training, or of counters that contradict each other, is refused.
func TestRestoreRefusesCounters(t *testing.T) {
	c := QuickConfig()
	c.Points, c.Iterations, c.Gate.ESteps = 40, 4, 2
	start := func(c Config) *trainer {
		tr, err := newTrainer(open(t), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tr.Close)
		return tr
	}
	long := start(c)
	for !long.Done() {
		if _, err := long.Step(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := long.State()
	if err != nil {
		t.Fatal(err)
	}
	c.Iterations = 3
	short := start(c)
	if err := short.Restore(s); err == nil || !strings.Contains(err.Error(), "iteration 8 of 6") {
		t.Errorf("error %v", err)
	}
	if short.Counters() != (em.State{}) {
		t.Errorf("the state became %+v", short.Counters())
	}
}
