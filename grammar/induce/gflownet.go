package induce

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/prior"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// gflownet is the network, and the compiled programs of E-steps, whose tensors stay on the device: the host sees a few
// numbers of each update.
type gflownet struct {
	*Config
	*forest.Sampler
	optimizer optim.Optimizer

	dream   *program.Program[dreamArgs, dreamResult]     // weights of derivations, and trees of the grammar, from tables made once
	start   *program.Program[startArgs, startResult]     // from bare words up, and down from recalled and dreamt trees
	propose *program.Program[proposeArgs, proposeResult] // what start led to, rewarded; starts the first move
	resume  *program.Program[resumeArgs, resumeResult]   // starts the first move where chains are that persist
	accept  *program.Program[acceptArgs, acceptResult]   // ends a move, starts the next one
	learn   *program.Program[learnArgs, learnResult]
	chains  *keptTrees // where moves go on; nil if no chains persist
	replay  *keptTrees // what wake goes back to; nil without replay
}

// newSampler prepares the network of a configuration, whose variables live in the store of a set.
func (c *Config) newSampler(set *program.Set, tables func(*Graph) grammar.LogProbs, words int) (*forest.Sampler, error) {
	if err := forest.CanRun(set.Backend); err != nil {
		return nil, badinput.Errorf("%w", err)
	}
	m := forest.Network{
		Width: c.Policy.Width, Layers: c.Policy.Layers, Heads: c.Policy.Heads, FeedForward: 4 * c.Policy.Width, DType: dtypes.Float32,
		Words: words, Labels: c.Model.Nonterminals, Preterminals: c.Model.Preterminals,
		Positions: max(c.MaxLength, c.dreamt()) + 1, // 22 at the published lengths, as published
		Half:      c.Policy.Half, Linear: c.Policy.Linear, UniformBack: c.Policy.UniformBack, Mixes: c.Wake.Epsilon > 0,
	}
	if c.Policy.Trees == Shapes {
		m.Grammar = tables
	}
	s := forest.NewSampler(set, m, tables)
	if c.Prior.On {
		s.Energy = prior.Energies
	}
	return s, nil
}

// newGFlowNet prepares the programs of E-steps.
func newGFlowNet(set *program.Set, tables func(*Graph) grammar.LogProbs, words int, c *Config) (*gflownet, error) {
	sampler, err := c.newSampler(set, tables, words)
	if err != nil {
		return nil, err
	}
	e := &gflownet{Config: c, Sampler: sampler}
	o := c.Optim.Phi
	group := func(scope string, rate float64) optim.Group {
		return c.group(em.Phi+"/"+scope, rate, o.Beta1, o.Beta2, o.End)
	}
	e.optimizer = optim.Optimizer{ClipNorm: c.Optim.Clip, Groups: []optim.Group{
		group(forest.EncoderScope, o.Rate), group(forest.ForwardScope, o.Rate), group(forest.BackwardScope, o.Rate),
		group(forest.FlowScope, o.FlowRate),
	}}
	e.dream = program.New[dreamArgs, dreamResult](set, "dream", e.dreams)
	e.start = program.New[startArgs, startResult](set, "start", e.rollouts)
	e.propose = program.New[proposeArgs, proposeResult](set, "propose", e.proposed)
	e.resume = program.New[resumeArgs, resumeResult](set, "resume", e.resumed)
	e.accept = program.New[acceptArgs, acceptResult](set, "accept", e.accepted)
	e.learn = program.New[learnArgs, learnResult](set, "learn", e.losses)
	return e, nil
}

// dreamt is the number of trees that forests of dreams have at most.
func (c *Config) dreamt() int { return min(c.Sleep.Steps+1, c.Sleep.Leaves) }

// explore is the behaviour in walks of the E-step.
func (c *Config) explore() em.Explore {
	return em.Explore{Beta: em.Constant(c.Wake.Beta), Epsilon: em.Constant(c.Wake.Epsilon)}
}

func (e *gflownet) phi() *model.Scope { return e.Set.Store.Scope(em.Phi) }

