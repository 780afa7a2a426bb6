package gfn

import . "github.com/gomlx/gomlx/core/graph"

// RWS is the wake-phi update of reweighted wake-sleep (Bornschein, Bengio, "Reweighted Wake-Sleep", 2015), on
// trajectories: the likelihood of K trajectories of an observation, each with its self-normalised importance weight,
//
//	-sum_k w_k sum_t log P_F,   w_k in proportion to R(z|x) prod_t P_B / prod_t P_F
//
// Its gradient tends to that of KL(P_B R/Z || P_F) with K; for finite K it is biased. Weights are constants, and P_B is
// part of what is learned from: a learned P_B has no gradient. Trajectories must be on-policy. A trajectory without
// reward has weight 0, and an observation that has no others adds nothing.
type RWS struct {
	// Samples is the number of trajectories per observation, 2 or more: that many successive rows of the batch belong to
	// one x. 0 means the whole batch.
	Samples int
}

var _ Objective = RWS{}

// Loss implements Objective. The sum over an observation is the mean of its rows, times K.
func (o RWS) Loss(p Path) *Node {
	k := several("RWS", p, o.Samples)
	w, _ := SelfNormalised(p.LogWeights(), k)
	return MulScalar(Mul(w, ReduceSum(p.LogPF, 1)), -float64(k))
}

// several checks the trajectories of an objective that needs two or more of each observation, on-policy, and returns
// their number.
func several(name string, p Path, samples int) int {
	if p.Used != nil {
		fail("%s is for on-policy trajectories, which are all Used", name)
	}
	k := groupSize(p.LogR, samples)
	if k == 1 {
		fail("%s needs two or more trajectories per observation", name)
	}
	return k
}
