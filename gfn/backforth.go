package gfn

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/rng"
)

// BackForth is a Metropolis-Hastings kernel that leaves R(z|x) invariant whatever the policies are: from an object z it
// goes K steps backward by P_B and then forward by P_F to a new object z' (Zhang, Malkin, Liu, Volokhova, Courville,
// Bengio, "Generative Flow Networks for Discrete Probabilistic Modeling", 2022).
type BackForth struct {
	// MaxSteps bounds K, which is drawn uniformly from 1..MaxSteps, once for the whole batch. 0 means the environment's
	// Steps.
	MaxSteps int
	// How is the behaviour that moves; the acceptance ratio is computed from its probabilities, so tempering costs
	// acceptance but not correctness.
	How Behaviour
}

// Move is one application of the kernel.
type Move struct {
	State    State // the next states of the chains
	LogR     *Node // their log-rewards, [B]
	Accepted *Node // [B] bool
	// Down is the path that was undone and Up the one that was proposed, both in forward order.
	Down, Up Trajectory
	// Proposal is the object at the end of Up, with its log-reward.
	Proposal State
	LogRNew  *Node
}

// Apply moves every chain once. LogR holds the log-rewards of z, and reward computes those of proposals; no gradient
// flows through a move.
//
// With the path undone (z -> s) and the path proposed (s -> z'), the move is accepted with probability
//
//	min(1, R(z') P_B(z'->s) P_F(s->z) / ( R(z) P_B(z->s) P_F(s->z') ))
//
// if the reverse move exists. It does if K backward steps from z' lead to s: the proposed path has K steps, or s is
// initial and the path has at most K.
func (k BackForth) Apply(n Net, r *rng.Stream, x Batch, z State, logR *Node, reward func(Batch, State) *Node) Move {
	count("BackForth.MaxSteps", k.MaxSteps)
	floats("the log-reward", logR, x.Size())
	most := k.MaxSteps
	if all := n.env().Steps(); most == 0 || most > all {
		most = all
	}
	u := r.Uniform(dtypes.Float32)
	steps := OnePlus(ConvertDType(Floor(MulScalar(u, most)), dtypes.Int32)) // 1..most
	steps = MinScalar(steps, most)                                          // should u*most round up

	down := n.Backtrack(r, x, z, steps, k.How)
	mid := down.States[0]
	up := n.Rollout(r, x, mid, k.How)
	next := up.Last()
	logRNew := StopGradient(blame.Field(reward, "the log-reward").Typed(reward(x, next), logR.DType(), x.Size()))

	there, back := n.Score(down, k.How), n.Score(up, k.How)
	ratio := func(s Scores) *Node { return ConvertDType(ReduceSum(Sub(s.LogPF, s.LogPB), 1), logR.DType()) }
	logA := Add(Sub(logRNew, logR), Sub(ratio(there), ratio(back)))

	length := up.Length()
	wide := BroadcastToShape(steps, length.Shape())
	initial := AtStart(n.Env, mid)
	reversible := LogicalOr(Equal(length, wide), LogicalAnd(initial, LessOrEqual(length, wide)))

	accept := LogicalAnd(reversible, Accept(r, StopGradient(logA)))
	return Move{
		State: constants(chooseState(accept, next, z)), LogR: Where(accept, logRNew, StopGradient(logR)),
		Accepted: accept, Down: down, Up: up, Proposal: next, LogRNew: logRNew,
	}
}

// Accept decides on proposals by their Metropolis-Hastings ratios, [B].
func Accept(r *rng.Stream, logA *Node) *Node {
	coin := MaxScalar(r.Uniform(logA.DType(), logA.Shape().Dimensions...), 1e-30) // above 0, so that its logarithm is finite
	return LessOrEqual(Log(coin), logA)
}

// PairBalance is trajectory balance between the two objects of a move, [B]: both are reached from the state in the
// middle, whose flow is not needed.
//
//	( log R(z) + sum log P_B - sum log P_F, along the path to z, less the same along the path to z' )^2
//
// Rewards are constants.
func PairBalance(down, up Path) *Node {
	return Square(Sub(down.LogWeights(), up.LogWeights()))
}
