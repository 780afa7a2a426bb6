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
	// MaxSteps bounds K, which is drawn uniformly from 1..MaxSteps, once for the whole batch unless PerRow. 0 means the
	// environment's Steps.
	MaxSteps int
	// PerRow draws K for every row of the batch on its own. The way back then draws its own K, too, so that a path may be
	// replaced by one of another length; see Apply. Where paths differ in length, more moves are accepted.
	PerRow bool
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
//
// With PerRow the reverse move draws its own K, of M = MaxSteps numbers. Of these, as many as
//
//	c(n) = M-n+1 if s is initial (any K from n on ends there), else 1 (K = n alone),   for n steps up to M, and 0 beyond
//
// lead back over a path of n steps to s. So the probability of going over both paths, the one of k steps undone and the
// one of l steps proposed, is c(k)/M P_B(z->s) P_F(s->z'), that of coming back c(l)/M P_B(z'->s) P_F(s->z), and
//
//	min(1, R(z') P_B(z'->s) P_F(s->z) c(l) / ( R(z) P_B(z->s) P_F(s->z') c(k) ))
//
// balances the two in detail: pair of paths by pair of paths, and so in their sum, which is the kernel from z to z'. What
// has to hold, c(k) > 0, does: k steps were taken.
func (k BackForth) Apply(n Net, r *rng.Stream, x Batch, z State, logR *Node, reward func(Batch, State) *Node) Move {
	count("BackForth.MaxSteps", k.MaxSteps)
	floats("the log-reward", logR, x.Size())
	most := k.MaxSteps
	if all := n.env().Steps(); most == 0 || most > all {
		most = all
	}
	var each []int
	if k.PerRow {
		each = []int{x.Size()}
	}
	u := r.Uniform(dtypes.Float32, each...)
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

	length, initial := up.Length(), AtStart(n.Env, mid)
	var reversible *Node
	if k.PerRow {
		reversible = LessOrEqual(length, AddScalar(ZerosLike(length), most))
		logA = Add(logA, Sub(logWays(length, initial, most, logA.DType()), logWays(down.Length(), initial, most, logA.DType())))
	} else {
		wide := BroadcastToShape(steps, length.Shape())
		reversible = LogicalOr(Equal(length, wide), LogicalAnd(initial, LessOrEqual(length, wide)))
	}

	accept := LogicalAnd(reversible, Accept(r, StopGradient(logA)))
	return Move{
		State: constants(chooseState(accept, next, z)), LogR: Where(accept, logRNew, StopGradient(logR)),
		Accepted: accept, Down: down, Up: up, Proposal: next, LogRNew: logRNew,
	}
}

// logWays is log c(n): of how many K from 1 to most a path of n steps from s is undone; for n from 1 to most.
func logWays(n, initial *Node, most int, dtype dtypes.DType) *Node {
	ways := Where(initial, Sub(AddScalar(ZerosLike(n), most+1), n), OnesLike(n))
	return Log(ConvertDType(MaxScalar(ways, 1), dtype))
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
