package induce

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
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
	program   *program.Program[mArgs, mResult]
}

var _ em.MStepper[parse.Padded, latents] = mStep{}

type (
	// mIn has a key for exact samples, trees, or neither for all trees. A sentence with several trees is there as
	// often.
	mIn[T, L, S, Z, F any] struct {
		Rates     L
		Sentences S
		Key       T
		Trees     *Z
		Forests   *F
		LogW      T // of forests; nil if all count the same
	}
	mOut[U, T any] struct {
		Update U
		ESS    T // the mean effective sample size of the trees of a sentence
	}
	mArgs  = mIn[*tensors.Tensor, []float32, forest.SentenceTensors, grammar.TreeTensors, forest.ForestTensors]
	mNodes = mIn[*Node, *Node, forest.Sentences, grammar.Trees, forest.Forest]

	mResult = mOut[em.Update, float64]
)

func newMStep(set *program.Set, tables func(*Graph) grammar.LogProbs, c *Config) mStep {
	o := c.Optim.Theta
	return newMStepBy(set, tables, c, optim.Optimizer{
		ClipNorm: c.Optim.Clip, Groups: []optim.Group{c.group(em.Theta, o.Rate, o.Beta1, o.Beta2, o.End)},
	})
}

func newMStepBy(set *program.Set, tables func(*Graph) grammar.LogProbs, c *Config, o optim.Optimizer) mStep {
	m := mStep{Config: c, optimizer: o}
	m.program = program.New[mArgs, mResult](set, "M-step", func(in mNodes) (out mOut[em.UpdateNodes, *Node]) {
		q := tables(in.Rates.Graph()).For(in.Sentences.Words, in.Sentences.Lengths)
		logP := m.logP(q, in)
		loss := Neg(ReduceAllMean(logP))
		out.ESS = OnesLike(loss)
		if in.LogW != nil {
			loss, out.ESS = weighted(logP, in.LogW, m.Wake.Samples)
		}
		out.Update = em.Updated(loss, m.optimizer.Minimize(set.Store, loss, in.Rates))
		return out
	})
	return m
}

// weighted is the mean over sentences, of k rows each, of -log p by self-normalised weights, and their mean effective
// sample size.
func weighted(logP, logW *Node, k int) (loss, ess *Node) {
	w, sizes := gfn.SelfNormalised(logW, k)
	return Neg(MulScalar(ReduceAllMean(Mul(ConvertDType(w, logP.DType()), logP)), k)), ReduceAllMean(sizes)
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
	in := mArgs{
		Rates: m.optimizer.Rates(at.M), Sentences: b.Repeat(m.walks()).SentenceTensors,
		Trees: z.Trees, Forests: z.Forests, LogW: z.LogW,
	}
	if m.Method == Exact {
		in.Key = rng.Key(m.Seed, "grammar/sample", at.M)
	}
	out, err := m.program.Call(in)
	done := em.NewMaximization(out.Update)
	if z.LogW != nil {
		done.Metrics = map[string]float64{"m/ess": out.ESS}
	}
	return done, err
}
