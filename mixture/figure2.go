package mixture

import (
	"context"
	"math/rand/v2"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
)

// atTruth is the method that knows the answer.
type atTruth struct{}

var _ Method = atTruth{}

// Fit implements Method.
func (atTruth) Fit(x []Point, _ Means, _ *rand.Rand) Fit {
	mu := Problem{}.TrueMeans()
	return Fit{Means: mu, LogLikelihood: Problem{}.LogLikelihood(x, mu)}
}

// agreement is the share of points whose most probable pair is that of the exact posterior.
type agreement struct {
	Factorised float64 `json:"factorised"`
	GFN        float64 `json:"gfn"`
}

// figure2Config trains one E-step for the paper's Figure 2: 10,000 updates, which the published code advises at least.
func figure2Config(seed uint64) Config {
	c := Recommended()
	c.Seed, c.Batch, c.ESteps, c.Iterations = seed, 512, 10_000, 1
	c.EpsilonEnd, c.LRDrop, c.LR, c.Epsilon = 0, 0.1, 1e-2, 0.03
	return c
}

// figure2 shows three posteriors at fixed means that lie between the clusters.
func figure2(ctx context.Context, s run.Study, e Experiment) (report.Figure, *agreement, error) {
	mu := Figure2Means()
	t, err := newTrainer(s.Backend, figure2Config(s.Seed), mu)
	if err != nil {
		return report.Figure{}, nil, err
	}
	defer t.Close()
	bar := run.NewProgress(s.Log, int64(t.total()), "figure 2")
	for !t.Done() {
		if err := context.Cause(ctx); err != nil {
			return report.Figure{}, nil, err
		}
		tick, err := t.Step()
		if err != nil {
			return report.Figure{}, nil, err
		}
		bar.Set(int64(tick.Step), tick.Text)
	}
	bar.Done()
	q, err := t.posterior()
	if err != nil {
		return report.Figure{}, nil, err
	}
	exact := t.problem.Posterior(t.data.X, mu).Argmax()
	factorised := t.problem.Factorised(t.data.X, mu, 1, rng.New(s.Seed, "mixture/figure2"))
	assigned := [][]Pair{exact, factorised, q.Argmax()}
	share := func(z []Pair) float64 {
		same := 0
		for n := range z {
			if z[n] == exact[n] {
				same++
			}
		}
		return float64(same) / float64(len(z))
	}
	names := []string{"exact", "factorised", "GFlowNet"}
	return posteriorFigure(t.data, mu, names, assigned), &agreement{share(factorised), share(assigned[2])}, nil
}
