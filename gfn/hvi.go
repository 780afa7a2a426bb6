package gfn

import . "github.com/gomlx/gomlx/core/graph"

// HVI is hierarchical variational inference: the reverse KL divergence from the forward trajectory distribution to the
// backward one, with a score-function gradient for P_F and a likelihood gradient for a learned P_B (Malkin, Lahlou,
// Deleu, Ji, Hu, Everett, Zhang, Bengio, "GFlowNets and Variational Inference", 2023). With the learning signal
// A = log R + sum log P_B - sum log P_F, a constant, and its mean over the other rows of the group as baseline:
//
//	-sum_t log P_B - (A - mean of the others' A) sum_t log P_F
//
// Leaving a row out of its own baseline keeps the gradient unbiased. The value is a surrogate: only its gradient means
// something. Trajectories must be on-policy.
type HVI struct {
	// Samples is the number of successive rows that share an observation and a baseline; 0 means the whole batch. A row
	// alone has baseline 0.
	Samples int
}

var _ Objective = HVI{}

// Loss implements Objective.
func (o HVI) Loss(p Path) *Node {
	if p.Used != nil {
		fail("HVI is for on-policy trajectories, which are all Used")
	}
	signal := StopGradient(p.LogWeights())
	advantage := signal
	if k := groupSize(signal, o.Samples); k > 1 {
		// A - (sum A - A)/(k-1) = (A - mean A) k/(k-1)
		advantage = MulScalar(Sub(signal, groupMean(signal, k)), float64(k)/float64(k-1))
	}
	return Neg(Add(ReduceSum(p.LogPB, 1), Mul(advantage, ReduceSum(p.LogPF, 1))))
}
