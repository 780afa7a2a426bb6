package forest

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// Sampler is a GFlowNet over the trees of a grammar on the host: the programs by which it is used, in learning and in
// parsing. What they hand to each other stays on the device.
type Sampler struct {
	Network
	Set *program.Set
	// LogProbs are those of the grammar whose posterior is sampled.
	LogProbs func(g *Graph) grammar.LogProbs
	// Quick says that it pays to have many programs, of all sizes. Elsewhere a program takes as long as it has
	// operations, and every call costs something.
	Quick bool
	// Energy, if not nil, is that of a prior with some parameters on the shapes of trees, [B].
	Energy func(parameters *Node, z grammar.Trees, lengths *Node) *Node

	// Potentials are the weights of derivations of sentences.
	Potentials *program.Program[SentenceTensors, grammar.PotentialTensors]
	// Reward is log R and the scores of nodes of whole trees.
	Reward *program.Program[RewardTensors, Rewards[*tensors.Tensor]]
	// Flow is what the network takes log p(x) for, [B] float64.
	Flow *program.Program[SentenceTensors, Flows[*tensors.Tensor]]
	// StandAt makes walks that stand at whole trees in order of gaps.
	StandAt *program.Program[TreesTensors, WalkTensors]

	labels  *program.Program[labelTensors, labelled[*tensors.Tensor]]
	start   *program.Program[startTensors, RolloutTensors]
	undo    *program.Program[undoTensors, RolloutTensors]
	segment *program.Program[segmentTensors, RolloutTensors]
	whole   *program.Program[segmentTensors, WalkTensors]
}

// SentenceTensors are Sentences on the host.
type SentenceTensors struct{ Words, Lengths *tensors.Tensor }

// Weigh returns the weights of derivations of sentences.
func Weigh(t grammar.LogProbs, x Sentences) grammar.PotentialParts[*Node] {
	q := t.For(x.Words, x.Lengths)
	return grammar.PotentialParts[*Node]{Root: q.Root, Rules: q.Rules, Terms: q.Terms}
}

// Weigher is Weigh as a program.
func Weigher(
	set *program.Set, tables func(*Graph) grammar.LogProbs,
) *program.Program[SentenceTensors, grammar.PotentialTensors] {
	weigh := func(x Sentences) grammar.PotentialParts[*Node] { return Weigh(tables(x.Words.Graph()), x) }
	return program.New[SentenceTensors, grammar.PotentialTensors](set, "potentials", weigh)
}

// Target is what trees are sampled in proportion to: derivations of sentences, and a prior with its coldness, one over
// its temperature; both nil where no prior counts.
type Target[T any] struct {
	Weights                  grammar.PotentialParts[T]
	Lengths, Prior, Coldness T
}

// Rewards of whole trees: log R [B], and the scores of their nodes [B,G].
type Rewards[T any] struct{ LogR, Nodes T }

// What programs take, in graphs and on the host.
type (
	startIn[T, S any] struct {
		Key       T
		Knobs     em.Knobs[T]
		Sentences S
	}
	undoIn[T, B, W any] struct {
		Key  T
		Back B
		Walk W
	}
	segmentIn[P, R any] struct {
		MaxTrees int
		Part     Part
		Passes   P // nil: all of them
		Rollout  R
	}
	rewardIn[T, F, I any] struct {
		Target Target[T]
		Forest F
		Inside I // of shapes
	}
	embedIn[S, Z any] struct {
		Sentences S
		Trees     Z
	}
	Flows[T any] struct{ LogZ T }

	labelIn[T, F, I any] struct {
		Key    T
		Forest F
		Inside I
	}
	labelled[T any] struct{ Labels T }

	startTensors   = startIn[*tensors.Tensor, SentenceTensors]
	undoTensors    = undoIn[*tensors.Tensor, int32, WalkTensors]
	segmentTensors = segmentIn[*int32, RolloutTensors]
	RewardTensors  = rewardIn[*tensors.Tensor, ForestTensors, InsideTensors]
	labelTensors   = labelIn[*tensors.Tensor, ForestTensors, InsideTensors]
	TreesTensors   = embedIn[SentenceTensors, grammar.TreeTensors]
)

