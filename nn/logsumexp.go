package nn

import . "github.com/gomlx/gomlx/core/graph"

// LogSumExp returns log sum exp(x) over an axis, which may be counted from the end, without overflow. Entries of -Inf add
// nothing and get gradient 0; where all are -Inf the result is -Inf, and gradients are 0, not NaN. The gradient of the
// others is the softmax.
func LogSumExp(x *Node, axis int) *Node {
	top := StopGradient(ReduceAndKeep(x, ReduceMax, axis))
	shift := Where(IsFinite(top), top, ZerosLike(top)) // of -Inf from -Inf there is no difference
	sum := ReduceSum(Exp(Sub(x, shift)), axis)
	none := IsZero(sum)
	logSum := Add(Log(Where(none, OnesLike(sum), sum)), Squeeze(shift, axis))
	return Where(none, BroadcastToShape(Infinity(x.Graph(), x.DType(), -1), sum.Shape()), logSum)
}
