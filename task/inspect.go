package task

import (
	"cmp"
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/internal/rows"
	"github.com/gfnem/gfnem/run"
)

var _ command.Inspector = &Task[struct{}]{}

// Questions implements command.Inspector.
func (t *Task[C]) Questions() []command.Question {
	return []command.Question{
		command.AskOne("diagnose", DiagnoseAbout, func(o opened[C], q DiagnoseRequest) (Diagnosis, error) {
			return o.Session.Diagnose(q)
		}),
	}
}

// Inspect implements command.Inspector.
func (t *Task[C]) Inspect(b compute.Backend, r *run.Run) (command.Model, []string, error) {
	o, err := t.Open(b, r.Dir())
	if err != nil {
		return nil, nil, err
	}
	return opened[C]{o}, o.Skipped, nil
}

// opened is an Opened as a command.Model.
type opened[C any] struct{ *Opened[C] }

// About implements command.Model.
func (o opened[C]) About() any {
	return struct {
		Name  string `json:"name"`
		About string `json:"about,omitempty"`
	}{o.name, o.about}
}

// DiagnoseAbout says what Diagnose does.
const DiagnoseAbout = "How good q(z|x) is: log p(x) of some observations by importance sampling, the effective sample size, and calibration by simulation."

type (
	// DiagnoseRequest says how a posterior is looked at.
	DiagnoseRequest struct {
		Observations int `json:"observations,omitempty" help:"the first so many that are held out, or of the first batch; 100 if left out, at most 1000"`
		Samples      int `json:"samples,omitempty" help:"latents of each; 100 if left out, at most 10000"`
		Pairs        int `json:"pairs,omitempty" help:"pairs (x,z) of the model for the calibration; 500 if left out, at most 5000"`
	}
	// Diagnosis is what was seen.
	Diagnosis struct {
		Observations int     `json:"observations"`
		Samples      int     `json:"samples"`
		LogProb      float64 `json:"log_prob" help:"the mean of log p(x), estimated"`
		StdErr       float64 `json:"std_err"`
		ELBO         float64 `json:"elbo"`
		ESS          float64 `json:"effective_samples"`
		Calibrated   bool    `json:"calibrated" help:"whether q may be the posterior of the model"`
		P            float64 `json:"p" help:"how probable such ranks are at most, if it is"`
		Alarm        float64 `json:"alarm" help:"calibrated is false of a right posterior with this probability at most"`
		Ranks        []Ranks `json:"ranks" help:"by statistic; even ones are right"`
	}
	// Ranks are those of a statistic of latents of the model among samples of q.
	Ranks struct {
		Name   string  `json:"name"`
		Counts []int   `json:"counts"`
		P      float64 `json:"p"`
	}
)

// Check implements command.Checked.
func (q DiagnoseRequest) Check() error {
	for _, one := range []struct {
		name    string
		n, most int
	}{{"observations", q.Observations, 1000}, {"samples", q.Samples, 10_000}, {"pairs", q.Pairs, 5000}} {
		if one.n < 0 || one.n > one.most {
			return fmt.Errorf("%s %d is not between 0 and %d", one.name, one.n, one.most)
		}
	}
	return nil
}

// Size implements command.Sized.
func (q DiagnoseRequest) Size() int { return cmp.Or(q.Observations, 100) }

// Diagnose looks at the posterior as it is.
func (s *Session) Diagnose(q DiagnoseRequest) (out Diagnosis, err error) {
	p, err := s.Posterior()
	if err != nil {
		return out, err
	}
	defer p.Close()
	x := s.learning.HeldOut
	if len(x) == 0 {
		x = s.Spec.Data(0)
	}
	out.Observations, out.Samples = min(cmp.Or(q.Observations, 100), x[0].Shape().Dim(0)), cmp.Or(q.Samples, 100)
	e, err := p.LogLikelihood(out.Samples, firstRows(x, out.Observations)...)
	if err != nil {
		return out, err
	}
	sum := em.Summarise(e)
	if math.IsInf(sum.LogP, 0) || math.IsNaN(sum.LogP) {
		return out, fmt.Errorf("log p(x) is estimated as %g", sum.LogP)
	}
	out.LogProb, out.StdErr, out.ELBO, out.ESS = sum.LogP, sum.StdErr, max(sum.ELBO, -math.MaxFloat64), sum.ESS
	c, err := p.Calibrate(em.Calibrate{Pairs: cmp.Or(q.Pairs, 500)})
	if err != nil {
		return out, err
	}
	out.Calibrated, out.P, out.Alarm = c.OK(), c.P(), c.Alarm
	for _, r := range c.Ranks {
		out.Ranks = append(out.Ranks, Ranks{r.Name, r.Counts, r.P})
	}
	return out, nil
}

func firstRows(x []*tensors.Tensor, n int) []*tensors.Tensor {
	some := make([]int, n)
	for i := range some {
		some[i] = i
	}
	return rows.Take(x, some)
}
