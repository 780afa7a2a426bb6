package em

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
)

// Learner runs GFlowNet-EM with the E- and M-steps that a Spec describes, one compiled program each.
type Learner struct {
	Loop[[]*tensors.Tensor, Inferred]
	programs *program.Set
	spec     Spec
}

// New prepares a learner whose variables live in store, which has all of them from then on: a value that is to start
// elsewhere is set before New by making the variable, or after it by SetValue. It compiles nothing yet. An error names
// the line of the function of spec that is wrong, or of New's caller.
func New(b compute.Backend, store *model.Store, spec Spec) (*Learner, error) {
	err := spec.check()
	if err == nil {
		spec.Seed, err = seeded(store, spec.Seed)
	}
	if err != nil {
		return nil, blame.Caller(fmt.Errorf("em: %w", err))
	}
	l := &Learner{programs: program.NewSet(b, store), spec: spec}
	g := newGraphs(spec.withDefaults(), l.programs)
	l.Data, l.Gate, l.E, l.M = spec.Data, spec.Gate, eStep{g}, mStep{g}
	if err = g.declare(); err == nil {
		err = g.checkGroups()
	}
	if err != nil {
		return nil, blame.Caller(fmt.Errorf("em: %w", err))
	}
	return l, nil
}

// Store returns the store of all variables.
func (l *Learner) Store() *model.Store { return l.programs.Store }

// Close releases the compiled programs.
func (l *Learner) Close() { l.programs.Close() }
