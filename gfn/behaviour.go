package gfn

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/rng"
)

// Behaviour is the policy that acts while exploring. Losses never see it: they use the log-probabilities that the
// untempered policy gives to the sampled actions. The zero value samples from the policy itself.
type Behaviour struct {
	// Beta multiplies the logits before the softmax (below 1: flatter). Scalar; nil means 1.
	Beta *Node
	// Epsilon is the probability with which an action, each one on its own, is drawn uniformly from the legal ones.
	// Scalar; nil means 0.
	Epsilon *Node
	// Greedy takes the most probable action, the first of equals, instead of sampling. Epsilon does not apply.
	Greedy bool
}

// LogProbs returns the behaviour's log-probabilities [N,A] of all actions. Illegal ones get a number so low that its
// exponential is 0; rows without a legal action are padding, which the caller must mask.
func (b Behaviour) LogProbs(logits, legal *Node) *Node {
	if b.Beta != nil {
		logits = Mul(logits, ConvertDType(b.Beta, logits.DType()))
	}
	logP := logProbs(logits, legal)
	if b.Greedy {
		best := ArgMax(logP, -1, actionType)
		isBest := Equal(Iota(logP.Graph(), withDType(logP.Shape(), actionType), -1), column(best, logP.Shape().Dim(-1)))
		return Where(isBest, ZerosLike(logP), AddScalar(ZerosLike(logP), illegal))
	}
	if b.Epsilon == nil {
		return logP
	}
	eps := ConvertDType(b.Epsilon, logits.DType())
	count := asNumber(legal, logits)
	uniform := Div(count, MaxScalar(ReduceAndKeep(count, ReduceSum, -1), 1))
	p := Add(Mul(OneMinus(eps), Exp(logP)), Mul(eps, uniform))
	floor := AddScalar(ZerosLike(p), illegal)
	return Where(GreaterThan(p, ZerosLike(p)), Log(Where(GreaterThan(p, ZerosLike(p)), p, OnesLike(p))), floor)
}

// choose draws (or, when greedy, picks) one action per row, [N] int32.
func (b Behaviour) choose(r *rng.Stream, logits, legal *Node) *Node {
	logP := StopGradient(b.LogProbs(logits, legal))
	if b.Greedy {
		return ArgMax(logP, -1, actionType)
	}
	return r.Categorical(Exp(logP))
}
