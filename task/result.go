package task

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// Result is what a session has learned.
type Result struct {
	Task       string `json:"task"`
	Seed       uint64 `json:"seed"`
	Iterations uint64 `json:"iterations"`
	MSteps     uint64 `json:"m_steps"`
	Skipped    uint64 `json:"skipped"` // updates
	// Measured says which state of the training all else is of.
	Measured run.Standing `json:"measured"`
	// LogLikelihood is of the observations held out; nil if there are none.
	LogLikelihood *LogLikelihood `json:"log_likelihood,omitempty"`
	Metrics       Values         `json:"metrics,omitempty"`

	best string // the name of the metric that chooses the best state
}

var _ run.Result = (*Result)(nil)

// Headline implements run.Headliner: the likelihood, else the metric by which the best state was chosen, else the first one.
func (r *Result) Headline() (run.Headline, bool) {
	if r.LogLikelihood != nil {
		return run.Headline{Name: "log p(x)", Value: r.LogLikelihood.Mean}, true
	}
	names := slices.Sorted(maps.Keys(r.Metrics))
	if r.best != "" {
		names = []string{r.best}
	}
	if len(names) == 0 {
		return run.Headline{}, false
	}
	return run.Headline{Name: names[0], Value: r.Metrics[names[0]]}, true
}

// LogLikelihood is an importance-sampled estimate of log p(x), the mean over observations.
type LogLikelihood struct {
	Mean float64 `json:"mean"`
	// StdErr is the standard error of the mean, over observations, and SampleErr that part of it that more samples would
	// make smaller.
	StdErr    float64 `json:"std_err"`
	SampleErr float64 `json:"sample_err"`
	ELBO      float64 `json:"elbo"` // the mean log-weight
	ESS       float64 `json:"ess"`  // effective sample size, the mean
	Samples   int     `json:"samples"`
	Count     int     `json:"observations"`
}

// Values are numbers by name, which in JSON may be "NaN", "+Inf" and "-Inf".
type Values = run.Values

// Evaluate implements run.Session.
func (s *Session) Evaluate() (out run.Result, err error) {
	err = s.best.During(func() error {
		out, err = s.evaluate()
		return err
	})
	return out, err
}

// evaluate measures the variables as they are.
func (s *Session) evaluate() (run.Result, error) {
	at := s.learner.State()
	r := &Result{
		Task: s.name, Seed: s.seed, Iterations: at.Iteration, MSteps: at.M, Skipped: at.Skipped, Measured: s.standing(),
		best: s.learning.Best,
	}
	var err error
	if s.learning.HeldOut != nil {
		if r.LogLikelihood, err = s.logLikelihood(); err != nil {
			return nil, err
		}
	}
	if s.learning.Metrics != nil {
		if r.Metrics, err = s.learning.Metrics(&s.Learned); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return r, nil
}

func (s *Session) logLikelihood() (*LogLikelihood, error) {
	p, err := s.Posterior()
	if err != nil {
		return nil, err
	}
	defer p.Close()
	n := cmp.Or(s.learning.Samples, 100)
	estimates, err := p.LogLikelihood(n, s.learning.HeldOut...)
	if err != nil {
		return nil, err
	}
	of := em.Summarise(estimates)
	return &LogLikelihood{
		Mean: of.LogP, StdErr: of.StdErr, SampleErr: of.SampleErr, ELBO: of.ELBO, ESS: of.ESS,
		Samples: n, Count: len(estimates),
	}, nil
}

// numbers lists what was measured, by name.
func (r *Result) numbers() Values {
	out := Values{}
	if l := r.LogLikelihood; l != nil {
		out["log p(x)"] = l.Mean
	}
	maps.Copy(out, r.Metrics)
	return out
}

// table shows a result.
func (r *Result) table() *report.Table {
	t := &report.Table{Columns: report.Columns("measure", "value"), Title: fmt.Sprintf("%s, seed %d", r.Task, r.Seed)}
	if l := r.LogLikelihood; l != nil {
		t.Add(report.Text("log p(x) of an observation held out"), report.MeanStd(l.Mean, l.StdErr, 4))
		t.Add(report.Text("evidence lower bound"), report.Number(l.ELBO, 4))
		t.Add(report.Text("effective sample size"), report.Number(l.ESS, 1))
		t.Notes = append(t.Notes, fmt.Sprintf("log p(x): %d observations with %d samples each, ± the standard error over "+
			"observations, of which %.2g comes from sampling", l.Count, l.Samples, l.SampleErr))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		t.Add(report.Text(name), report.Number(r.Metrics[name], 4))
	}
	if note := r.Measured.Note(); note != "" {
		t.Notes = append(t.Notes, note)
	}
	t.Add(report.Text("iterations"), report.Int(int(r.Iterations)))
	t.Add(report.Text("M-steps"), report.Int(int(r.MSteps)))
	t.Add(report.Text("updates skipped"), report.Int(int(r.Skipped)))
	return t
}

// Print implements run.Result.
func (r *Result) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, r.table())
	return err
}
