package em

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// talker is an E- and an M-step that have something to say.
type talker struct{}

func (talker) Infer(Moment, int) (Inference[int], error) {
	wake := Update{Loss: 1, OK: true}
	return Inference[int]{Wake: wake, SleepLoss: math.NaN(), Metrics: map[string]float64{"entropy": 3}}, nil
}

func (talker) Maximize(Moment, int, int) (Maximization, error) {
	return Maximization{
		Update: Update{Loss: 2, OK: true}, Accepted: math.NaN(), Metrics: map[string]float64{"perplexity": 4},
	}, nil
}

// An iteration reports what both of its steps say.
func TestMetrics(t *testing.T) {
	data := func(uint64) int { return 0 }
	for _, c := range []struct {
		loop Loop[int, int]
		want map[string]float64
	}{
		{Loop[int, int]{Data: data, E: talker{}, M: talker{}}, map[string]float64{"entropy": 3, "perplexity": 4}},
		{Loop[int, int]{Data: data, M: talker{}}, map[string]float64{"perplexity": 4}},
		{Loop[int, int]{Data: data, E: talker{}, M: talker{}, Gate: Never}, map[string]float64{"entropy": 3}},
	} {
		r, err := c.loop.Step()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, r.Metrics); d != "" {
			t.Errorf("metrics (-want +got):\n%s", d)
		}
	}
}
