package em

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// begun makes a learner and its first iterations, and returns what fails.
func begun(t *testing.T, b compute.Backend, spec Spec) error {
	t.Helper()
	l, err := New(b, model.NewStore(), spec)
	if err != nil {
		return err
	}
	defer l.Close()
	for range 2 {
		if _, err := l.Step(); err != nil {
			return err
		}
	}
	return nil
}

// odd is a model whose answers a test changes.
type odd struct {
	toy
	joint func(*Node) *Node
	pairs func(gfn.Batch, gfn.State) (gfn.Batch, gfn.State)
	best  func([]*model.Variable, []*Node) ([]*model.Variable, []*Node)
}

func (m odd) LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	logP := m.toy.LogJoint(scope, x, z)
	if m.joint != nil {
		logP = m.joint(logP)
	}
	return logP
}

func (m odd) Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	x, z := m.toy.Sample(scope, r, n)
	if m.pairs != nil {
		x, z = m.pairs(x, z)
	}
	return x, z
}

func (m odd) Maximize(scope *model.Scope, x gfn.Batch, z gfn.State) ([]*model.Variable, []*Node) {
	vars, values := m.toy.Maximize(scope, x, z)
	if m.best != nil {
		vars, values = m.best(vars, values)
	}
	return vars, values
}

// seer encodes, and has a log Z of its own.
type seer struct {
	tablePolicy
	rows, z func(*Node) *Node
}

func (p seer) Encode(_ *model.Scope, x gfn.Batch) gfn.Batch { return gfn.Batch{p.rows(x[0])} }

func (p seer) LogZ(_ *model.Scope, x gfn.Batch) *Node {
	return p.z(Zeros(x[0].Graph(), shapes.Make(p.dtype, x.Size())))
}

// loss is an objective.
type loss func(*Node) *Node

func (f loss) Loss(p gfn.Path) *Node { return f(gfn.TB{}.Loss(p)) }

