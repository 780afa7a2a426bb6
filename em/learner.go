package em

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// Learner runs GFlowNet-EM with the E- and M-steps that a Spec describes, one compiled program each.
type Learner struct {
	Loop[[]*tensors.Tensor, []*tensors.Tensor]
	programs *program.Set
}

// New prepares a learner whose variables live in store, which has all of them from then on: a value that is to start
// elsewhere is set before New by making the variable, or after it by SetValue. It compiles nothing yet.
func New(b compute.Backend, store *model.Store, spec Spec) (*Learner, error) {
	if spec.Model == nil || spec.Env == nil || spec.Policy == nil || spec.Data == nil {
		return nil, errors.New("em: a learner needs a Model, an Env, a Policy and Data")
	}
	if spec.Sleep.Alone && spec.Sleep.Weight == 0 {
		return nil, errors.New("em: Sleep.Alone needs a Sleep.Weight")
	}
	if spec.Sleep.Weight != 0 && spec.Sleep.Batch < 1 {
		return nil, errors.New("em: a sleep phase needs Sleep.Batch, the number of pairs to dream")
	}
	if _, ok := spec.Model.(lvm.Maximizer); spec.MStep.ClosedForm && !ok {
		return nil, fmt.Errorf("em: a closed-form M-step needs a model with Maximize, which %T has not", spec.Model)
	}
	if err := below(Phi, "Wake", spec.Wake.Optimizer); err != nil {
		return nil, err
	}
	if err := below(Theta, "MStep", spec.MStep.Optimizer); err != nil {
		return nil, err
	}
	if _, ok := spec.Wake.Objective.(gfn.HVI); ok && spec.Wake.Explore.explores() {
		return nil, errors.New("em: the gradient of HVI is right for on-policy trajectories only: leave Wake.Explore at zero")
	}
	store.RootScope().SetParam(nn.SeedParam, spec.Seed)
	l := &Learner{programs: program.NewSet(b, store)}
	g := newGraphs(spec.withDefaults(), l.programs)
	l.Data, l.Gate, l.E, l.M = spec.Data, spec.Gate, eStep{g}, mStep{g}
	if err := g.declare(); err != nil {
		return nil, fmt.Errorf("em: %w", err)
	}
	return l, nil
}

// below checks that an optimiser keeps to its side.
func below(scope, step string, o optim.Optimizer) error {
	for _, g := range o.Groups {
		if g.Scope != scope && !strings.HasPrefix(g.Scope, scope+"/") {
			return fmt.Errorf("em: %s.Optimizer has a group %q, which is not below %s", step, g.Scope, scope)
		}
	}
	return nil
}

// Store returns the store of all variables.
func (l *Learner) Store() *model.Store { return l.programs.Store }

// Close releases the compiled programs.
func (l *Learner) Close() { l.programs.Close() }
