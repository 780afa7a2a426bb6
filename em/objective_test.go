package em

import (
	"fmt"
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

// An Objective of the user's that says what an M-step does by default does it, weighed or not, in a program of its own or
// in one with an E-step; and what else it changes is changed with each update, and with none that is skipped.
func TestObjective(t *testing.T) {
	for name, latents := range map[string]Latents{"drawn": Drawn{Samples: 2}, "weighted": Weighted{}, "drawn anew": Weighted{Samples: 3}} {
		var ends []string
		for _, own := range []bool{false, true} {
			o := newOneSet(t, 3)
			spec := o.spec
			spec.Wake.Samples, spec.MStep.Latents = 4, latents
			broken := false
			if own {
				spec.MStep.Objective = func(theta *model.Scope, x gfn.Batch, z gfn.State, weight *Node, _ func() gfn.State) (*Node, []optim.Assignment) {
					logP := o.LogJoint(theta, x, z)
					loss := Neg(ReduceAllMean(logP))
					if weight != nil {
						loss = Neg(ReduceAllSum(Mul(weight, logP)))
					}
					count := theta.Store().Scope("/count").VariableWithValue("made", 0.0).SetTrainable(false)
					old := count.NodeValue(logP)
					if broken {
						loss = Mul(loss, Scalar(logP.Graph(), loss.DType(), math.NaN()))
					}
					return loss, []optim.Assignment{{Variable: count, Value: OnePlus(old)}}
				}
			}
			made := func() float64 { return tensors.ToScalar[float64](o.store.GetVariable("/count/made").MustValue()) }
			learn := func(steps int) {
				t.Helper()
				l, err := New(o.b, o.store, spec)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				for range steps {
					if _, err := l.Step(); err != nil {
						t.Fatal(err)
					}
				}
			}
			learn(3)
			prior, emit := o.variables(o.store.Scope(Theta))
			ends = append(ends, fmt.Sprint(prior.MustValue().Value(), emit.MustValue().Value()))
			if !own {
				continue
			}
			if got := made(); got != 3 {
				t.Errorf("%s: counted %g updates, want 3", name, got)
			}
			broken = true
			if learn(2); made() != 3 {
				t.Errorf("%s: skipped updates count, too: %g", name, made())
			}
		}
		if ends[0] != ends[1] {
			t.Errorf("%s: by default %s, by an Objective %s", name, ends[0], ends[1])
		}
	}
}
