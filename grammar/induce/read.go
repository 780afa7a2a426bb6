package induce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// ReadGrammar returns the grammar of a run's newest checkpoint as a table, of the best state if the run keeps that,
// with a line for each newer checkpoint that is damaged. The run's data set is not needed. Nonterminals are named NT-1,
// NT-2, ..., and preterminals T-1, T-2, ...
//
// The trained parameters are widened before anything is computed of them, so that the table is that of the network in
// double precision, the same on all backends but for the last digits.
func ReadGrammar(b compute.Backend, r *run.Run) (*grammar.Grammar, []string, error) {
	_, g, _, warnings, err := readRun(b, r)
	return g, warnings, err
}

// ReadGFlowNet returns the GFlowNet of a run's newest checkpoint, and the grammar that ReadGrammar returns. The run's
// data set is not needed. Close the parser at the end.
func ReadGFlowNet(b compute.Backend, r *run.Run) (*grammar.Grammar, *parse.GFlowNet, []string, error) {
	c, g, state, warnings, err := readRun(b, r)
	if err != nil {
		return nil, nil, warnings, err
	}
	if c.Method != GFN {
		return nil, nil, warnings, badinput.Errorf(
			"%s was trained by method %s and has no GFlowNet: train one with %s",
			r.Dir(), c.Method, self.Command("train grammar --method gfn"))
	}
	p, err := c.readNetwork(b, state, g)
	if err != nil {
		return nil, nil, warnings, badinput.Errorf(
			"%s does not hold a GFlowNet that can be used at step %d: %w", r.Dir(), state.Step, err)
	}
	return g, p, warnings, nil
}

// readNetwork makes the GFlowNet that a state of a training holds, for its grammar.
func (c *Config) readNetwork(b compute.Backend, state run.State, g *grammar.Grammar) (*parse.GFlowNet, error) {
	store := model.NewStore()
	sampler, err := c.newSampler(program.NewSet(b, store), setFixed(store, g), len(g.Words))
	if err != nil {
		return nil, err
	}
	if err := sampler.Flow.Declare(shortest()); err != nil {
		return nil, err
	}
	arrays, err := run.StoreArrays(store)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(arrays, func(path string, _ run.Array) bool { return strings.HasPrefix(path, em.Phi+"/") })
	maps.Copy(arrays, run.Below(state.Arrays, em.Phi))
	if err := run.SetStore(store, arrays); err != nil {
		return nil, err
	}
	return parse.NewGFlowNet(sampler, c.batches()), nil
}

// readRun returns the configuration of a run, and the grammar and all else of its newest checkpoint.
func readRun(b compute.Backend, r *run.Run) (c Config, g *grammar.Grammar, state run.State, warnings []string, err error) {
	if task := r.Info().Task; task != (Task{}).Name() {
		return c, nil, state, nil, badinput.Errorf("%s is a run of the task %q, which learns no grammar", r.Dir(), task)
	}
	c = PaperConfig() // a key that run.toml does not have, since its version was an earlier one, is as published
	if err := config.Resolve(&c, config.File(filepath.Join(r.Dir(), "run.toml"))); err != nil {
		return c, nil, state, nil, err
	}
	state, warnings, err = r.Load()
	if err != nil {
		return c, nil, state, warnings, err
	}
	if err = bestOf(&state); err == nil {
		g, err = c.table(b, state)
	}
	if err != nil {
		err = badinput.Errorf("%s does not hold a grammar that can be used at step %d: %w", r.Dir(), state.Step, err)
	} else {
		c.adopt(g)
		g.Prepared, err = c.preparation(r)
	}
	return c, g, state, warnings, err
}

// table computes the probabilities that a state of a training stands for.
func (c *Config) table(b compute.Backend, state run.State) (*grammar.Grammar, error) {
	var saved counters
	if err := state.Rest(&saved); err != nil {
		return nil, err
	}
	if _, err := treebank.NewVocabulary(saved.Words); err != nil {
		return nil, err
	}
	if c.Fixed != "" {
		return fixedTable(state, saved)
	}
	m := c.model(len(saved.Words))
	set, _, err := tablesOf(b, m)
	if err != nil {
		return nil, err
	}
	if err := run.SetStore(set.Store, run.Below(state.Arrays, em.Theta)); err != nil {
		return nil, err
	}
	arrays, err := run.StoreArrays(set.Store)
	if err != nil {
		return nil, err
	}
	for path, a := range arrays {
		arrays[path] = widen(a)
	}
	m.DType = dtypes.Float64
	set, tables, err := tablesOf(b, m)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	if err := run.SetStore(set.Store, arrays); err != nil {
		return nil, err
	}
	made, err := tables.Call(struct{}{})
	if err != nil {
		return nil, err
	}
	g := grammar.New(m.Kind, numberedNames("NT-", m.Nonterminals), numberedNames("T-", m.Preterminals), saved.Words)
	if err := g.SetLogProbs(made); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(slices.Concat(g.Root, g.Rules, g.Emit), math.IsNaN) {
		return nil, errors.New("its parameters are not finite")
	}
	return g, nil
}

func numberedNames(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i+1)
	}
	return names
}

// tablesOf prepares the program that makes the tables of a grammar, with the variables that it needs.
func tablesOf(b compute.Backend, m grammar.Neural) (
	set *program.Set, tables *program.Program[struct{}, grammar.LogProbTensors], err error,
) {
	type nodes struct{ Graph *Graph }
	set = program.NewSet(b, model.NewStore())
	tables = program.New[struct{}, grammar.LogProbTensors](set, "tables", func(in nodes) grammar.LogProbs {
		return m.LogProbs(set.Store.Scope(em.Theta), in.Graph)
	})
	return set, tables, tables.Declare(struct{}{})
}

// widen turns an array of float32 into one of float64.
func widen(a run.Array) run.Array {
	out := run.Array{DType: "F64", Shape: a.Shape, Data: make([]byte, 0, 2*len(a.Data))}
	for at := 0; at+4 <= len(a.Data); at += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(a.Data[at:]))
		out.Data = binary.LittleEndian.AppendUint64(out.Data, math.Float64bits(float64(v)))
	}
	return out
}
