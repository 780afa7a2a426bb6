package mixture

import (
	"cmp"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
)

// Method fits means to points, from initial means which it leaves as they are.
//
// The fit is a function of the method and its arguments alone, all randomness coming from r, and Fit may be called
// concurrently.
type Method interface {
	Fit(x []Point, start Means, r *rand.Rand) Fit
}

// Fit is what a method returns.
type Fit struct {
	// Means are the means after the last M-step.
	Means Means

	// LogLikelihood is the value the published code reports: for [ExactEM] and [MeanField] at the start of the last
	// iteration, one M-step before Means; for a sampler at Means.
	LogLikelihood float64

	// Trace holds the means after t M-steps at t, from the initial ones on.
	Trace []Means
}

// iterate applies an EM iteration to a copy of the initial means. An iteration updates the means in place and returns
// the log-likelihood it reports, which matters in the last one only: there report is true.
func iterate(start Means, iterations int, iteration func(mu Means, report bool) float64) Fit {
	fit := Fit{Means: slices.Clone(start), Trace: []Means{slices.Clone(start)}}
	iterations = cmp.Or(iterations, DefaultIterations)
	for t := range iterations {
		fit.LogLikelihood = iteration(fit.Means, t == iterations-1)
		fit.Trace = append(fit.Trace, slices.Clone(fit.Means))
	}
	return fit
}

// Experiment is a number of independent runs, each with its own data set and initial means, which all methods share.
// The zero value has the sizes of the paper.
type Experiment struct {
	Problem Problem
	Points  int    // per data set; 0 means 4000
	Runs    int    // 0 means 20
	Seed    uint64 // of all runs; run k has streams of its own, so that more runs extend fewer
}

// Run is the outcome of a method on one data set.
type Run struct {
	Fit
	True    float64 // log-likelihood of the true means on the same data
	Success bool    // whether LogLikelihood reaches True, see Reached
}

// Draw returns the data set and the initial means of run k.
func (e Experiment) Draw(k int) (Data, Means) {
	d := e.Problem.Sample(cmp.Or(e.Points, DefaultPoints), rng.New(e.Seed, "mixture/data", uint64(k)))
	return d, Start(d.X, e.Problem.filled().Super, rng.New(e.Seed, "mixture/start", uint64(k)))
}

// Fit runs a method on every data set, on GOMAXPROCS goroutines. The outcome of run k is at k and does not depend on
// how the runs were scheduled.
func (e Experiment) Fit(m Method) []Run {
	out := make([]Run, cmp.Or(e.Runs, DefaultRuns))
	var all crash.Group
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for k := range out {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			out[k] = e.fit(m, k)
		})
	}
	all.Wait()
	return out
}

// fit runs a method on data set k.
func (e Experiment) fit(m Method, k int) Run {
	d, start := e.Draw(k)
	fit := m.Fit(d.X, start, rng.New(e.Seed, "mixture/fit", uint64(k)))
	logLikTrue := e.Problem.LogLikelihood(d.X, e.Problem.TrueMeans())
	return Run{Fit: fit, True: logLikTrue, Success: Reached(fit.LogLikelihood, logLikTrue)}
}

// Summary holds statistics of the log-likelihood over runs, on the true scale unless its name says otherwise; the paper
// does not say which deviation it has. The distributions are bimodal, a run either reaching the optimum or a bad local
// one, so that of twenty runs the number of successes says more than the mean.
type Summary struct {
	report.Summary
	Published float64     `json:"mean_published"` // see [Problem.PublishedOffset]
	Success   report.Rate `json:"success"`
	Runs      []float64   `json:"runs"`
}

// Summarise returns the statistics of some runs.
func (e Experiment) Summarise(runs []Run) Summary {
	s := Summary{Success: report.Rate{Trials: len(runs)}}
	for _, r := range runs {
		s.Runs = append(s.Runs, r.LogLikelihood)
		if r.Success {
			s.Success.Successes++
		}
	}
	s.Summary = report.Summarize(s.Runs)
	s.Published = s.Mean + e.Problem.PublishedOffset()
	return s
}
