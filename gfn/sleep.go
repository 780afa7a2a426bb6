package gfn

import . "github.com/gomlx/gomlx/core/graph"

// Likelihood is the negative log-likelihood of P_F along trajectories that end in given objects, sampled backward by
// P_B. With (x, z) drawn from the model it is the sleep phase (Hu et al., 2023, section 3.2); in expectation it is the
// forward KL divergence of the trajectories plus a constant.
//
//	-sum_t log P_F(s_{t+1}|s_t)
type Likelihood struct{}

var _ Objective = Likelihood{}

// Loss implements Objective.
func (Likelihood) Loss(p Path) *Node { return Neg(ReduceSum(p.LogPF, 1)) }
