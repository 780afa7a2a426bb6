package gfn

import . "github.com/gomlx/gomlx/core/graph"

// VarGrad is the variance of the log-partition estimate (Richter, Boustati, Nüsken, Ruiz, Akyildiz, "VarGrad: A
// Low-Variance Gradient Estimator for Variational Inference", 2020; for GFlowNets Zhang, Rainone, Peschl, Bondesan,
// "Robust Scheduling with GFlowNets", 2023). It is trajectory balance with log Z(x) replaced by its estimate from
// several trajectories of the same x, of those that are Used:
//
//	( zeta_b - mean zeta )^2,  zeta = log R(z|x) + sum_t log P_B - sum_t log P_F
//
// On policy this is trajectory balance with a control variate: by P_F its gradient is 2 (K-1)/K times that of HVI,
// whose baseline is the mean of the other K-1 trajectories. Off policy it is right, too.
type VarGrad struct {
	// Samples is the number of trajectories per observation: that many successive rows of the batch belong to one x (see
	// Batch.Repeat). 0 means the whole batch, for problems without observations.
	Samples int
}

var _ Objective = VarGrad{}

// Loss implements Objective.
func (o VarGrad) Loss(p Path) *Node {
	zeta := p.LogWeights()
	k := groupSize(zeta, o.Samples)
	if k == 1 {
		fail("VarGrad needs two or more trajectories per observation")
	}
	if p.Used == nil {
		return Square(Sub(zeta, groupMean(zeta, k)))
	}
	used := asNumber(p.Used, zeta)
	mean := weighted(Reshape(Mul(zeta, used), -1, k), Reshape(used, -1, k), 1)
	return Mul(used, Square(Sub(zeta, Reshape(column(mean, k), zeta.Shape().Dim(0)))))
}

// groupSize is the number of successive rows of x, [B], that share an observation: samples, or B if samples is 0.
func groupSize(x *Node, samples int) int {
	count("Samples", samples)
	b := x.Shape().Dim(0)
	if samples == 0 {
		return b
	}
	if b%samples != 0 {
		fail("a batch of %d rows does not divide into groups of %d", b, samples)
	}
	return samples
}

// groupMean replaces every entry of x, [B], by the mean over its group of k successive rows.
func groupMean(x *Node, k int) *Node {
	b := x.Shape().Dim(0)
	mean := ReduceMean(Reshape(x, b/k, k), 1)
	return Reshape(column(mean, k), b)
}
