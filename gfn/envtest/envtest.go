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
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/internal/rowbytes"
	"github.com/gfnem/gfnem/internal/panics"
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
	c := newChecker(b, env)
	c.check(x)
	if c.walked {
		t.Logf("envtest: more than %d states: %d random walks, seed %d", limit, walks, seed)
	}
	for _, v := range c.violations() {
		t.Errorf("envtest: broken law: %s", v)
	}
}

// Check returns the laws that env breaks, one line each, with an example.
func Check(b compute.Backend, env gfn.Env, x ...*tensors.Tensor) []string {
	c := newChecker(b, env)
	c.check(x)
	return c.violations()
}

// checker collects what it finds.
type checker struct {
	backend compute.Backend
	env     gfn.Env
	probe   *Exec
	state   rowbytes.Layout
	walked  bool

	badShape error // why the graph could not be built

	order   []string
	example map[string]string
	count   map[string]int
}

func newChecker(b compute.Backend, env gfn.Env) *checker {
	return &checker{backend: b, env: env, example: map[string]string{}, count: map[string]int{}}
}

// broke records that a law was broken; only the first example is kept.
func (c *checker) broke(law, format string, args ...any) {
	if c.count[law]++; c.count[law] == 1 {
		c.order = append(c.order, law)
		c.example[law] = fmt.Sprintf(format, args...)
	}
}

func (c *checker) violations() []string {
	var out []string
	for _, law := range c.order {
		line := law + ": " + c.example[law]
		if n := c.count[law] - 1; n > 0 {
			line += fmt.Sprintf(" (and %d more)", n)
		}
		out = append(out, line)
	}
	return out
}

func (c *checker) check(x []*tensors.Tensor) {
	if len(x) == 0 {
		x = []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)}
	}
	initial, ok := c.initial(x)
	if !ok {
		return
	}
	probe, err := NewExec(c.backend, c.build)
	if err != nil {
		c.broke(lawRun, "%v", err)
		return
	}
	c.probe = probe
	defer probe.Finalize()
	for i := range initial {
		c.observation(rowTensors(x, i), initial[i])
	}
}

// start makes the graph of the initial states.
func (c *checker) start(in []*Node) []*Node {
	defer panics.WithError()
	return c.env.Initial(in)
}

// initial returns the initial states of all observations, each of which must be the same alone.
func (c *checker) initial(x []*tensors.Tensor) (rows []string, ok bool) {
	n := x[0].Shape().Dim(0)
	state, err := CallOnceN(c.backend, c.start, x)
	if err != nil {
		c.broke(lawRun, "Initial: %v", err)
		return nil, false
	}
	if len(state) == 0 {
		c.broke(lawShape, "Initial returns no tensor")
		return nil, false
	}
	for i, t := range state {
		if t.Rank() == 0 || t.Shape().Dim(0) != n {
			c.broke(lawShape, "Initial returns %s as tensor %d, for %d observations", t.Shape(), i, n)
			return nil, false
		}
	}
	c.state = rowbytes.LayoutOf(state)
	rows = rowbytes.Of(state)
	for i := range min(n, singles) {
		alone, err := CallOnceN(c.backend, c.start, rowTensors(x, i))
		if err != nil {
			c.broke(lawRun, "Initial of one row: %v", err)
			return nil, false
		}
		if got := rowbytes.Of(alone)[0]; got != rows[i] {
			c.broke(lawRows, "Initial of row %d is %s in a batch of %d, and %s alone", i, c.show(rows[i]), n, c.show(got))
		}
	}
	return rows, c.count[lawRows] == 0
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
			c.broke(lawSteps, "actions form a cycle")
		}
		c.walked = true
		c.walk(initial, first[0])
	default:
		c.broke(lawRun, "%v", err)
	}
}

// show prints a state.
func (c *checker) show(row string) string {
	parts := make([]string, len(c.state))
	for i, t := range c.state.Join([]string{row}, 1) {
		v := fmt.Sprint(t.Value())
		parts[i] = v[1 : len(v)-1] // without the brackets of the batch axis
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// rowTensors returns row i of tensors that share a batch axis, as tensors of one row.
func rowTensors(ts []*tensors.Tensor, i int) []*tensors.Tensor {
	return rowbytes.LayoutOf(ts).Join(rowbytes.Of(ts)[i:i+1], 1)
}