// Whatever a user's function returns in another shape than is stated is an error that names the function.
func TestShapesOfFunctions(t *testing.T) {
	b := newBackend(t)
	same := func(x *Node) *Node { return x }
	total := func(x *Node) *Node { return ReduceAllSum(x) }
	mean := func(x *Node) *Node { return ReduceAllMean(x) }
	column := func(x *Node) *Node { return InsertAxes(x, 1) }
	first := func(x *Node) *Node { return SliceAxis(x, 0, AxisRange(0, 1)) }
	whole := func(x *Node) *Node { return ConvertDType(x, dtypes.Int32) }
	ofScope := func(f func(*Node) *Node) func(*model.Scope, gfn.Batch, gfn.State) *Node {
		m := newToy(3, dtypes.Float32)
		return func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node { return f(m.LogJoint(theta, x, z)) }
	}
	asleep := Sleep{Weight: 1, Batch: 4}
	for want, set := range map[string]func(*Spec, *odd){
		"LogJoint is (Float32), not (floats)[8]":       func(_ *Spec, m *odd) { m.joint = mean },
		"LogJoint is (Float32)[8, 1], not (floats)[8]": func(_ *Spec, m *odd) { m.joint = column },
		"LogJoint is (Float32)[1], not (floats)[8]":    func(_ *Spec, m *odd) { m.joint = first },
		"LogJoint is (Int32)[8], not (floats)[8]":      func(_ *Spec, m *odd) { m.joint = whole },
		"LogJoint is nil":                              func(_ *Spec, m *odd) { m.joint = func(*Node) *Node { return nil } },
		"LogJoint is (Float32), not (floats)[24]": func(s *Spec, m *odd) {
			s.Wake.Reward = ofScope(same)
			s.MStep.Latents = Drawn{3}
			m.joint = mean
		},
		"Wake.Reward is (Float32), not (floats)[16]": func(s *Spec, _ *odd) {
			s.Wake.Samples, s.Wake.Reward = 2, ofScope(total)
		},
		"Wake.Reward is (Float32)[8, 1], not (floats)[8]": func(s *Spec, _ *odd) {
			s.Sleep, s.MStep.Moves, s.Wake.Reward = Sleep{Weight: 1, Batch: 4, Alone: true}, 1, ofScope(column)
		},
		"Wake.Partial is (Float32)[8], not (floats)[24]": func(s *Spec, _ *odd) {
			s.Wake.Objective = gfn.SubTB{}
			s.Wake.Partial = func(_ *model.Scope, x gfn.Batch, _ gfn.State, k int) *Node { return ReduceSum(x[0], 1) }
		},
		"MStep.Loss is (Float32)[8], not (floats)": func(s *Spec, _ *odd) {
			s.MStep.Loss = func(theta *model.Scope, x gfn.Batch, z gfn.State, _ func() gfn.State) *Node {
				return ofScope(same)(theta, x, z)
			}
		},
		"Loss is (Float32), not (floats)[8]":    func(s *Spec, _ *odd) { s.Wake.Objective = loss(mean) },
		"Loss is (Float32)[8, 1], not (floats)": func(s *Spec, _ *odd) { s.Wake.Objective = loss(column) },
		"Sample.x has (Float32)[1, 3] as tensor 0, not 4 rows": func(s *Spec, m *odd) {
			s.Sleep = asleep
			m.pairs = func(x gfn.Batch, z gfn.State) (gfn.Batch, gfn.State) { return gfn.Batch{first(x[0])}, z }
		},
		"Sample.x has no tensor": func(s *Spec, m *odd) {
			s.Sleep = asleep
			m.pairs = func(x gfn.Batch, z gfn.State) (gfn.Batch, gfn.State) { return nil, z }
		},
		"Sample.z has (Float32)[4, 2] as tensor 0, not (Int32)[4, 2]": func(s *Spec, m *odd) {
			s.Sleep = asleep
			m.pairs = func(x gfn.Batch, z gfn.State) (gfn.Batch, gfn.State) {
				return x, gfn.State{ConvertDType(z[0], dtypes.Float32)}
			}
		},
		"Sample.z has 2 tensors, not 1": func(s *Spec, m *odd) {
			s.Sleep = asleep
			m.pairs = func(x gfn.Batch, z gfn.State) (gfn.Batch, gfn.State) { return x, gfn.State{z[0], z[0]} }
		},
		"Maximize has 2 variables and 1 values": func(s *Spec, m *odd) {
			s.MStep.ClosedForm = true
			m.best = func(v []*model.Variable, x []*Node) ([]*model.Variable, []*Node) { return v, x[:1] }
		},
		"Maximize./theta/prior is (Float32), not (Float32)[6]": func(s *Spec, m *odd) {
			s.MStep.ClosedForm = true
			m.best = func(v []*model.Variable, x []*Node) ([]*model.Variable, []*Node) { return v[:1], []*Node{total(x[0])} }
		},
		"Encode has (Float32)[1, 3] as tensor 0, not 8 rows": func(s *Spec, m *odd) {
			s.Policy = seer{tablePolicy{m.toy}, first, same}
		},
		"LogZ is (Float32), not (Float32)[8]": func(s *Spec, m *odd) { s.Policy = seer{tablePolicy{m.toy}, same, total} },
		"Prepare has no tensor":               func(s *Spec, _ *odd) { s.Prepare = func([]*Node) gfn.Batch { return nil } },
		"Prepare has (Float32)[1, 3] as tensor 1, not 8 rows": func(s *Spec, _ *odd) {
			s.Prepare = func(x []*Node) gfn.Batch { return gfn.Batch{x[0], first(x[0])} }
		},
		"Data has no tensor": func(s *Spec, _ *odd) { s.Data = func(uint64) []*tensors.Tensor { return nil } },
		"Data has (Float32)[4] as tensor 1, not 8 rows": func(s *Spec, m *odd) {
			x := []*tensors.Tensor{m.all(), tensors.FromValue([]float32{1, 2, 3, 4})}
			s.Data = func(uint64) []*tensors.Tensor { return x }
		},
	} {
		m := odd{toy: newToy(3, dtypes.Float32)}
		spec := toySpec(m.toy)
		set(&spec, &m)
		spec.Model = m
		err := begun(t, b, spec)
		if err == nil || !strings.Contains(err.Error(), "functions_test.go:") || !strings.Contains(err.Error(), ": "+want) {
			t.Errorf("error %v, want one at a line of functions_test.go with %q", err, want)
		}
	}
	spec := toySpec(newToy(3, dtypes.Float32))
	spec.Model = odd{toy: newToy(3, dtypes.Float32)}
	spec.Policy = seer{tablePolicy{newToy(3, dtypes.Float32)}, same, same}
	if err := begun(t, b, spec); err != nil {
		t.Errorf("what is right fails: %v", err)
	}
}

// short is a sequence that says it takes fewer actions than it does.
type short struct{ envs.Sequence }

func (e short) Steps() int { return e.Sequence.Steps() - 1 }

