package mixture

import (
	"context"
	"fmt"
	"io"
	"math"
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
	c := PaperConfig()
	c.Seed, c.Iterations, c.Batch, c.Gate.ESteps = seed, 1, 512, 10_000
	c.Wake.Epsilon, c.Wake.EpsilonEnd = 0.03, 0
	c.Optim.Phi.Rate, c.Optim.Phi.Drop = 1e-2, 0.1
	return c
}

// figure2 shows three posteriors at fixed means that lie between the clusters.
func figure2(ctx context.Context, s run.Study) (f report.Named, agree *agreement, err error) {
	mu := Figure2Means()
	t, err := newTrainer(s.Backend, figure2Config(s.Seed), mu)
	if err != nil {
		return f, nil, err
	}
	defer t.Close()
	if err := t.toEnd(ctx, s.Log, "figure 2"); err != nil {
		return f, nil, err
	}
	var learned []Pair
	if err := t.eachPosterior(t.data.X, func(_ []Point, q *Posterior) { learned = append(learned, q.Argmax()...) }); err != nil {
		return f, nil, err
	}
	exact := t.model.Problem.Posterior(t.data.X, mu, math.Inf(-1)).Argmax()
	factorised := t.model.Problem.Factorised(t.data.X, mu, 1, rng.New(s.Seed, "mixture/figure2"))
	assigned := [][]Pair{exact, factorised, learned}
	share := func(z []Pair) float64 {
		same := 0
		for n := range z {
			if z[n] == exact[n] {
				same++
			}
		}
		return float64(same) / float64(len(z))
	}
	agree = &agreement{share(factorised), share(assigned[2])}
	f.Name, f.Figure = "figure2", posteriorFigure(t.data, mu, []string{"exact", "factorised", "GFlowNet"}, assigned)
	f.Caption = fmt.Sprintf("Figure 2: the most probable pair under the exact posterior, a factorised one and "+
		"the GFlowNet's, at fixed means. They agree with the exact one on %.1f %% and %.1f %% of the points.",
		100*agree.Factorised, 100*agree.GFN)
	return f, agree, nil
}

// figure3 shows the means that the methods find on the first data set on which mean-field EM fails.
func figure3(ctx context.Context, s run.Study, e Experiment) (f report.Named, err error) {
	c := QuickConfig()
	for c.Seed = s.Seed; e.fit(MeanField{}, c.Run).Success; c.Run++ {
	}
	t, err := newTrainer(s.Backend, c, nil)
	if err != nil {
		return f, err
	}
	defer t.Close()
	if err := t.toEnd(ctx, s.Log, "figure 3"); err != nil {
		return f, err
	}
	fitted, err := t.Evaluate()
	if err != nil {
		return f, err
	}
	return report.Named{Name: "figure3", Figure: t.meansFigure(fitted.(*result)),
		Caption: "Figure 3: the means that each method finds on the first data set on which mean-field EM fails; " +
			"GFlowNet-EM with preset quick."}, nil
}

// toEnd trains without a folder.
func (t *trainer) toEnd(ctx context.Context, w io.Writer, label string) error {
	bar := run.NewProgress(w, int64(t.total()), label)
	defer bar.Done()
	for !t.Done() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		tick, err := t.Step()
		if err != nil {
			return err
		}
		bar.Set(int64(tick.Step), tick.Text)
	}
	return nil
}
