package em

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/rows"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// host is a tensor outside of programs.
type host = *tensors.Tensor

// Posterior is q(z|x) as it has been learned: it draws latents of observations, says how probable they are, and weighs
// them, which estimates log p(x). It works with the variables of a store as they are at each call, and changes none.
//
// Observations are tensors that share their first axis, one row each, as Data supplies them (see Spec.Prepare). Latents
// are the tensors of terminal states of Env. Equal calls of an equal Posterior have equal results.
type Posterior struct {
	// Seed is that of all random numbers. NewPosterior sets it to that of the Spec or else to that of the store.
	Seed uint64
	// Rows is the greatest number of trajectories that a program makes at once; 0 means 1024. A program holds all their
	// states.
	Rows int
	// Paths is the number of backward paths over which LogProb averages where an object can have several; 0 means 256.
	Paths int
	// Buckets, if not nil, are lengths to which observations are cut.
	Buckets *Buckets

	g        *graphs
	programs *program.Set
	prepare  *program.Program[[]host, []host]
	draw     *program.Program[drawIn[host], drawnTensors]
	path     *program.Program[pathIn[host], pathTensors]
}

// NewPosterior returns the posterior whose variables are in a store that a learner of the same Spec has trained. Of the
// Spec it takes Model, Env, Policy, Prepare and Seed.
func NewPosterior(b compute.Backend, store *model.Store, spec Spec) (*Posterior, error) {
	if spec.Model == nil || spec.Env == nil || spec.Policy == nil {
		return nil, blame.Caller(fmt.Errorf("em: a posterior needs a Model, an Env and a Policy"))
	}
	if spec.Seed == 0 {
		spec.Seed = model.GetRootParamOr(store, nn.SeedParam, uint64(0))
	}
	s := program.NewSet(b, store)
	p := &Posterior{Seed: spec.Seed, g: newGraphs(spec.withDefaults(), s), programs: s}
	p.prepare = program.New[[]host, []host](s, "prepare", p.prepareGraph)
	p.draw = program.New[drawIn[host], drawnTensors](s, "draw from the posterior", p.drawGraph)
	p.path = program.New[pathIn[host], pathTensors](s, "paths to latents", p.pathGraph)
	return p, nil
}

// Posterior returns the posterior of the learner's variables, as they are at each of its calls.
func (l *Learner) Posterior() (*Posterior, error) {
	return NewPosterior(l.programs.Backend, l.programs.Store, l.spec)
}

// Close releases the compiled programs. Those that are needed again are compiled again.
func (p *Posterior) Close() { p.programs.Close() }

// Samples are latents drawn from the posterior, n for each observation.
type Samples struct {
	// Z are the latents: row b*n+i is sample i of observation b.
	Z []*tensors.Tensor
	// LogWeights are log p(x,z) + log P_B - log P_F of the trajectories, [observation][n]. The mean of their exponentials is
	// an unbiased estimate of p(x). One may be -Inf, of a latent that the model thinks impossible.
	LogWeights [][]float64
	// LogJoint is log p(x,z), [observation][n].
	LogJoint [][]float64
}

// Sample draws n latents of each observation, independently of each other.
func (p *Posterior) Sample(n int, x ...*tensors.Tensor) (Samples, error) {
	s, err := p.sample(n, x)
	if err != nil {
		return Samples{}, fmt.Errorf("sample the posterior: %w", err)
	}
	return s, nil
}

func (p *Posterior) sample(n int, x []*tensors.Tensor) (out Samples, err error) {
	all, err := p.batches(n, x)
	if err != nil {
		return out, err
	}
	latents := collector{observations: all.observations, n: n}
	out.LogWeights, out.LogJoint = make([][]float64, all.observations), make([][]float64, all.observations)
	return out, all.each(func(b batch) error {
		from := 0
		d := posteriorDraws{p, b, func(z []*tensors.Tensor, logJoint [][]float64) error {
			for i, r := range b.rows {
				out.LogJoint[r] = append(out.LogJoint[r], logJoint[i]...)
			}
			err := latents.put(z, b, from, len(logJoint[0]))
			out.Z, from = latents.z, from+len(logJoint[0])
			return err
		}}
		w, err := Draws{n, b.draws}.Weights(len(b.rows), d)
		for i := range w {
			out.LogWeights[b.rows[i]] = w[i]
		}
		return err
	})
}

