// Package envlaws checks the laws of gfn.Env, for the suite envtest and for learners.
package envlaws

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/laws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/rows"
)

const (
	// Limit is the number of states up to which all of them are checked.
	Limit = 5000
	// Walks is the number of random walks that stand in for all states where there are more.
	Walks = size
	// size is the number of states that are checked at once.
	size = 64
	// singles is the number of states that are checked once more, alone in their batch.
	singles = 64
)

// The laws, as they are reported.
const (
	Shape    = "shapes and dtypes are those that gfn.Env states"
	Run      = "methods do not fail, on illegal actions neither"
	Rows     = "rows of a batch do not depend on each other"
	Initial  = "the initial state has no legal backward action"
	Others   = "every state but the initial one has a legal backward action"
	Undo     = "Back(s, a) is legal in Step(s, a), and Undo(Step(s, a), Back(s, a)) is s"
	Redo     = "Redo(s, b) is legal in Undo(s, b), and Step(Undo(s, b), Redo(s, b)) is s"
	Children = "two actions lead to different children"
	Parents  = "two backward actions lead to different parents"
	Reach    = "backward actions lead to states that can be reached"
	Steps    = "every path ends after at most Steps() actions"
)

// Checker collects what it finds about an environment.
type Checker struct {
	laws.Found
	Backend compute.Backend
	Env     gfn.Env
	Seed    uint64    // of random walks
	Until   time.Time // no further observation is begun then; zero means no limit

	// Starts is the number of different initial states, and Started that of those which were checked. States is how many
	// states they have, as far as all were listed, and Walked how many initial states have too many for that.
	Starts, Started, States, Walked int

	actions  side
	backward side
	start    *program.Program[[]*tensors.Tensor, []*tensors.Tensor]
	probe    *program.Program[[]*tensors.Tensor, answers[*tensors.Tensor]]
	like     []*tensors.Tensor // states
	row      int               // the observation that is tried
	several  bool              // whether there are others
}

// Check tries the initial states of all observations x, which may be none for environments that ignore them.
func (c *Checker) Check(x []*tensors.Tensor) {
	if len(x) == 0 {
		x = []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)}
	}
	s := program.NewSet(c.Backend, nil)
	defer s.Close()
	env := c.Env
	c.actions = side{"Legal", "Step", "Back", env.Actions(), env.Legal, env.Step, env.Back}
	c.backward = side{"LegalBack", "Undo", "Redo", env.BackActions(), env.LegalBack, env.Undo, env.Redo}
	c.start = program.New[[]*tensors.Tensor, []*tensors.Tensor](s, "Initial", func(x gfn.Batch) gfn.State {
		s := env.Initial(x)
		if len(s) == 0 {
			panic(laws.Break(Shape, "Initial returns no tensor"))
		}
		return s
	})
	c.probe = program.New[[]*tensors.Tensor, answers[*tensors.Tensor]](s, "all methods", c.build)
	initial := c.initial(x)
	first, known := []int(nil), map[string]bool{}
	for i, state := range initial { // nothing but the initial state depends on x
		if !known[state] {
			first = append(first, i)
		}
		known[state] = true
	}
	c.Starts, c.several = len(first), len(first) > 1
	for _, i := range first {
		if c.Started > 0 && !c.Until.IsZero() && time.Now().After(c.Until) {
			return
		}
		c.row = i
		c.observation(rows.Take(x, []int{i}), initial[i])
		c.Started++
	}
}

// Broke adds a broken law, and says with which observation it was if there are several.
func (c *Checker) Broke(law, format string, args ...any) {
	if c.several {
		format, args = format+" (observation %d)", append(args, c.row)
	}
	c.Found.Broke(law, format, args...)
}

// initial returns the initial states of all observations, each of which must be the same alone, or nil.
func (c *Checker) initial(x []*tensors.Tensor) []string {
	n := x[0].Shape().Dim(0)
	state, err := c.start.Call(x)
	if err != nil {
		c.Failed(err, Run)
		return nil
	}
	for i, t := range state {
		if t.Rank() == 0 || t.Shape().Dim(0) != n {
			c.Broke(Shape, "Initial returns %s as tensor %d, for %d observations", t.Shape(), i, n)
			return nil
		}
	}
	c.like = state
	together := rows.Of(state)
	for i := range min(n, singles) {
		alone, err := c.start.Call(rows.Take(x, []int{i}))
		if err != nil {
			c.Broke(Run, "of one row: %v", err)
			return nil
		}
		if got := rows.Of(alone)[0]; got != together[i] {
			c.Broke(Rows, "Initial of row %d is %s in a batch of %d, and %s alone", i, c.show(together[i]), n, c.show(got))
		}
	}
	if len(c.Found) > 0 {
		return nil
	}
	return together
}

// observation checks the states of one observation.
func (c *Checker) observation(x []*tensors.Tensor, initial string) {
	first, ok := c.ask([]string{initial}, size)
	if !ok {
		return
	}
	d, err := gfn.Enumerate(c.Backend, c.Env, x, Limit)
	switch {
	case err == nil:
		c.States += d.Len()
		c.all(d, initial)
	case errors.Is(err, gfn.ErrTooMany), errors.Is(err, gfn.ErrCycle):
		if errors.Is(err, gfn.ErrCycle) {
			c.Broke(Steps, "actions form a cycle")
		}
		c.Walked++
		c.walk(initial, first[0])
	default:
		c.Failed(err, Run)
	}
}

// show prints a state.
func (c *Checker) show(row string) string {
	parts := xslices.Map(rows.Join(c.like, []string{row}, 1), func(t *tensors.Tensor) string {
		v := fmt.Sprint(t.Value())
		return v[1 : len(v)-1] // without the brackets of the batch axis
	})
	return "(" + strings.Join(parts, " ") + ")"
}
