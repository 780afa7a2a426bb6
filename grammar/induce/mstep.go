package induce

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// mStep updates the grammar: on the trees that an E-step hands on; else on all trees, or on exact samples.
type mStep struct {
	*Config
	optimizer optim.Optimizer
	program   *program.Program[mArgs, em.Update]
}

var _ em.MStepper[parse.Padded, latents] = mStep{}

type (
	// mIn has a key for exact samples, trees, or neither for all trees.
	mIn[T, L, S, Z, F any] struct {
		Rates     L
		Sentences S
		Key       T
		Trees     *Z
		Forests   *F
	}
	mArgs  = mIn[*tensors.Tensor, []float32, forest.SentenceTensors, grammar.TreeTensors, forest.ForestTensors]
	mNodes = mIn[*Node, *Node, forest.Sentences, grammar.Trees, forest.Forest]
)

func newMStep(set *program.Set, tables func(*Graph) grammar.LogProbs, c *Config) mStep {
	o := c.Optim.Theta
	return newMStepBy(set, tables, c, optim.Optimizer{
		ClipNorm: c.Optim.Clip, Groups: []optim.Group{c.group(em.Theta, o.Rate, o.Beta1, o.Beta2, o.End)},
	})
}

func newMStepBy(set *program.Set, tables func(*Graph) grammar.LogProbs, c *Config, o optim.Optimizer) mStep {
	m := mStep{Config: c, optimizer: o}
	m.program = program.New[mArgs, em.Update](set, "M-step", func(in mNodes) em.UpdateNodes {
		q := tables(in.Rates.Graph()).For(in.Sentences.Words, in.Sentences.Lengths)
		loss := Neg(ReduceAllMean(m.logP(q, in)))
		return em.Updated(loss, m.optimizer.Minimize(set.Store, loss, in.Rates))
	})
	return m
}

// logP is what is raised: [B], or [B*samples].
func (m mStep) logP(q grammar.Potentials, in mNodes) *Node {
	switch {
	case in.Forests != nil:
		return m.logTrees(q, in.Forests.Trees(), nil)
	case in.Trees != nil:
		return m.logTrees(q, *in.Trees, nil)
	case in.Key == nil:
		return grammar.LogLikelihood(q)
	}
	s := q.Samples(rng.In(in.Key), m.MStep.Samples)
	return m.logTrees(q.Repeat(m.MStep.Samples), s.Trees, s.Tags)
}

// logTrees is the log-probability of trees with what is collapsed summed out. Tags may be nil if they are.
func (m mStep) logTrees(q grammar.Potentials, z grammar.Trees, tags *Node) *Node {
	switch m.collapse() {
	case Labels:
		return q.LogShape(z)
	case Tags:
		return q.LogTree(z)
	}
	return q.LogDerivation(z, tags)
}

// Maximize implements em.MStepper.
func (m mStep) Maximize(at em.Moment, b parse.Padded, z latents) (em.Maximization, error) {
	in := mArgs{Rates: m.optimizer.Rates(at.M), Sentences: b.SentenceTensors, Trees: z.Trees, Forests: z.Forests}
	if m.Method == Exact {
		in.Key = rng.Key(m.Seed, "grammar/sample", at.M)
	}
	out, err := m.program.Call(in)
	return em.NewMaximization(out), err
}
