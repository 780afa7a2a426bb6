package gfn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/blame"
)

// Heads is what a policy says about N states.
type Heads struct {
	// Forward holds the logits of P_F, [N,A].
	Forward *Node
	// Backward holds the logits of P_B, [N,BackActions]; nil means uniform over the legal backward actions.
	Backward *Node
	// Flow is the log-flow log F(s), [N] (what is added to the partial log-reward if an objective is forward-looking);
	// nil if the policy has none. At the initial state it is log Z(x).
	Flow *Node
}

// Policy is a conditional GFlowNet q(z|x): a network that reads an observation and a state.
//
// Heads evaluates k states of each observation at once: x has B rows, s has B*k, and row b*k+i of s belongs to
// observation b. What depends on x alone is computed once per observation and then repeated (Batch.Repeat). Logits need
// no masking. Variables live below scope and are looked up with scope.At, since one graph calls Heads many times.
type Policy interface {
	Heads(scope *model.Scope, x Batch, s State, k int) Heads
}

// Encoder is implemented by policies that read features of observations instead of the observations themselves. Encode
// computes them once for all states of an update, and everything else of the policy is called with them. The
// environment never is: its initial states are those of the observations.
type Encoder interface {
	Encode(scope *model.Scope, x Batch) Batch
}

// Causal is implemented by policies that can say at once, and at less cost, what they say about all states of
// trajectories, as autoregressive networks can.
type Causal interface {
	// HeadsAlong is Heads for trajectories of each observation: states[t] are those at step t, [B] each, and row b*T+t of
	// the answer belongs to states[t] of observation b. States of a trajectory follow each other, by one action or, where
	// steps are padding, by none.
	HeadsAlong(scope *model.Scope, x Batch, states []State) Heads
}

// Partition is implemented by policies that learn log Z apart from the flow of states, as a scalar or as a function of
// x.
type Partition interface {
	// LogZ returns log Z(x), [B].
	LogZ(scope *model.Scope, x Batch) *Node
}

// illegal is the logit of an action that cannot be taken; exp of it is 0 beside any real logit, in float32 too.
const illegal = -1e30

// logProbs normalises logits [N,A] over the legal actions. Rows without a legal action are padding: they get the
// log-probabilities of their bare logits, which the caller must mask.
func logProbs(logits, legal *Node) *Node {
	padding := LogicalNot(anyTrue(legal))
	allowed := LogicalOr(legal, column(padding, legal.Shape().Dim(-1)))
	return LogSoftmax(Where(allowed, logits, AddScalar(ZerosLike(logits), illegal)))
}

// flatLogits are the logits of the uniform policy over the legal actions.
func flatLogits(legal *Node, dtype dtypes.DType) *Node {
	return Zeros(legal.Graph(), withDType(legal.Shape(), dtype))
}

func withDType(s shapes.Shape, dtype dtypes.DType) shapes.Shape {
	return shapes.Make(dtype, s.Dimensions...)
}

// fail stops the building of a graph; the program's Call then returns the error.
func fail(format string, args ...any) { blame.Panicf("gfn: "+format, args...) }
