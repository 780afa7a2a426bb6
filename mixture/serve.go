package mixture

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/task"
)

var _ command.Inspector = Task{}

// Limits of a request and of what a page shows.
const (
	servedPoints = 4096
	shownPoints  = 1000
	shownMeans   = 200 // of a path
	sweeps       = 20  // of mean field, which has converged then
)

// Questions implements command.Inspector.
func (Task) Questions() []command.Question {
	return []command.Question{
		command.AskOne("posterior", "p(i,j|x) of points: exact, by mean field, and by the GFlowNet.", (*inspected).posteriors),
		command.AskOne("diagnose", task.DiagnoseAbout, func(m *inspected, q task.DiagnoseRequest) (task.Diagnosis, error) {
			return m.Diagnose(q)
		}),
	}
}

// Inspect implements command.Inspector.
func (Task) Inspect(b compute.Backend, r *run.Run) (command.Model, []string, error) {
	c := QuickConfig() // run.toml has every key
	if err := config.Resolve(&c, config.File(filepath.Join(r.Dir(), "run.toml"))); err != nil {
		return nil, nil, err
	}
	t, err := newTrainer(b, c, nil)
	if err != nil {
		return nil, nil, err
	}
	m := &inspected{trainer: t}
	skipped, err := m.read(b, r)
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return m, skipped, nil
}

// inspected is the model of a run.
type inspected struct {
	*trainer
	dag   *gfn.DAG // of pairs
	paths map[string][]Means
}

var _ command.Model = (*inspected)(nil)

func (m *inspected) read(b compute.Backend, r *run.Run) (skipped []string, err error) {
	if err := r.CheckData(m.Data()); err != nil {
		return nil, err
	}
	state, skipped, err := r.Load()
	if err != nil {
		return nil, err
	}
	if err := m.Restore(state); err != nil {
		return nil, fmt.Errorf("open run %s at step %d: %w", r.Dir(), state.Step, err)
	}
	if m.dag, err = gfn.Enumerate(b, m.model.env(), []*tensors.Tensor{pointTensor(m.data.X[:1])}, 1<<20); err != nil {
		return nil, err
	}
	points, err := run.ReadMetrics(r.Dir())
	if err != nil {
		return nil, err
	}
	c := m.config
	exact := ExactEM{Problem: m.model.Problem, Iterations: c.Iterations}.Fit(m.data.X, m.model.start, nil)
	field := MeanField{Problem: m.model.Problem, Iterations: c.Iterations}.Fit(m.data.X, m.model.start,
		rng.New(c.Seed, "mixture/fit", uint64(c.Run)))
	m.paths = map[string][]Means{"exact": thinned(exact.Trace), "meanfield": thinned(field.Trace), "gfn": thinned(m.trace(points))}
	return skipped, nil
}

// thinned are at most shownMeans steps of a path, the first and the last among them.
func thinned(path []Means) []Means {
	if len(path) <= shownMeans {
		return path
	}
	out := make([]Means, shownMeans)
	for i := range out {
		out[i] = path[i*(len(path)-1)/(shownMeans-1)]
	}
	return out
}

// About implements command.Model.
func (m *inspected) About() any {
	p := m.model.Problem
	return aboutMixture{
		Super: len(m.model.start), Petals: p.Petals, Sigma: p.Sigma, Offsets: p.Offsets(), True: p.TrueMeans(),
		Means: m.means(), Points: m.data.X[:min(len(m.data.X), shownPoints)], Paths: m.paths,
	}
}

type aboutMixture struct {
	Super   int                `json:"super"`
	Petals  int                `json:"petals"`
	Sigma   float64            `json:"sigma"`
	Offsets []Point            `json:"offsets"`
	True    Means              `json:"true_means"`
	Means   Means              `json:"means"`
	Points  []Point            `json:"points"`
	Paths   map[string][]Means `json:"paths"` // of the means over updates, by method
}

type (
	posteriorRequest struct {
		Points []Point `json:"points" help:"pairs of coordinates"`
		Seed   uint64  `json:"seed,omitempty" help:"of the start of mean field"`
	}
	posteriors struct {
		Super     int         `json:"super"`
		Petals    int         `json:"petals"`
		Exact     [][]float64 `json:"exact" help:"of each point, p(i,j|x) at i*petals+j"`
		MeanField [][]float64 `json:"meanfield" help:"q(i)q(j), after 20 sweeps at the learned means"`
		GFlowNet  [][]float64 `json:"gfn" help:"q(i,j|x)"`
	}
)

// Check implements command.Checked.
func (q posteriorRequest) Check() error {
	if len(q.Points) == 0 || len(q.Points) > servedPoints {
		return fmt.Errorf("%d points: give 1 to %d", len(q.Points), servedPoints)
	}
	for i, x := range q.Points {
		if !(math.Abs(x[0]) <= 1e6 && math.Abs(x[1]) <= 1e6) {
			return fmt.Errorf("point %d is further than 1e6 from the origin", i)
		}
	}
	return command.CheckSeed(q.Seed)
}

// Size implements command.Sized.
func (q posteriorRequest) Size() int { return len(q.Points) }

func (m *inspected) posteriors(q posteriorRequest) (out posteriors, err error) {
	mu, p := m.means(), m.model.Problem
	out.Super, out.Petals = len(mu), p.filled().Petals
	exact := p.Posterior(q.Points, mu, math.Inf(-1))
	learned, err := m.posterior(m.dag, q.Points)
	if err != nil {
		return out, err
	}
	f := p.newFactors(len(q.Points), len(mu), rng.New(q.Seed, "mixture/serve"))
	for range sweeps {
		f.sweep(q.Points, mu)
	}
	for n := range q.Points {
		field := make([]float64, 0, out.Super*out.Petals)
		for _, i := range f.super[n] {
			for _, j := range f.petal[n] {
				field = append(field, i*j)
			}
		}
		out.Exact = append(out.Exact, exact.Row(n))
		out.GFlowNet = append(out.GFlowNet, learned.Row(n))
		out.MeanField = append(out.MeanField, field)
	}
	return out, nil
}
