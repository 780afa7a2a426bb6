package gfn

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/blame"
)

// Path is what an objective sees of a batch of complete trajectories.
type Path struct {
	LogPF *Node // [B,T], 0 on padding
	LogPB *Node // [B,T], 0 on padding
	// Flow is the policy's log-flow at States[0..T-1], [B,T]; nil if it has none.
	Flow *Node
	// LogZ is log Z(x), [B]: the policy's Partition if it is one, else Flow at the initial state; nil if it has neither.
	LogZ *Node
	// LogR is the log-reward of the object reached, [B].
	LogR *Node
	// Partial is the log-reward collected so far, at States[0..T], [B,T+1]. With it flows are forward-looking (Pan et
	// al., "Better Training of GFlowNets with Local Credit and Incomplete Trajectories", 2023): log F(s) is
	// Partial(s) + Flow(s). Nil means flows are learned whole.
	Partial *Node
	// Valid is false where a step is padding, [B,T] bool.
	Valid *Node
	// Terminal marks terminal states, [B,T+1] bool.
	Terminal *Node
	// Used marks the trajectories that count, [B] bool; nil means all. The others are there to fill the batch.
	Used *Node
}

// Objective is a loss on trajectories. Laws, checked for every objective of this package:
//   - Loss returns one number per trajectory, [B], whose mean is minimised;
//   - rewards are constants: no gradient flows into LogR or Partial;
//   - padding changes neither the value nor the gradient;
//   - trajectories that are not Used do not change what is said of the others; what is said of them does not matter.
type Objective interface {
	Loss(p Path) *Node
}

// Path completes scores to what an objective needs. LogR is [B]; partial, [B,T+1], may be nil. Both are converted to
// the dtype of the scores.
func (n Net) Path(tr Trajectory, s Scores, logR, partial *Node) Path {
	b := tr.X.Size()
	floats("the log-reward", logR, b)
	logR = ConvertDType(logR, s.LogPF.DType())
	if partial != nil {
		floats("the partial log-reward", partial, b, len(tr.States))
		partial = ConvertDType(partial, s.LogPF.DType())
	}
	states := stackStates(tr.States)
	p := Path{
		LogPF: s.LogPF, LogPB: s.LogPB, Flow: s.Flow,
		LogR: logR, Partial: partial,
		Valid:    Stack(tr.Valid, 1),
		Terminal: Reshape(Terminal(n.Env, states), b, len(tr.States)),
	}
	if z, ok := n.Policy.(Partition); ok {
		p.LogZ = blame.Method(n.Policy, "LogZ").Typed(z.LogZ(n.Scope, tr.X), s.LogPF.DType(), b)
	} else if s.Flow != nil {
		p.LogZ = Squeeze(SliceAxis(s.Flow, 1, AxisElem(0)), 1)
		if partial != nil {
			p.LogZ = Add(p.LogZ, StopGradient(Squeeze(SliceAxis(partial, 1, AxisElem(0)), 1)))
		}
	}
	return p
}

// Partials evaluates a partial log-reward at all states of trajectories, [B,T+1].
func (n Net) Partials(tr Trajectory, partial func(x Batch, s State, k int) *Node) *Node {
	b, k := tr.X.Size(), len(tr.States)
	all := partial(tr.X, stackStates(tr.States), k)
	return Reshape(blame.Field(partial, "the partial log-reward").Floats(all, b*k), b, k)
}

// logFlows returns log F at States[0..T], [B,T+1]: the reward at terminal states, the learned flow elsewhere.
func (p Path) logFlows() *Node {
	if p.Flow == nil {
		fail("this objective needs a policy with a flow head (Heads.Flow)")
	}
	b, t := p.LogPF.Shape().Dim(0), p.LogPF.Shape().Dim(1)
	learned := Concatenate([]*Node{p.Flow, Zeros(p.Flow.Graph(), shapes.Make(p.Flow.DType(), b, 1))}, 1)
	if p.Partial != nil {
		learned = Add(learned, StopGradient(p.Partial))
	}
	return Where(p.Terminal, column(StopGradient(p.LogR), t+1), learned)
}

// logRatio returns sum_t log P_F - log P_B of whole trajectories, [B].
func (p Path) logRatio() *Node { return ReduceSum(Sub(p.LogPF, p.LogPB), 1) }

// LogWeights returns the log importance weights log R + sum log P_B - sum log P_F, [B]; rewards are constants. For
// on-policy trajectories the mean of their exponentials is an unbiased estimate of Z(x) = sum_z R(z|x), which is p(x)
// if R(z|x) is p(x,z).
func (p Path) LogWeights() *Node { return Sub(StopGradient(p.LogR), p.logRatio()) }

// logZ returns LogZ, or explains what is missing.
func (p Path) logZ() *Node {
	if p.LogZ == nil {
		fail("this objective needs log Z: a policy that is a Partition or has a flow head (Heads.Flow)")
	}
	return p.LogZ
}

// column repeats x n times along a new last axis.
func column(x *Node, n int) *Node {
	return BroadcastToDims(InsertAxes(x, -1), append(slices.Clone(x.Shape().Dimensions), n)...)
}

// asNumber turns a mask into zeros and ones of the dtype of like, constant to the gradient.
func asNumber(mask, like *Node) *Node { return StopGradient(ConvertDType(mask, like.DType())) }
