package em

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// wrong checks that an error names this file, and more.
func wrong(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	for _, w := range append(want, "check_test.go:") {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %v, want one with %q", what, err, w)
			return
		}
	}
}

// Numbers that cannot be meant are errors of New, which name its caller.
func TestSpecNumbers(t *testing.T) {
	b, nan := newBackend(t), math.NaN()
	noRate := func(scope string) optim.Optimizer { return optim.Optimizer{Groups: []optim.Group{{Scope: scope}}} }
	for _, c := range []struct {
		want string
		set  func(*Spec)
	}{
		{"Wake.Samples is -1", func(s *Spec) { s.Wake.Samples = -1 }},
		{"Wake.Explore.Beta.From is -0.5", func(s *Spec) { s.Wake.Explore.Beta = Linear{From: -0.5, To: 1} }},
		{"Wake.Explore.Beta.To is NaN", func(s *Spec) { s.Wake.Explore.Beta = Linear{From: 0.5, To: nan} }},
		{"Wake.Explore.Epsilon.From is 1.5", func(s *Spec) { s.Wake.Explore.Epsilon.From = 1.5 }},
		{"Wake.Explore.Epsilon.To is -0.1", func(s *Spec) { s.Wake.Explore.Epsilon = Linear{To: -0.1} }},
		{`Wake.Optimizer: group "/phi": it has no Rate`, func(s *Spec) { s.Wake.Optimizer = noRate(Phi) }},
		{`MStep.Optimizer: group "/theta": it has no Rate`, func(s *Spec) { s.MStep.Optimizer = noRate(Theta) }},
		{"MStep.Optimizer: ClipNorm is -1", func(s *Spec) { s.MStep.Optimizer.ClipNorm = -1 }},
		{"VarGrad.Samples is 3", func(s *Spec) { s.Wake.Samples, s.Wake.Objective = 4, gfn.VarGrad{Samples: 3} }},
		{"gfn.Likelihood is the loss of sleep", func(s *Spec) { s.Wake.Objective = gfn.Likelihood{} }},
		{"Sleep.Weight is -1", func(s *Spec) { s.Sleep = Sleep{Weight: -1, Batch: 2} }},
		{"Sleep.Weight is NaN", func(s *Spec) { s.Sleep = Sleep{Weight: nan, Batch: 2} }},
		{"Sleep.Batch, the number", func(s *Spec) { s.Sleep = Sleep{Weight: 1, Batch: -2} }},
		{"Sleep.Batch is -2", func(s *Spec) { s.Sleep = Sleep{Batch: -2} }},
		{"Sleep.Probability is 1.2", func(s *Spec) { s.Sleep = Sleep{Weight: 1, Batch: 2, Probability: 1.2} }},
		{"Sleep.Probability is -1", func(s *Spec) { s.Sleep = Sleep{Weight: 1, Batch: 2, Probability: -1} }},
		{"Drawn.Samples is -3", func(s *Spec) { s.MStep.Latents = Drawn{-3} }},
		{"Greedy.Probability is 2", func(s *Spec) { s.MStep.Latents = Greedy{2} }},
		{"Weighted.Samples is -1", func(s *Spec) { s.MStep.Latents = Weighted{-1} }},
		{"MStep.Moves makes others", func(s *Spec) { s.MStep.Latents, s.MStep.Moves = Weighted{2}, 1 }},
		{"a closed-form M-step has no place for weights", func(s *Spec) {
			s.MStep.Latents, s.MStep.ClosedForm = Weighted{2}, true
		}},
		{"MStep.Loss is one number for all latents", func(s *Spec) {
			s.MStep.Latents = Weighted{2}
			s.MStep.Loss = func(_ *model.Scope, x gfn.Batch, _ gfn.State, _ func() gfn.State) *Node { return x[0] }
		}},
		{"leave one of them out", func(s *Spec) {
			s.MStep.Loss = func(_ *model.Scope, x gfn.Batch, _ gfn.State, _ func() gfn.State) *Node { return x[0] }
			s.MStep.Objective = func(_ *model.Scope, x gfn.Batch, _ gfn.State, _ *Node, _ func() gfn.State) (*Node, []optim.Assignment) {
				return x[0], nil
			}
		}},
		{"a closed-form or stepwise M-step maximises log p(x,z)", func(s *Spec) {
			s.MStep.ClosedForm = true
			s.MStep.Loss = func(_ *model.Scope, x gfn.Batch, _ gfn.State, _ func() gfn.State) *Node { return x[0] }
		}},
		{"a closed-form or stepwise M-step maximises log p(x,z)", func(s *Spec) {
			s.MStep.ClosedForm = true
			s.MStep.Objective = func(_ *model.Scope, x gfn.Batch, _ gfn.State, _ *Node, _ func() gfn.State) (*Node, []optim.Assignment) {
				return x[0], nil
			}
		}},
		{"RWS needs two or more trajectories", func(s *Spec) { s.Wake.Objective = gfn.RWS{} }},
		{"VIMCO needs two or more trajectories", func(s *Spec) { s.Wake.Objective = gfn.VIMCO{} }},
		{"VIMCO.Samples is 2, and an observation has 4", func(s *Spec) {
			s.Wake.Samples, s.Wake.Objective = 4, gfn.VIMCO{Samples: 2}
		}},
		{"the gradient of HVI is right for on-policy", func(s *Spec) {
			s.Wake.Objective, s.Wake.Explore.Epsilon = gfn.HVI{}, Constant(0.1)
		}},
		{"the gradient of RWS is right for on-policy", func(s *Spec) {
			s.Wake.Samples, s.Wake.Objective, s.Wake.Explore.Epsilon = 2, gfn.RWS{}, Constant(0.1)
		}},
		{"the gradient of VIMCO is right for on-policy", func(s *Spec) {
			s.Wake.Samples, s.Wake.Objective, s.Wake.Explore.Beta = 2, gfn.VIMCO{}, Constant(0.5)
		}},
		{"VIMCO is right for on-policy trajectories only: leave out Wake.Replay", func(s *Spec) {
			s.Wake.Samples, s.Wake.Objective, s.Wake.Replay = 2, gfn.VIMCO{}, Replay{Size: 4, Batch: 2}
		}},
		{"MStep.Moves is -1", func(s *Spec) { s.MStep.Moves = -1 }},
		{"MStep.Kernel.MaxSteps is -1", func(s *Spec) { s.MStep.Moves, s.MStep.Kernel.MaxSteps = 1, -1 }},
		{"leave MStep.Kernel.How at zero", func(s *Spec) { s.MStep.Moves, s.MStep.Kernel.How.Greedy = 1, true }},
		{"Blocks.E is -1", func(s *Spec) { s.Gate = Blocks{E: -1} }},
		{"Blocks.M is -1", func(s *Spec) { s.Gate = Blocks{M: -1} }},
		{"Blocks.First is -1", func(s *Spec) { s.Gate = Blocks{First: -1} }},
		{"Blocks.Below is not a number", func(s *Spec) { s.Gate = Blocks{Below: nan} }},
		{"Adaptive.Decay is 1.1", func(s *Spec) { s.Gate = Adaptive{Decay: 1.1} }},
		{"Adaptive.Decay is 1:", func(s *Spec) { s.Gate = Adaptive{Decay: 1} }},
		{"Adaptive.Decay is -0.9", func(s *Spec) { s.Gate = Adaptive{Decay: -0.9} }},
		{"Adaptive.Threshold is not", func(s *Spec) { s.Gate = Adaptive{Threshold: Linear{From: nan}} }},
		{"Turns.Length is -2", func(s *Spec) { s.Gate = Turns{-2} }},
	} {
		spec := toySpec(tiny())
		c.set(&spec)
		l, err := New(b, model.NewStore(), spec)
		if l != nil {
			t.Errorf("%s: there is a learner", c.want)
		}
		wrong(t, c.want, err, c.want)
	}
}