// Greedy returns a latent of each observation that is reached by the most probable actions, one after the other. It need
// not be the most probable latent.
func (p *Posterior) Greedy(x ...*tensors.Tensor) ([]*tensors.Tensor, error) {
	all, err := p.batches(1, x)
	latents := collector{observations: all.observations, n: 1}
	if err == nil {
		err = all.each(func(b batch) error {
			in := drawIn[host]{true, 1, rng.Key(p.Seed, "posterior greedy", b.number), b.x}
			out, err := p.drawn(in, b)
			if err != nil {
				return err
			}
			return latents.put(out.Z, b, 0, 1)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("greedy latents of the posterior: %w", err)
	}
	return latents.z, nil
}

// drawIn is what latents are drawn for: each so many for an observation.
type drawIn[T any] struct {
	Greedy bool
	Each   int
	Key    T
	X      []T
}

// drawn are latents, and by latent the parts of its log-weight.
type drawn[L ~[]T, T, C any] struct {
	Z                        L
	LogJoint, Forward, Ratio T // log p(x,z), log P_F, log P_B - log P_F, [B*Each] float64
	Strays                   strays[C]
}

type (
	drawnTensors = drawn[[]host, host, int]
	drawnNodes   = drawn[gfn.State, *Node, *Node]
)

func (p *Posterior) drawGraph(in drawIn[*Node]) (out drawnNodes) {
	net, x := p.g.net(), gfn.Batch(in.X)
	start := p.start(x)
	u := p.g.encode(x).Repeat(in.Each)
	tr := net.Rollout(rng.In(in.Key), u, start.Repeat(in.Each), gfn.Behaviour{Greedy: in.Greedy})
	s := net.ScoreSampled(tr, gfn.Behaviour{})
	out.Z = tr.Last()
	out.LogJoint = double(p.g.logJoint(x.Repeat(in.Each), out.Z))
	out.Forward = ReduceSum(double(s.LogPF), 1)
	out.Ratio = ReduceSum(Sub(double(s.LogPB), double(s.LogPF)), 1)
	out.Strays.Unfinished = p.g.unfinished(out.Z)
	return out
}

// start is where trajectories for observations begin.
func (p *Posterior) start(x gfn.Batch) gfn.State {
	return blame.Rows(blame.Method(p.g.Env, "Initial"), p.g.Env.Initial(x), x.Size())
}

func double(x *Node) *Node { return ConvertDType(x, dtypes.Float64) }

// drawn calls the program and complains about what is none of a posterior.
func (p *Posterior) drawn(in drawIn[host], b batch) (out drawnTensors, err error) {
	err = p.unchanged(func() (err error) {
		out, err = p.draw.Call(in)
		return err
	})
	if err != nil {
		return out, err
	}
	forward, joint := numbers(out.Forward), numbers(out.LogJoint)
	for i := range forward {
		if f := forward[i]; math.IsNaN(f) || math.IsInf(f, 0) {
			return out, blame.Method(p.g.Policy, "Heads").Errorf(
				"gives a trajectory of observation %d the log-probability %g: the policy has diverged", b.row(i/in.Each), f)
		}
	}
	if err := p.g.err(out.Strays); err != nil {
		return out, err
	}
	for i := range joint {
		if l := joint[i]; math.IsNaN(l) || math.IsInf(l, 1) {
			return out, blame.Method(p.g.Model, "LogJoint").Errorf(
				"is %g for a latent of observation %d: the model has diverged", l, b.row(i/in.Each))
		}
	}
	return out, nil
}

// numbers copies a tensor of float64.
func numbers(t *tensors.Tensor) []float64 { return tensors.MustCopyFlatData[float64](t) }

// unchanged calls a program, which must find all its variables.
func (p *Posterior) unchanged(call func() error) error {
	known := map[string]bool{}
	for v := range p.g.store.IterVariables() {
		known[v.Path()] = true
	}
	err := call()
	var made []string
	for v := range p.g.store.IterVariables() {
		if !known[v.Path()] {
			made = append(made, v.Path())
		}
	}
	if made == nil {
		return err
	}
	p.programs.Close()
	for _, path := range made {
		if err := p.g.store.DeleteVariable(path); err != nil {
			return err
		}
	}
	return fmt.Errorf("the store has no variable %s: a posterior has those of a learner, in memory or as they were saved", made[0])
}

// collector gathers latents of all batches, n of each observation.
type collector struct {
	observations, n int
	z               []*tensors.Tensor
}

// put takes so many of the latents that a call has drawn for each observation of a batch, which are its latents from some
// number on.
func (c *collector) put(z []*tensors.Tensor, b batch, from, take int) error {
	if c.z == nil {
		width := 0
		for _, t := range z {
			width += int(t.ByteSize()) / t.Shape().Dim(0)
		}
		if err := memory.Need("the latents that are drawn", c.observations, c.n, width); err != nil {
			return err
		}
		c.z = rows.Empty(z, c.observations*c.n)
	}
	for i, t := range z {
		if have, want := t.Shape().Dimensions[1:], c.z[i].Shape().Dimensions[1:]; !slices.Equal(have, want) {
			return fmt.Errorf("latents of one bucket have rows of %v, of another %v: they may not depend on how long "+
				"observations are", want, have)
		}
	}
	draws := z[0].Shape().Dim(0) / b.size()
	rows.Put(c.z, z, func(row int) int {
		if i, k := row/draws, row%draws; i < len(b.rows) && k < take {
			return b.rows[i]*c.n + from + k
		}
		return -1
	})
	return nil
}