// Latents that are none are errors of the first batch, however they were made.
func TestStrays(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	alone := Sleep{Weight: 1, Batch: 5, Alone: true}
	for name, c := range map[string]struct {
		set  func(*Spec, *odd)
		want string
	}{
		"wake":           {func(s *Spec, _ *odd) {}, "Steps is 1, and 8 drawn latents are not terminal"},
		"wake and sleep": {func(s *Spec, _ *odd) { s.Sleep = Sleep{Weight: 1, Batch: 5} }, "Steps is 1, and 8 drawn"},
		"M-step, Greedy": {func(s *Spec, _ *odd) {
			s.Gate, s.MStep.Latents = Turns{2}, Greedy{}
		}, "Steps is 1, and 8 drawn"},
		"wake and M-step": {func(s *Spec, _ *odd) {
			s.Wake.Samples, s.MStep.Latents = 2, BestOfWake{}
		}, "Steps is 1, and 16 drawn"},
		"sleep": {func(s *Spec, _ *odd) {
			s.Sleep, s.Gate = alone, Never
		}, "Steps is 1, and 5 of 5 dreamt latents are not that near"},
		"dreams": {func(s *Spec, m *odd) {
			s.Sleep, s.Env = alone, m.env()
			m.pairs = func(x gfn.Batch, z gfn.State) (gfn.Batch, gfn.State) {
				return x, gfn.State{AddScalar(z[0], -1)} // zeros become unset
			}
		}, "Sample has 2 latents of 5 that are no terminal states"},
	} {
		model := odd{toy: m}
		spec := toySpec(m)
		spec.Env = short{m.env()}
		c.set(&spec, &model)
		spec.Model = model
		err := begun(t, b, spec)
		if err == nil || !strings.Contains(err.Error(), "functions_test.go:") || !strings.Contains(err.Error(), ": "+c.want) {
			t.Errorf("%s: error %v, want one at a line of functions_test.go with %q", name, err, c.want)
		}
	}
}

// crowds are sets of which a model may dream larger ones than can be built.
type crowds struct{ size int }

func (m crowds) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	w := nn.Param(theta, x[0].Graph(), dtypes.Float32, "w", 0.1, 4, 1)
	return Squeeze(Dot(Add(x[0], ConvertDType(z[0], dtypes.Float32)), w).Product(), 1)
}

// Sample draws sets of two elements, and of size ones in every third row.
func (m crowds) Sample(_ *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	shape := shapes.Make(dtypes.Int32, n, 4)
	item, row := Iota(r.State().Graph(), shape, 1), Iota(r.State().Graph(), shape, 0)
	size := AddScalar(MulScalar(ConvertDType(IsZero(modulo(row, 3)), dtypes.Int32), m.size-2), 2)
	return gfn.Batch{r.Uniform(dtypes.Float32, n, 4)}, envs.Set{Items: 4}.Of(LessThan(item, size))
}

func (m crowds) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	w := nn.Param(phi, x[0].Graph(), dtypes.Float32, "w", 0.1, 4, 5)
	return gfn.Heads{Forward: Dot(Add(x.Repeat(k)[0], ConvertDType(s[0], dtypes.Float32)), w).Product()}
}

// Dreams that no legal actions build are errors of the first sleep phase and of a calibration, whatever they look like.
func TestIllegalDreams(t *testing.T) {
	b := newBackend(t)
	for _, how := range []Sleep{{Weight: 1, Batch: 6}, {Weight: 1, Batch: 6, Apart: true}, {Weight: 1, Batch: 6, Alone: true}} {
		for size, want := range map[int]string{2: "", 3: "Sample has 2 latents of 6 that legal actions of envs.Set do not build"} {
			m := crowds{size}
			spec := Spec{
				Model: m, Policy: m, Env: envs.Set{Items: 4, Most: 2}, Seed: 1, Sleep: how,
				Wake: Wake{Samples: 2, Objective: gfn.VarGrad{}},
				Data: Full(tensors.FromShape(shapes.Make(dtypes.Float32, 3, 4))),
			}
			l := newLearner(t, b, spec)
			_, err := l.Step()
			misplaced(t, err, want)
			p, err := l.Posterior()
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Calibrate(Calibrate{Pairs: 6, Samples: 15})
			misplaced(t, err, want)
			p.Close()
		}
	}
	// A token that its position cannot take makes a sequence that looks finished.
	m := newToy(3, dtypes.Float32)
	spec := toySpec(m)
	spec.Sleep = Sleep{Weight: 1, Batch: 6}
	spec.Model = odd{toy: m, pairs: func(x gfn.Batch, z gfn.State) (gfn.Batch, gfn.State) {
		return x, gfn.State{AddScalar(z[0], 3)}
	}}
	misplaced(t, begun(t, b, spec), "Sample has 6 latents of 6 that legal actions of envs.Sequence do not build")
}