// New never changes the seed that a store's variables start from, and learners start from what was asked for.
func TestSeeds(t *testing.T) {
	b := newBackend(t)
	seeded := func(store *model.Store, seed uint64) (*Learner, error) {
		spec := toySpec(newToy(3, dtypes.Float32))
		spec.Seed = seed
		return New(b, store, spec)
	}
	learned := func(store *model.Store, seed uint64) map[string]string {
		t.Helper()
		l, err := seeded(store, seed)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		steps(t, l, 2)
		return snapshot(t, store)
	}
	want := learned(nn.NewStore(7), 7)
	if d := changed(want, learned(model.NewStore(), 7)); d != nil {
		t.Errorf("in an empty store the seed of the Spec gives other %v", d)
	}
	if d := changed(want, learned(nn.NewStore(7), 0)); d != nil {
		t.Errorf("the seed of the store gives other %v", d)
	}
	if d := changed(learned(nn.NewStore(0), 0), learned(model.NewStore(), 0)); d != nil {
		t.Errorf("without a seed, or with a seed of 0, %v differ", d)
	}

	for name, c := range map[string]struct {
		store *model.Store
		want  string
	}{
		"another seed": {nn.NewStore(8), "starts its variables from 8"},
		"a seed of 0":  {nn.NewStore(0), "starts its variables from 0"},
		"no seed":      {withVariable(t, b), "the store has variables, but no seed"},
	} {
		before, seed := snapshot(t, c.store), seedOf(c.store)
		_, err := seeded(c.store, 7)
		wrong(t, name, err, "Spec.Seed is 7", c.want, "nn.NewStore(7)")
		if seedOf(c.store) != seed || changed(before, snapshot(t, c.store)) != nil {
			t.Errorf("%s: the store has changed", name)
		}
	}
}

