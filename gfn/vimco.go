package gfn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// VIMCO climbs the bound of log Z(x) by K trajectories,
//
//	L = E log( 1/K sum_k w_k ),   w_k = R(z|x) prod_t P_B / prod_t P_F
//
// by a score-function gradient whose baseline leaves one trajectory out (Mnih, Rezende, "Variational Inference for
// Monte Carlo Objectives", 2016): in the signal of trajectory k, the bound of the sample is compared with the same
// where w_k is the geometric mean of the others. What is left of the gradient follows log w_k, P_B included, with the
// self-normalised weights. Both together are unbiased:
//
//	-sum_k ( (L - L without w_k) sum_t log P_F  +  w_k / sum_j w_j  sum_t (log P_B - log P_F) )
//
// The value is a surrogate: only its gradient means something. Trajectories must be on-policy, and rewards above 0,
// since the bound is -Inf if all trajectories of an observation can be without reward.
type VIMCO struct {
	// Samples is K, 2 or more: that many successive rows of the batch belong to one x. 0 means the whole batch.
	Samples int
}

var _ Objective = VIMCO{}

// Loss implements Objective. The sum over an observation is the mean of its rows, times K.
func (o VIMCO) Loss(p Path) *Node {
	k := several("VIMCO", p, o.Samples)
	logW := StopGradient(p.LogWeights())
	b := logW.Shape().Dim(0)
	rows := Reshape(logW, b/k, k) // [G,K]

	square := shapes.Make(dtypes.Int32, b/k, k, k)
	self := Equal(Iota(logW.Graph(), square, 1), Iota(logW.Graph(), square, 2))
	others := BroadcastToDims(InsertAxes(rows, 1), b/k, k, k) // [G,K,K]: of each trajectory, all of its observation
	mean := DivScalar(ReduceSum(Where(self, ZerosLike(others), others), 2), k-1)
	without := logMeanExp(Where(self, column(mean, k), others))     // [G,K]
	signal := Reshape(Sub(column(logMeanExp(rows), k), without), b) // [B]

	w, _ := SelfNormalised(logW, k)
	logPF, logPB := ReduceSum(p.LogPF, 1), ReduceSum(p.LogPB, 1)
	return MulScalar(Add(Mul(signal, logPF), Mul(w, Sub(logPB, logPF))), -float64(k))
}
