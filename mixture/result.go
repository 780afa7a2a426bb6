package mixture

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
)

// LogLiks are mean log-likelihoods per point, by method.
type LogLiks struct {
	Truth     float64 `json:"truth"`
	Exact     float64 `json:"exact"`
	MeanField float64 `json:"meanfield"`
	GFN       float64 `json:"gfn"`
}

// result is what a training leads to.
type result struct {
	Task   string  `json:"task"`
	Seed   uint64  `json:"seed"`
	Run    int     `json:"run"`
	LogLik LogLiks `json:"loglik"`
	// Published is on the scale of the paper, see Problem.PublishedOffset.
	Published LogLiks `json:"loglik_published"`
	// Success says whether GFlowNet-EM reached the optimum, see Reached.
	Success bool  `json:"success"`
	Means   Means `json:"means"`
	// TotalVariation is the mean over points of the distance from q(i,j|x) to its target, the clipped posterior.
	TotalVariation float64 `json:"total_variation"`
	// ELBO is the mean over points of E_q[log p(x,i,j) - log q(i,j|x)], at most the log-likelihood.
	ELBO float64 `json:"elbo"`

	exact, meanField Fit
}

var _ run.Result = (*result)(nil)

// Headline implements run.Headliner.
func (r *result) Headline() (run.Headline, bool) {
	return run.Headline{Name: "log p(x)", Value: r.LogLik.GFN}, true
}

// Evaluate implements run.Session.
func (t *trainer) Evaluate() (run.Result, error) {
	c := t.config
	r := &result{Task: Task{}.Name(), Seed: c.Seed, Run: c.Run, Means: t.means()}
	r.exact = ExactEM{Problem: t.model.Problem, Iterations: c.Iterations}.Fit(t.data.X, t.model.start, nil)
	r.meanField = MeanField{Problem: t.model.Problem, Iterations: c.Iterations}.Fit(t.data.X, t.model.start,
		rng.New(c.Seed, "mixture/fit", uint64(c.Run)))
	r.LogLik = LogLiks{
		Truth:     t.model.Problem.LogLikelihood(t.data.X, t.model.Problem.TrueMeans()),
		Exact:     r.exact.LogLikelihood,
		MeanField: r.meanField.LogLikelihood,
		GFN:       t.model.Problem.LogLikelihood(t.data.X, r.Means),
	}
	shift := t.model.Problem.PublishedOffset()
	r.Published = LogLiks{r.LogLik.Truth + shift, r.LogLik.Exact + shift, r.LogLik.MeanField + shift, r.LogLik.GFN + shift}
	r.Success = Reached(r.LogLik.GFN, r.LogLik.Truth)

	pairs := c.Model.Super * c.Model.Petals
	if err := t.eachPosterior(t.data.X, func(x []Point, q *Posterior) {
		target := t.model.Problem.Posterior(x, r.Means, c.Wake.RewardClip)
		logR := t.model.Problem.LogReward(x, r.Means, math.Inf(-1))
		for n := range x {
			r.TotalVariation += gfn.TotalVariation(q.Row(n), target.Row(n))
			for k, p := range q.Row(n) {
				if p > 0 {
					r.ELBO += p * (logR[n*pairs+k] - math.Log(p))
				}
			}
		}
	}); err != nil {
		return nil, err
	}
	r.TotalVariation /= float64(c.Points)
	r.ELBO = r.ELBO/float64(c.Points) + t.model.Problem.logNorm(c.Model.Super)
	return r, nil
}

// eachPosterior visits q(i,j|x) of points, by enumeration: of as many at a time as a table has room for.
func (t *trainer) eachPosterior(points []Point, visit func(x []Point, q *Posterior)) error {
	const room = 1 << 25 // probabilities of actions
	first := pointTensor(points[:1])
	dag, err := gfn.Enumerate(t.Backend, t.model.env(), []*tensors.Tensor{first}, 1<<20)
	if err != nil {
		return err
	}
	each := dag.Len() * max(t.config.Model.Super, t.config.Model.Petals, t.config.Policy.Hidden)
	for x := range slices.Chunk(points, max(1, room/each)) {
		q, err := t.posterior(dag, x)
		if err != nil {
			return err
		}
		visit(x, q)
	}
	return nil
}

// posterior returns q(i,j|x) of some points.
func (t *trainer) posterior(dag *gfn.DAG, x []Point) (*Posterior, error) {
	super, petals := t.config.Model.Super, t.config.Model.Petals
	pairs := super * petals
	net := policy{super, petals, t.config.Policy.Hidden}
	tables, err := dag.Tabulate(t.Backend, t.Store(), em.Phi, net, []*tensors.Tensor{pointTensor(x)})
	if err != nil {
		return nil, err
	}
	tokens := tensors.MustCopyFlatData[int32](dag.ObjectStates()[0])
	points := len(tables)
	q := &Posterior{Super: super, Petals: petals, Q: make([]float64, points*pairs), LogZ: make([]float64, points)}
	for n, table := range tables {
		for k, p := range dag.Terminating(table) {
			q.Row(n)[int(tokens[2*k])*petals+int(tokens[2*k+1])] = p
		}
		q.LogZ[n] = table.Flow[0]
	}
	return q, nil
}

// table compares the methods.
func (r *result) table() *report.Table {
	t := &report.Table{
		Title:   "Mean log-likelihood per point",
		Columns: report.Columns("method", "log p(x)", "as published", "at the optimum"),
		Notes: []string{
			"as published: the paper's figures are shifted by a constant, " + report.Number(r.Published.Truth-r.LogLik.Truth, 4).String(),
			fmt.Sprintf("at the optimum: within %g of the true means", Tolerance),
		},
	}
	for _, m := range []struct {
		name           string
		own, published float64
	}{
		{"true means", r.LogLik.Truth, r.Published.Truth},
		{"exact EM", r.LogLik.Exact, r.Published.Exact},
		{"mean-field EM", r.LogLik.MeanField, r.Published.MeanField},
		{"GFlowNet-EM", r.LogLik.GFN, r.Published.GFN},
	} {
		reached := "no"
		if Reached(m.own, r.LogLik.Truth) {
			reached = "yes"
		}
		t.Add(report.Text(m.name), report.Number(m.own, 4), report.Number(m.published, 4), report.Text(reached))
	}
	return t
}

// Print implements run.Result.
func (r *result) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\nq(i,j|x) is within total variation %.3f of its target on average.\n", r.table(), r.TotalVariation)
	return err
}
