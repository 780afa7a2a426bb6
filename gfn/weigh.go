package gfn

import . "github.com/gomlx/gomlx/core/graph"

// SelfNormalised turns log importance weights, [B], into weights that add up to 1 over each group of k successive rows,
// [B], and returns the effective sample size of each group, (sum w)^2 / sum w^2, [B/k]. A log-weight of -Inf has weight
// 0; where a group has no other, all its weights are 0, and so is its sample size. All are constants to the gradient.
func SelfNormalised(logW *Node, k int) (w, ess *Node) {
	if k < 1 {
		fail("SelfNormalised has groups of %d", k)
	}
	b := logW.Shape().Dim(0)
	table := Reshape(StopGradient(logW), b/groupSize(logW, k), k)           // [B/k,k]
	w = Exp(Sub(table, column(finiteOrZero(ReduceMax(table, 1)), k)))       // the largest is 1
	w = Div(w, column(oneIfZero(ReduceSum(w, 1)), k))                       // [B/k,k]
	squares := ReduceSum(Square(w), 1)                                      // [B/k]
	some := GreaterThan(squares, ZerosLike(squares))                        // [B/k]
	return Reshape(w, b), Where(some, Inverse(oneIfZero(squares)), squares) // of no weights the squares are 0
}

// logMeanExp is the logarithm of the mean of exponentials along the last axis.
func logMeanExp(x *Node) *Node {
	n := x.Shape().Dim(-1)
	top := finiteOrZero(ReduceMax(x, -1))
	return Add(top, Log(ReduceMean(Exp(Sub(x, column(top, n))), -1)))
}

func finiteOrZero(x *Node) *Node { return Where(IsFinite(x), x, ZerosLike(x)) }

func oneIfZero(x *Node) *Node { return Where(IsZero(x), OnesLike(x), x) }
