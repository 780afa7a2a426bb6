package induce

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/run"
)

// ReadGFlowNet returns the GFlowNet of a run's newest checkpoint, and the grammar that ReadGrammar returns. The run's data set is not
// needed. Close the parser at the end.
func ReadGFlowNet(b compute.Backend, r *run.Run) (*grammar.Grammar, *GFNParser, []string, error) {
	c, g, state, warnings, err := readRun(b, r)
	if err != nil {
		return nil, nil, warnings, err
	}
	if c.Method != GFN {
		return nil, nil, warnings, badinput.Errorf(
			"%s was trained by method %s and has no GFlowNet: train one with \"gfnem train grammar --method gfn\"",
			r.Dir(), c.Method)
	}
	p, err := c.network(b, state, len(g.Words))
	if err != nil {
		return nil, nil, warnings, badinput.Errorf("%s does not hold a GFlowNet that can be used: %w", r.Dir(), err)
	}
	return g, p, warnings, nil
}

// network makes the GFlowNet that a state of a training holds, for a vocabulary of so many words.
func (c *Config) network(b compute.Backend, state run.State, words int) (*GFNParser, error) {
	arrays := map[string]run.Array{}
	for name, a := range state.Arrays {
		if strings.HasPrefix(name, em.Phi+"/") {
			arrays[name] = a
		}
	}
	store := model.NewStore()
	if err := run.SetStore(store, arrays); err != nil {
		return nil, err
	}
	m := c.model(words)
	tables := func(g *Graph) grammar.Tables { return m.Tables(store.Scope(em.Theta), g) }
	net, err := newGFlowNet(program.NewSet(b, store), tables, words, c)
	if err != nil {
		return nil, err
	}
	if err := net.check(); err != nil {
		return nil, err
	}
	return newGFNParser(net), nil
}

// check compares the variables in the store with those of a new network of the same configuration, and looks for numbers that are not
// finite.
func (e *gflownet) check() error {
	fresh := model.NewStore()
	g := NewGraph(e.Set.Backend, "check")
	defer g.Finalize()
	words, lengths := Parameter(g, "words", shapes.Make(dtypes.Int32, 1, 2)), Parameter(g, "lengths", shapes.Make(dtypes.Int32, 1))
	e.LogZ(fresh.Scope(em.Phi), forest.Sentences{Words: words, Lengths: lengths}) // looks every variable up
	if have, want := e.Set.Store.NumVariables(), fresh.NumVariables(); have != want {
		return fmt.Errorf("its checkpoint has %d variables, its configuration needs %d", have, want)
	}
	for want := range fresh.IterVariables() {
		v := e.Set.Store.GetVariable(want.Path())
		if v == nil {
			return fmt.Errorf("variable %s is missing in its checkpoint", want.Path())
		}
		if !v.Shape().Equal(want.Shape()) {
			return fmt.Errorf("variable %s is of shape %s in its checkpoint, and %s in its configuration", v.Path(), v.Shape(), want.Shape())
		}
		if slices.ContainsFunc(widened(v.MustValue()), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			return errors.New("its parameters are not finite")
		}
	}
	return nil
}
