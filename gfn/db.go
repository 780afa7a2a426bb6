package gfn

import . "github.com/gomlx/gomlx/core/graph"

// DB is detailed balance (Bengio, Lahlou, Deleu, Hu, Tiwari, Bengio, "GFlowNet Foundations", 2023), averaged over the
// transitions of a trajectory:
//
//	( log F(s_t) + log P_F(s_{t+1}|s_t) - log F(s_{t+1}) - log P_B(s_t|s_{t+1}) )^2,   log F(z) = log R(z|x)
type DB struct{}

var _ Objective = DB{}

// Loss implements Objective.
func (DB) Loss(p Path) *Node {
	t := p.LogPF.Shape().Dim(1)
	logF := p.logFlows() // [B,T+1]
	from := SliceAxis(logF, 1, AxisRange(0, t))
	to := SliceAxis(logF, 1, AxisRange(1, t+1))
	delta := Sub(Add(from, Sub(p.LogPF, p.LogPB)), to) // [B,T]
	valid := asNumber(p.Valid, delta)
	return weighted(Mul(Square(delta), valid), valid, 1)
}
