package em

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
)

// checked returns what a learner finds about itself, which must not move it.
func checked(t *testing.T, spec Spec, x ...*tensors.Tensor) *Checked {
	t.Helper()
	l := newLearner(t, newBackend(t), spec)
	before := snapshot(t, l.Store())
	c, err := l.Check(x...)
	if err != nil {
		t.Fatal(err)
	}
	if moved := changed(before, snapshot(t, l.Store())); moved != nil || l.State() != (State{}) {
		t.Errorf("a check changes %v", moved)
	}
	var text strings.Builder
	if err := c.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if remarks := strings.Join(c.Remarks, "\n"); strings.Contains(remarks, "log p(x) is") {
		p, err := l.Posterior()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		e, err := p.LogLikelihood(weighed, x...)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("log p(x) is %.4g,", Summarise(e).LogP); !strings.Contains(remarks, want) {
			t.Errorf("remarks %q lack %q", remarks, want)
		}
	}
	for _, line := range append(c.Broken, c.Seen...) {
		if !strings.Contains(text.String(), line) {
			t.Errorf("it does not print %q", line)
		}
	}
	return c
}

// All parts of a right learner are looked at, whatever it is made of.
func TestCheckAccepts(t *testing.T) {
	specs := busySpecs(t)
	for _, like := range []string{"apart", "best", "kept"} { // the others
		delete(specs, like)
	}
	m, start := words{}, newToy(5, dtypes.Float64)
	specs["legal by observation"] = Spec{Model: m, Env: m.env(), Policy: reader{}, Data: Full(m.all()...), Seed: 5}
	stepwise := stepwiseSpec(t, start, 4, start.all())
	stepwise.Model = newCounted(start, 1e6)
	specs["stepwise"] = stepwise
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			c := checked(t, spec, spec.Data(0)...)
			all := strings.Join(c.Seen, "\n")
			for _, part := range []string{"environment: ", "model: sampled latents are terminal", "policy: ", "E-step: loss"} {
				if !strings.Contains(all, part) {
					t.Errorf("nothing about %q", part)
				}
			}
			remarks := strings.Join(c.Remarks, "\n")
			if !c.OK() || !strings.Contains(remarks, "log p(x) is") {
				t.Errorf("broken %q, remarks %q", c.Broken, c.Remarks)
			}
		})
	}
}

// careless is a policy with a fault.
type careless struct {
	tablePolicy
	fault string
}

func (p careless) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	n := s[0].Shape().Dim(0)
	switch p.fault {
	case "tile": // observation b belongs to row b+i*B
		all := make([]*Node, k)
		for i := range all {
			all[i] = x[0]
		}
		h := p.tablePolicy.Heads(phi, gfn.Batch{Concatenate(all, 0)}, s, 1)
		return h
	case "mean": // all rows see the mean of the batch
		h := p.tablePolicy.Heads(phi, x, s, k)
		mean := BroadcastToShape(InsertAxes(ReduceMean(h.Forward, 0), 0), h.Forward.Shape())
		h.Forward = Add(h.Forward, mean)
		return h
	case "nan":
		h := p.tablePolicy.Heads(phi, x, s, k)
		h.Flow = Log(AddScalar(ZerosLike(h.Flow), -1))
		return h
	}
	h := p.tablePolicy.Heads(phi, x, s, k)
	dead := MulScalar(nn.Param(phi, x[0].Graph(), p.dtype, "dead", 1, 1), 0)
	h.Forward = Add(h.Forward, BroadcastToDims(Reshape(dead), n, h.Forward.Shape().Dim(1)))
	return h
}

// backwards is an environment whose Back says another action than was taken.
type backwards struct{ gfn.Env }

func (e backwards) Redo(s gfn.State, b *Node) *Node { return Sub(OnesLike(b), e.Env.Redo(s, b)) }

// Every part finds its mistakes, and says where they are.
func TestCheckFinds(t *testing.T) {
	m := newToy(3, dtypes.Float32)
	x := func() *tensors.Tensor { return m.rows(1, 3, 6, 2, 1) }
	for _, c := range []struct {
		name, want string
		spec       func(*Spec)
	}{
		{"a swapped action", "environment: Redo(s, b) is legal", func(s *Spec) {
			two := m
			two.sizes, two.prior, two.emit = []int{2, 2}, m.prior[:4], m.emit[:12]
			s.Model, s.Env, s.Policy = two, backwards{two.env()}, tablePolicy{two}
		}},
		{"a non-terminal sample", "model: sampled latents are terminal states", func(s *Spec) {
			s.Model = odd{toy: m, pairs: func(x gfn.Batch, z gfn.State) (gfn.Batch, gfn.State) {
				return x, gfn.State{MulScalar(OnesLike(z[0]), envs.Unset)}
			}}
		}},
		{"LogJoint + 2|z|", "model: sampled pairs that occur again", func(s *Spec) {
			s.Model = forgets{plainToy{m}}
		}},
		{"1.05 LogJoint", "model: sampled ", func(s *Spec) {
			s.Model = odd{toy: m, joint: func(logP *Node) *Node { return MulScalar(logP, 1.05) }}
		}},
		{"two tensors", "Sample has observations of 1 tensors, and those of the data have 2", func(s *Spec) {
			s.Sleep = Sleep{Weight: 1, Batch: 4}
			s.Data, s.Prepare = Full(m.all()), func(data []*Node) gfn.Batch {
				return gfn.Batch{data[0], Zeros(data[0].Graph(), shapes.Make(dtypes.Float32, data[0].Shape().Dim(0)))}
			}
		}},
		{"tile", "all states of a trajectory at once", func(s *Spec) { s.Policy = careless{tablePolicy{m}, "tile"} }},
		{"mean", "Heads is ", func(s *Spec) { s.Policy = careless{tablePolicy{m}, "mean"} }},
		{"nan", "Heads is NaN", func(s *Spec) { s.Policy = careless{tablePolicy{m}, "nan"} }},
		{"a reward that is none", "E-step: its update is not finite", func(s *Spec) {
			s.Wake.Reward = func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
				return Log(AddScalar(m.LogJoint(theta, x, z), -100)) // of a negative number
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := toySpec(m)
			c.spec(&spec)
			got := checked(t, spec, x())
			if got.OK() || !strings.Contains(strings.Join(got.Broken, "\n"), c.want) {
				t.Errorf("got %q, want %q", got.Broken, c.want)
			}
		})
	}
	spec := toySpec(m)
	spec.Policy = careless{tablePolicy{m}, ""}
	if got := checked(t, spec, x()); !got.OK() || !strings.Contains(strings.Join(got.Remarks, "\n"), "as they are: /phi/dead") {
		t.Errorf("broken %q, remarks %q", got.Broken, got.Remarks)
	}
	l := newLearner(t, newBackend(t), toySpec(m))
	if _, err := l.Check(); err == nil || !strings.Contains(err.Error(), "laws_test.go:") {
		t.Errorf("without data: %v", err)
	}
}

// forgets is a model whose LogJoint has a term too much.
type forgets struct{ plainToy }

func (m forgets) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	return Add(m.plainToy.LogJoint(theta, x, z), MulScalar(ConvertDType(ReduceSum(z[0], 1), dtypes.Float32), 2))
}
