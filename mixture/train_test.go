package mixture

import (
	"testing"

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
		if s := job.(*trainer).learner.State(); s.M != uint64(c.Iterations*c.Gate.MSteps) || s.Skipped != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
