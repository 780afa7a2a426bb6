package vae

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/internal/panics"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/run"
)

// vqTrainer trains a VQ-VAE.
type vqTrainer struct {
	vqCounters
	data      em.Data
	optimizer optim.Optimizer
	program   *model.Exec
}

// vqCounters are what a trainer remembers besides the variables.
type vqCounters struct {
	Step uint64 // updates attempted
	em.Tally
}

var _ trainer = (*vqTrainer)(nil)

func (c *Config) vqTrainer(b compute.Backend, store *model.Store, size Size, data em.Data, perEpoch uint64) (*vqTrainer, error) {
	t := &vqTrainer{data: data, optimizer: optim.Optimizer{Groups: []optim.Group{
		{Scope: em.Theta, Rate: reducible(c.VQLR, c.VQReducedLR, c.ReduceOn, perEpoch)},
	}}}
	var err error
	t.program, err = model.NewExec(b, store, func(_ *model.Scope, in []*Node) *Node {
		defer panics.WithError()
		l := VQ{size}.loss(store.Scope(em.Theta), pick(in[1:])[0])
		r := together(t.optimizer, store, l.total, in[0], l.changes)
		numbers := []*Node{l.total, r.GradNorm, r.OK, l.reconstruction, l.commitment, l.perplexity}
		for i, n := range numbers {
			numbers[i] = ConvertDType(n, dtypes.Float64)
		}
		return Stack(numbers, 0)
	})
	if err != nil {
		return nil, fmt.Errorf("build the update of a VQ-VAE: %w", err)
	}
	return t, nil
}

// together follows the gradient of a loss and makes changes with it: all of it, or nothing if a part is not finite.
func together(o optim.Optimizer, store *model.Store, loss, rates *Node, changes []change) optim.Result {
	fine := Const(loss.Graph(), true)
	for _, c := range changes {
		fine = LogicalAnd(fine, IsFinite(ReduceAllMax(Abs(c.value))))
	}
	refused := Scalar(loss.Graph(), loss.DType(), math.NaN())
	r := o.Minimize(store, Where(fine, loss, refused), rates)
	for _, c := range changes {
		c.variable.SetNodeValue(Where(r.OK, c.value, c.variable.NodeValue(loss.Graph())))
	}
	return r
}

func (t *vqTrainer) made() uint64 { return t.Step }

func (t *vqTrainer) step() (string, map[string]float64, error) {
	images := t.data(t.Step)
	out, err := t.program.Call(t.optimizer.Rates(t.Step), images[0], images[1])
	if err != nil {
		return "", nil, fmt.Errorf("update %d: %w", t.Step, err)
	}
	v, err := tensors.CopyFlatData[float64](out[0])
	if err != nil {
		return "", nil, err
	}
	t.Step++
	u := em.Update{Loss: v[0], GradNorm: v[1], OK: v[2] != 0}
	if err := t.Count(u, "VQ"); err != nil {
		return "", nil, fmt.Errorf("%w: %w", run.ErrGaveUp, err)
	}
	return fmt.Sprintf("reconstruction %.1f nats, %.1f codes in use", v[3], v[5]), map[string]float64{
		"loss": v[0], "grad_norm": v[1], "reconstruction": v[3], "commitment": v[4], "perplexity": v[5], "skipped": float64(t.Skipped),
	}, nil
}

func (t *vqTrainer) counters() (json.RawMessage, error) { return json.Marshal(t.vqCounters) }

func (t *vqTrainer) restore(saved json.RawMessage) error { return json.Unmarshal(saved, &t.vqCounters) }

func (t *vqTrainer) close() { t.program.Finalize() }
