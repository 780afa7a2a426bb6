package gfn

import . "github.com/gomlx/gomlx/core/graph"

// TB is trajectory balance (Malkin, Jain, Bengio, Sun, Bengio, "Trajectory Balance: Improved Credit Assignment in
// GFlowNets", 2022, eq. 14), with a partition function that may depend on x:
//
//	( log Z(x) + sum_t log P_F(s_{t+1}|s_t) - log R(z|x) - sum_t log P_B(s_t|s_{t+1}) )^2
type TB struct{}

var _ Objective = TB{}

// Loss implements Objective.
func (TB) Loss(p Path) *Node {
	return Square(Sub(Add(p.logZ(), p.logRatio()), StopGradient(p.LogR)))
}