// NewSampler prepares a sampler whose variables live below em.Phi in the store of a set.
func NewSampler(set *program.Set, m Network, tables func(g *Graph) grammar.LogProbs) *Sampler {
	s := &Sampler{Network: m, Set: set, LogProbs: tables, Quick: backend.QuickToCompile(set.Backend)}
	s.Rolled = !s.Quick
	s.Potentials = Weigher(set, tables)
	s.start = program.New[startTensors, RolloutTensors](set, "start", func(in startIn[*Node, Sentences]) Rollout {
		g := in.Key.Graph()
		how := gfn.Behaviour{Beta: in.Knobs.Beta, Epsilon: in.Knobs.Epsilon}
		return s.Rollout(s.Begin(s.scope(), in.Sentences), rng.In(in.Key), Const(g, int32(0)), Const(g, true), how)
	})
	s.undo = program.New[undoTensors, RolloutTensors](set, "undo", func(in undoIn[*Node, *Node, Walk]) Rollout {
		return s.Rollout(in.Walk, rng.In(in.Key), in.Back, Const(in.Key.Graph(), false), gfn.Behaviour{})
	})
	s.segment = program.New[segmentTensors, RolloutTensors](set, "rollout", func(in segmentIn[*Node, Rollout]) Rollout {
		return s.Segment(s.scope(), in.Rollout, in.Passes, in.MaxTrees, in.Part)
	})
	s.whole = program.New[segmentTensors, WalkTensors](set, "rollout", func(in segmentIn[*Node, Rollout]) Walk {
		return s.Run(s.scope(), in.Rollout, in.MaxTrees)
	})
	reward := func(in rewardIn[*Node, Forest, Inside]) Rewards[*Node] {
		return s.RewardOf(in.Target, in.Forest, in.Inside)
	}
	s.Reward = program.New[RewardTensors, Rewards[*tensors.Tensor]](set, "reward", reward)
	s.Flow = program.New[SentenceTensors, Flows[*tensors.Tensor]](set, "flow", func(x Sentences) Flows[*Node] {
		return Flows[*Node]{ConvertDType(s.LogZ(s.scope(), x), dtypes.Float64)}
	})
	s.StandAt = program.New[TreesTensors, WalkTensors](set, "embed", func(in embedIn[Sentences, grammar.Trees]) Walk {
		return s.Embed(s.scope(), FromTrees(in.Trees, in.Sentences.Lengths), in.Sentences.Words)
	})
	label := func(in labelIn[*Node, Forest, Inside]) labelled[*Node] {
		return labelled[*Node]{s.drawLabels(s.LogProbs(in.Key.Graph()), rng.In(in.Key), in.Forest, in.Inside)}
	}
	s.labels = program.New[labelTensors, labelled[*tensors.Tensor]](set, "labels", label)
	return s
}

func (s *Sampler) scope() *model.Scope { return s.Set.Store.Scope(em.Phi) }

// RewardOf returns log R and the scores of nodes of whole trees, in a graph: of labelled trees, or of shapes by what is
// known of their nodes.
func (s *Sampler) RewardOf(t Target[*Node], f Forest, in Inside) Rewards[*Node] {
	z := f.Trees()
	r := s.weigh(t, f, z, in)
	if s.Energy != nil && t.Prior != nil {
		energy := ConvertDType(s.Energy(t.Prior, z, t.Lengths), r.LogR.DType())
		r.LogR = Sub(r.LogR, Mul(ConvertDType(t.Coldness, r.LogR.DType()), energy))
	}
	return r
}

// weigh is RewardOf without a prior.
func (s *Sampler) weigh(t Target[*Node], f Forest, z grammar.Trees, in Inside) Rewards[*Node] {
	if s.Grammar != nil {
		return s.shapeRewards(t.Weights.Root, f, in)
	}
	q := grammar.Potentials{Root: t.Weights.Root, Rules: t.Weights.Rules, Terms: t.Weights.Terms, Lengths: t.Lengths}
	score := q.ScoreTrees(z)
	return Rewards[*Node]{Add(ReduceSum(score.Nodes, 1), score.Root), score.Nodes}
}

// Kind is that of the grammar, as partial rewards see it (Scored.Rewarded): those of shapes know every node at once.
func (s *Sampler) Kind(of grammar.Kind) grammar.Kind {
	if s.Grammar != nil {
		return grammar.CFG
	}
	return of
}

// RolloutOf starts walks by the rules of a target, so that its tables are not made again.
func (s *Sampler) RolloutOf(
	t Target[*Node], from Walk, r *rng.Stream, back, rise *Node, how gfn.Behaviour,
) Rollout {
	return s.of(t.Weights.Rules).Rollout(from, r, back, rise, how)
}

// Draw makes walks from bare words, of which the longest sentence has so many, to whole trees.
func (s *Sampler) Draw(
	key *tensors.Tensor, knobs em.Knobs[*tensors.Tensor], x SentenceTensors, longest int,
) (WalkTensors, error) {
	r, err := s.start.Call(startTensors{key, knobs, x})
	if err != nil {
		return WalkTensors{}, err
	}
	return s.Finish(Rising(longest), r)
}

// LabelsOf draws labels of the whole shapes that walks stand at from the posterior given the shape: one more than the
// label of the node at each gap, [B,G].
func (s *Sampler) LabelsOf(key *tensors.Tensor, at RouteTensors) (*tensors.Tensor, error) {
	out, err := s.labels.Call(labelTensors{key, at.Forest, at.Inside})
	return out.Labels, err
}

// Undo makes walks from whole trees, of which the longest sentence has so many words, back to bare words.
func (s *Sampler) Undo(key *tensors.Tensor, from WalkTensors, longest int) (WalkTensors, error) {
	// One step more than there are: a step is scored in the state that it leads to, too.
	r, err := s.undo.Call(undoTensors{key, int32(longest), from})
	if err != nil {
		return WalkTensors{}, err
	}
	return s.Finish(Falling(longest), r)
}