// misplaced checks an error at a line of this file; none is wanted if the text is empty.
func misplaced(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err == nil {
		return
	}
	if want == "" || err == nil || !strings.Contains(err.Error(), "functions_test.go:") || !strings.Contains(err.Error(), ": "+want) {
		t.Errorf("error %v, want one at a line of functions_test.go with %q", err, want)
	}
}

// A probability of 0 is said to be one, with the number of rows, and not taken for a rate that is too large.
func TestImpossible(t *testing.T) {
	b := newBackend(t)
	// In the first rows of the batch log p(x,z) is v.
	spoilt := func(rows int, v float64) func(*Node) *Node {
		return func(logP *Node) *Node {
			g := logP.Graph()
			row := Iota(g, shapes.Make(dtypes.Int32, logP.Shape().Size()), 0)
			return Where(LessThan(row, Const(g, int32(rows))), Scalar(g, logP.DType(), v), logP)
		}
	}
	for name, c := range map[string]struct {
		set  func(*Spec, *odd)
		want string
	}{
		"E": {func(_ *Spec, m *odd) { m.joint = spoilt(3, math.Inf(-1)) }, "; " +
			"log p(x,z), or Wake.Reward, is -Inf in 3 of 8 rows"},
		"VarGrad": {func(s *Spec, m *odd) {
			s.Wake.Objective, s.Wake.Samples, m.joint = gfn.VarGrad{}, 2, spoilt(5, math.Inf(-1))
		}, "is -Inf in 5 of 16 rows"},
		"M": {func(s *Spec, m *odd) {
			s.Wake.Reward = func(_ *model.Scope, x gfn.Batch, _ gfn.State) *Node { return ReduceSum(x[0], 1) }
			m.joint = spoilt(2, math.Inf(-1))
		}, "; log p(x,z) is -Inf in 2 of 8 rows"},
		"best": {func(s *Spec, m *odd) {
			s.MStep.Latents, s.Wake.Samples, m.joint = BestOfWake{}, 2, spoilt(16, math.Inf(-1))
		}, "is -Inf in 16 of 16 rows"},
		"NaN":      {func(_ *Spec, m *odd) { m.joint = spoilt(4, math.NaN()) }, "is NaN or +Inf in 4 of 8 rows"},
		"infinite": {func(_ *Spec, m *odd) { m.joint = spoilt(1, math.Inf(1)) }, "is NaN or +Inf in 1 of 8 rows"},
		"own loss": {func(s *Spec, m *odd) {
			s.MStep.Loss = func(theta *model.Scope, x gfn.Batch, z gfn.State, _ func() gfn.State) *Node {
				return MulScalar(ReduceAllSum(m.toy.LogJoint(theta, x, z)), math.Inf(1))
			}
		}, "try a smaller learning rate"},
	} {
		m := odd{toy: newToy(3, dtypes.Float32)}
		spec := toySpec(m.toy)
		c.set(&spec, &m)
		spec.Model = m
		l := newLearner(t, b, spec)
		steps(t, l, 4)
		_, err := l.Step()
		if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "learning rate") != strings.Contains(c.want, "learning rate") {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}

	// Good updates say how many rows they had.
	l := newLearner(t, b, toySpec(newToy(3, dtypes.Float32)))
	if r := steps(t, l, 1); r.Wake.Scores != (Scores[int]{Rows: 8}) || r.M.Scores != r.Wake.Scores {
		t.Errorf("a good iteration reports %+v, %+v", r.Wake, r.M)
	}
}

// Batches may have any number of shapes; each is compiled once.
func TestManyShapes(t *testing.T) {
	b := newBackend(t)
	m := tiny()
	var batches []*tensors.Tensor
	for i := range 40 {
		batches = append(batches, m.rows(make([]int, 1+i)...))
	}
	spec := toySpec(m)
	spec.Data = func(step uint64) []*tensors.Tensor { return batches[step%40 : step%40+1] }
	l := newLearner(t, b, spec)
	for i := range 2 * len(batches) {
		if r := steps(t, l, 1); r.Wake.Scores.Rows != 1+i%len(batches) || !r.M.OK {
			t.Fatalf("iteration %d: %+v, %+v", i, r.Wake, r.M)
		}
	}
	c := Classical{Model: m, Env: m.env(), Data: spec.Data}
	if _, err := c.Train(b, nn.NewStore(1), uint64(len(batches))); err != nil {
		t.Error(err)
	}
}
