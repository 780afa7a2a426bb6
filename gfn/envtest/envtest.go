// Package envtest checks that an environment keeps the laws of gfn.Env:
//
//	func TestForest(t *testing.T) { envtest.Run(t, forest.New(6, 3)) }
package envtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // the backend of Run
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/laws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/rows"
)

const (
	// limit is the number of states up to which all of them are checked.
	limit = 5000
	// walks is the number of random walks that stand in for all states where there are more.
	walks = size
	// seed of the random walks.
	seed = 1
	// size is the number of states that are checked at once.
	size = 64
	// singles is the number of states that are checked once more, alone in their batch.
	singles = 64
)

// The laws, as they are reported.
const (
	lawShape    = "shapes and dtypes are those that gfn.Env states"
	lawRun      = "methods do not fail, on illegal actions neither"
	lawRows     = "rows of a batch do not depend on each other"
	lawInitial  = "the initial state has no legal backward action"
	lawOthers   = "every state but the initial one has a legal backward action"
	lawUndo     = "Back(s, a) is legal in Step(s, a), and Undo(Step(s, a), Back(s, a)) is s"
	lawRedo     = "Redo(s, b) is legal in Undo(s, b), and Step(Undo(s, b), Redo(s, b)) is s"
	lawChildren = "two actions lead to different children"
	lawParents  = "two backward actions lead to different parents"
	lawReach    = "backward actions lead to states that can be reached"
	lawSteps    = "every path ends after at most Steps() actions"
)

// Run fails t for every law that env breaks. The observations x share a batch axis, and each row is tried; environments
// that ignore x need none.
//
// All states are checked if there are at most 5000, else those on random walks, forward and back.
func Run(t *testing.T, env gfn.Env, x ...*tensors.Tensor) {
	t.Helper()
	// One operation at a time: in parallel, large matrix products can take all workers and wait for more forever.
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		t.Fatalf("envtest: open backend: %v", err)
	}
	defer b.Finalize()
	own := make([]*tensors.Tensor, len(x)) // the caller's may be on another backend, or go there
	for i := range x {
		if own[i], err = x[i].LocalClone(); err != nil {
			t.Fatalf("envtest: copy tensor %d of x: %v", i, err)
		}
	}
	c := check(b, env, own)
	if c.walked {
		t.Logf("envtest: more than %d states: %d random walks, seed %d", limit, walks, seed)
	}
	for _, v := range c.Lines() {
		t.Errorf("envtest: broken law: %s", v)
	}
}

// Check returns the laws that env breaks, one line each, with an example.
func Check(b compute.Backend, env gfn.Env, x ...*tensors.Tensor) []string {
	return check(b, env, x).Lines()
}

// checker collects what it finds.
type checker struct {
	laws.Found
	backend  compute.Backend
	env      gfn.Env
	actions  side
	backward side
	start    *program.Program[[]*tensors.Tensor, []*tensors.Tensor]
	probe    *program.Program[[]*tensors.Tensor, answers[*tensors.Tensor]]
	like     []*tensors.Tensor // states
	walked   bool
}

func check(b compute.Backend, env gfn.Env, x []*tensors.Tensor) *checker {
	if len(x) == 0 {
		x = []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)}
	}
	s := program.NewSet(b, nil)
	defer s.Close()
	c := &checker{
		backend: b, env: env,
		actions:  side{"Legal", "Step", "Back", env.Actions(), env.Legal, env.Step, env.Back},
		backward: side{"LegalBack", "Undo", "Redo", env.BackActions(), env.LegalBack, env.Undo, env.Redo},
		start: program.New[[]*tensors.Tensor, []*tensors.Tensor](s, "Initial", func(x gfn.Batch) gfn.State {
			s := env.Initial(x)
			if len(s) == 0 {
				panic(laws.Break(lawShape, "Initial returns no tensor"))
			}
			return s
		}),
	}
	c.probe = program.New[[]*tensors.Tensor, answers[*tensors.Tensor]](s, "all methods", c.build)
	for i, initial := range c.initial(x) {
		c.observation(rows.Take(x, []int{i}), initial)
	}
	return c
}

// initial returns the initial states of all observations, each of which must be the same alone, or nil.
func (c *checker) initial(x []*tensors.Tensor) []string {
	n := x[0].Shape().Dim(0)
	state, err := c.start.Call(x)
	if err != nil {
		c.Failed(err, lawRun)
		return nil
	}
	for i, t := range state {
		if t.Rank() == 0 || t.Shape().Dim(0) != n {
			c.Broke(lawShape, "Initial returns %s as tensor %d, for %d observations", t.Shape(), i, n)
			return nil
		}
	}
	c.like = state
	together := rows.Of(state)
	for i := range min(n, singles) {
		alone, err := c.start.Call(rows.Take(x, []int{i}))
		if err != nil {
			c.Broke(lawRun, "of one row: %v", err)
			return nil
		}
		if got := rows.Of(alone)[0]; got != together[i] {
			c.Broke(lawRows, "Initial of row %d is %s in a batch of %d, and %s alone", i, c.show(together[i]), n, c.show(got))
		}
	}
	if len(c.Found) > 0 {
		return nil
	}
	return together
}

// observation checks the states of one observation.
func (c *checker) observation(x []*tensors.Tensor, initial string) {
	first, ok := c.ask([]string{initial}, size)
	if !ok {
		return
	}
	d, err := gfn.Enumerate(c.backend, c.env, x, limit)
	switch {
	case err == nil:
		c.all(d, initial)
	case errors.Is(err, gfn.ErrTooMany), errors.Is(err, gfn.ErrCycle):
		if errors.Is(err, gfn.ErrCycle) {
			c.Broke(lawSteps, "actions form a cycle")
		}
		c.walked = true
		c.walk(initial, first[0])
	default:
		c.Failed(err, lawRun)
	}
}

// show prints a state.
func (c *checker) show(row string) string {
	parts := xslices.Map(rows.Join(c.like, []string{row}, 1), func(t *tensors.Tensor) string {
		v := fmt.Sprint(t.Value())
		return v[1 : len(v)-1] // without the brackets of the batch axis
	})
	return "(" + strings.Join(parts, " ") + ")"
}