// dreamt are dreams as programs hand them on; the trees are in order of gaps.
type dreamt[T, Z any] struct {
	Leaves, Lengths T
	Trees           Z
}

type (
	dreamIn[T, S any] struct {
		Sentences S
		Key       T
	}
	dreamOut[T, Z any] struct {
		Weights grammar.PotentialParts[T]
		Dream   dreamt[T, Z]
	}
	startIn[T, S, Z any] struct {
		Key       T
		Knobs     em.Knobs[T]
		Sentences S
		Recalled  *recalled[T, S, Z] // nil without replay
		Dream     *dreamt[T, Z]      // nil without a sleep phase
	}

	// startOut has walks from bare words and those down to them, or all of them in Up.
	startOut[R any] struct {
		Up   R
		Down *R
	}

	startResult  = startOut[forest.RolloutTensors]
	dreamTensors = dreamt[*tensors.Tensor, grammar.TreeTensors]
	dreamArgs    = dreamIn[*tensors.Tensor, forest.SentenceTensors]
	dreamResult  = dreamOut[*tensors.Tensor, grammar.TreeTensors]
	startArgs    = startIn[*tensors.Tensor, forest.SentenceTensors, grammar.TreeTensors]
)

// dreams draws from the grammar.
func (e *gflownet) dreams(in dreamIn[*Node, forest.Sentences]) dreamOut[*Node, grammar.Trees] {
	tables := e.LogProbs(in.Key.Graph())
	d := tables.Dream(rng.In(in.Key), e.Batch, e.Sleep.Leaves)
	return dreamOut[*Node, grammar.Trees]{
		forest.Weigh(tables, in.Sentences), dreamt[*Node, grammar.Trees]{d.Leaves, d.Lengths, d.Trees},
	}
}

// rollouts starts an iteration: walks from bare words, and those that take recalled trees and dreams apart, if there
// are any. Dreams are taken apart by the policy as it is, without exploring.
//
// Where a call costs more than what it computes, all are one batch. Elsewhere they are two, of which neither waits for
// the other nor has room for its trees; they draw the same numbers.
func (e *gflownet) rollouts(in startIn[*Node, forest.Sentences, grammar.Trees]) (out startOut[forest.Rollout]) {
	up := e.Begin(e.phi(), in.Sentences)
	var down []forest.Walk
	var back, explores []*Node // of these
	undo := func(z grammar.Trees, leaves, lengths, steps, how *Node) {
		down = append(down, e.Embed(e.phi(), forest.FromTrees(z, lengths), leaves))
		back, explores = append(back, steps), append(explores, how)
	}
	if r := in.Recalled; r != nil { // one step more than there are: see forest.Walk
		n := r.Sentences.Lengths
		undo(r.Trees, r.Sentences.Words, n, n, Equal(n, n))
	}
	if d := in.Dream; d != nil {
		n := d.Lengths
		undo(d.Trees, d.Leaves, n, MinScalar(SubScalar(n, 1), e.Sleep.Steps), NotEqual(n, n))
	}
	begin := func(walks []forest.Walk, back, explores []*Node) forest.Rollout {
		all := walks[0]
		for _, w := range walks[1:] {
			all = forest.Together(all, w)
		}
		steps, on := Concatenate(back, 0), Concatenate(explores, 0)
		how := e.explore().Behaviour(in.Knobs)
		if how.Beta != nil {
			how.Beta = Where(on, how.Beta, OnesLike(how.Beta))
		}
		if how.Epsilon != nil {
			how.Epsilon = Where(on, how.Epsilon, ZerosLike(how.Epsilon))
		}
		return e.Rollout(all, rng.In(in.Key), steps, Equal(steps, ZerosLike(steps)), how)
	}
	none := ZerosLike(in.Sentences.Lengths)
	awake := Equal(none, none)
	if !e.Quick {
		down, back = append([]forest.Walk{up}, down...), append([]*Node{none}, back...)
		out.Up = begin(down, back, append([]*Node{awake}, explores...))
		return out
	}
	out.Up = begin([]forest.Walk{up}, []*Node{none}, []*Node{awake})
	apart := begin(down, back, explores)
	out.Down = &apart
	return out
}