func seedOf(s *model.Store) any {
	v, _ := s.RootScope().GetParam(nn.SeedParam)
	return v
}

// withVariable returns a store with a variable of a model and no seed.
func withVariable(t *testing.T, b compute.Backend) *model.Store {
	t.Helper()
	store := model.NewStore()
	if _, err := store.CreateVariable(Theta+"/prior", floats(dtypes.Float32, make([]float64, 6), 6)); err != nil {
		t.Fatal(err)
	}
	return store
}

// A scope that was mistyped is noticed: its variables would have the rate of the scope above.
func TestGroupsOwnVariables(t *testing.T) {
	b := newBackend(t)
	two := func(scope, below string) optim.Optimizer {
		o := adam(scope, optim.Rate{Base: 0.1})
		o.Groups = append(o.Groups, optim.Group{Scope: scope + below, Rate: optim.Rate{Base: 0.01}})
		return o
	}
	for below, good := range map[string]bool{"/flow": true, "/flow/": true, "/flwo": false} {
		spec := toySpec(newToy(3, dtypes.Float32))
		spec.Wake.Optimizer = two(Phi, below)
		if _, err := New(b, model.NewStore(), spec); !good {
			wrong(t, below, err, `Wake.Optimizer: there is no variable to train below the scope "/phi/flwo"`)
		} else if err != nil {
			t.Error(err)
		}
	}
	spec := toySpec(newToy(3, dtypes.Float32))
	spec.MStep.Optimizer = two(Theta, "/deep")
	_, err := New(b, model.NewStore(), spec)
	wrong(t, "M", err, `MStep.Optimizer: there is no variable to train below the scope "/theta/deep"`)
	spec.MStep.ClosedForm = true
	if _, err := New(b, model.NewStore(), spec); err != nil {
		t.Error(err)
	}
}

// Classical EM is as strict.
func TestClassicalChecks(t *testing.T) {
	b, m := newBackend(t), newToy(3, dtypes.Float32)
	noRate := optim.Optimizer{Groups: []optim.Group{{Scope: Theta}}}
	for want, set := range map[string]func(*Classical){
		"it needs a Model, an Env and Data": func(c *Classical) { c.Data = nil },
		"Posterior is 2, neither":           func(c *Classical) { c.Posterior = 2 },
		"Sweeps is -1":                      func(c *Classical) { c.Sweeps = -1 },
		"the sizes [2 0] of Env":            func(c *Classical) { c.Env = envs.Sequence{Sizes: []int{2, 0}} },
		"the Sequence of Env has no Sizes":  func(c *Classical) { c.Env = envs.Sequence{} },
		"those of envs.Hypergrid are not": func(c *Classical) {
			c.Env, c.Posterior = envs.Hypergrid{Side: 3, Dims: 2}, MeanField
		},
		"those of envs.Set are not": func(c *Classical) { c.Env, c.Posterior = envs.Set{Items: 4, Most: 2}, MeanField },
		"envs.Set has too many latents to list: 200 choices": func(c *Classical) {
			c.Env, c.Posterior = envs.Set{Items: 200}, MeanField
		},
		"envs.Set has too many latents to list: enumerate states: more states than 131072": func(c *Classical) {
			c.Env = envs.Set{Items: 17}
		},
		`Classical.Optimizer has a group "/phi"`:         func(c *Classical) { c.Optimizer = adam(Phi, optim.Rate{Base: 1}) },
		`Classical.Optimizer: group "/theta": it has no`: func(c *Classical) { c.Optimizer = noRate },
		"LogJoint is (Float32), not (floats)[48]":        func(c *Classical) { c.Model = summed{m} },
		"the batch of classical EM has no tensor":        func(c *Classical) { c.Data = Full() },
	} {
		c := Classical{Model: m, Env: m.env(), Data: Full(m.all())}
		set(&c)
		_, err := c.Train(b, nn.NewStore(1), 1)
		wrong(t, want, err, want)
	}
}

// summed is a model that sums over the rows.
type summed struct{ toy }

func (m summed) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	return ReduceAllSum(m.toy.LogJoint(theta, x, z))
}

// Objectives that compare trajectories compare those of one observation.
func TestComparedSamples(t *testing.T) {
	for _, c := range [][2]gfn.Objective{
		{gfn.RWS{}, gfn.RWS{Samples: 4}}, {gfn.VIMCO{}, gfn.VIMCO{Samples: 4}}, {gfn.VarGrad{}, gfn.VarGrad{Samples: 5}},
	} {
		spec := Spec{Wake: Wake{Objective: c[0], Samples: 4}}
		if _, ok := c[0].(gfn.VarGrad); ok {
			spec.Wake.Memory.Latents = 1
		}
		if got := spec.withDefaults().Wake.Objective; got != c[1] {
			t.Errorf("%T has become %+v, want %+v", c[0], got, c[1])
		}
	}
}
