package induce

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/panics"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// theta is the scope of the grammar's variables.
const theta = "/theta"

// programs are the compiled computations of a training. Each is compiled again for every length of batches.
type programs struct {
	store     *model.Store
	optimizer optim.Optimizer
	marginal  *model.Exec // rates, words, lengths
	exact     *model.Exec // rates, words, lengths, key
	trees     *model.Exec // rates, words, lengths, left, right, label
	forests   *model.Exec // rates, words, lengths, forests of one tree each
	values    *model.Exec // words, lengths: the potentials
}

func newPrograms(b compute.Backend, store *model.Store, m grammar.Neural, c *Config) (*programs, error) {
	p := &programs{store: store, optimizer: optim.Optimizer{
		ClipNorm: c.Clip,
		Groups: []optim.Group{{Scope: theta, Rule: optim.Adam{Beta1: c.Beta1, Beta2: c.Beta2}, Rate: optim.Rate{
			Base: c.LR, Warmup: uint64(c.Warmup),
			Drops: []optim.Drop{{Step: uint64(c.Warmup), Factor: c.FinalLR}},
			Fall:  optim.Fall{From: uint64(c.Updates / 4), To: uint64(c.Updates), End: c.Decay},
		}}},
	}}
	potentials := func(in []*Node) grammar.Potentials {
		return m.Tables(store.Scope(theta), in[0].Graph()).For(in[0], in[1])
	}
	update := func(logP func(in []*Node) *Node) func(in []*Node) []*Node {
		return func(in []*Node) []*Node {
			loss := Neg(ReduceAllMean(logP(in[1:])))
			r := p.optimizer.Minimize(store, loss, in[0])
			return []*Node{numbers(loss, r.GradNorm, r.OK)}
		}
	}
	var err error
	build := func(to **model.Exec, f func(in []*Node) []*Node) {
		if err == nil {
			*to, err = compile(b, store, f)
		}
	}
	build(&p.marginal, update(func(in []*Node) *Node { return grammar.LogLikelihood(potentials(in)) }))
	build(&p.exact, update(func(in []*Node) *Node {
		q := potentials(in)
		s := q.Sample(rng.In(in[2]))
		if c.Tags {
			return q.LogDerivation(s.Trees, s.Tags)
		}
		return q.LogTree(s.Trees)
	}))
	build(&p.trees, update(func(in []*Node) *Node {
		return potentials(in).LogTree(grammar.Trees{Left: in[2], Right: in[3], Label: in[4]})
	}))
	build(&p.forests, update(func(in []*Node) *Node {
		return potentials(in).LogTree(forest.FromState(gfn.State(in[2:])).Trees())
	}))
	build(&p.values, func(in []*Node) []*Node {
		q := potentials(in)
		return []*Node{q.Root, q.Rules, q.Terms}
	})
	return p, err
}

// compile prepares a program, which is compiled when it is first called, once for each shape of its arguments.
func compile(b compute.Backend, store *model.Store, f func(in []*Node) []*Node) (*model.Exec, error) {
	e, err := model.NewExec(b, store, func(_ *model.Scope, in []*Node) []*Node {
		defer panics.WithError()
		return f(in)
	})
	if err == nil {
		e.SetMaxCache(-1)
	}
	return e, err
}

func (p *programs) close() {
	for _, e := range []*model.Exec{p.marginal, p.exact, p.trees, p.forests, p.values} {
		if e != nil {
			e.Finalize()
		}
	}
}

// update runs one of the programs that change the grammar.
func (p *programs) update(e *model.Exec, step uint64, b batch, more ...any) (em.Update, error) {
	args := append([]any{p.optimizer.Rates(step), b.words, b.lengths}, more...)
	out, err := e.Call(args...)
	if err != nil {
		return em.Update{}, fmt.Errorf("update %d: %w", step, err)
	}
	v := tensors.MustCopyFlatData[float32](out[0])
	return em.Update{Loss: float64(v[0]), GradNorm: float64(v[1]), OK: v[2] != 0}, nil
}

// numbers makes one tensor of scalars, so that the host reads, and waits, once.
func numbers(scalars ...*Node) *Node {
	out := make([]*Node, len(scalars))
	for i, x := range scalars {
		out[i] = Reshape(ConvertDType(x, dtypes.Float32), 1)
	}
	return Concatenate(out, 0)
}
