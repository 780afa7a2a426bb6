// Package gfn trains GFlowNets inside GoMLX graphs.
//
// A GFlowNet assembles an object z step by step and is trained so that z comes out in proportion to a reward R(z|x).
// Everything here works on batches: observations x, states, actions and log-probabilities are graph nodes whose first
// axis is the batch, with static shapes and masks for what is not there.
//
// The axes, by letter: B observations of a batch, T steps of a trajectory, A forward actions, K states evaluated per
// observation, N = B*K. Names of logarithms start with log.
//
// The parts and how they meet:
//
//	Env        how z is assembled                  Rollout, Backtrack   sample trajectories with a Behaviour
//	Policy     learned P_F, P_B and flow           Score                log-probabilities of stored trajectories
//	Objective  a loss on a Path                    BackForth            a Metropolis-Hastings kernel from P_B and P_F
//	DAG        all states of a small Env, for exact answers
package gfn

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/xslices"
)

// Batch holds the observations x: one or more tensors that share the batch axis B.
type Batch []*Node

// Size returns B.
func (x Batch) Size() int { return x[0].Shape().Dim(0) }

// Repeat repeats every observation k times in a row, so that row b*k+i is observation b.
func (x Batch) Repeat(k int) Batch { return repeatRows(x, k) }

// State holds a batch of partly built objects: one or more tensors that share the batch axis.
type State []*Node

// Repeat repeats every state k times in a row.
func (s State) Repeat(k int) State { return repeatRows(s, k) }

// Tile repeats the whole list of states k times: row i*n+j is state j of n.
func (s State) Tile(k int) State {
	return xslices.Map(s, func(t *Node) *Node {
		return mergeSteps(BroadcastToDims(InsertAxes(t, 0), append([]int{k}, t.Shape().Dimensions...)...))
	})
}

// Env says how a latent z is assembled, one action at a time.
//
// A state that no action can change is terminal, and terminal states are the objects z. Actions are numbered
// 0..Actions()-1 and backward actions, which take a state back to one of its parents, 0..BackActions()-1.
//
// Laws, checked by envtest.Run:
//   - the initial state has no legal backward action, and every other state has one;
//   - Back names the backward action that reverses a legal action: Undo(Step(s, a), Back(s, a)) is s;
//   - Redo names the action that reverses a legal backward action: Step(Undo(s, b), Redo(s, b)) is s;
//   - two backward actions of a state lead to different parents, and two actions to different children;
//   - every path from the initial state reaches a terminal state in at most Steps() actions.
//
// Only Initial sees the observations. Where they decide what is legal, what decides it is part of the state, a length or
// a mask, say: Initial puts it there, and Step and Undo hand it on as it is. See envs.Segmentation.
//
// Methods build graph nodes for whole batches. They are called with illegal actions on rows whose result is then
// discarded, so they must not fail on them. States are compared by their values: equal objects, equal tensors. Answers
// of other shapes than those stated are errors of the program that is built.
type Env interface {
	// Steps is T, the largest number of actions in a trajectory.
	Steps() int
	// Actions is A, the number of forward actions.
	Actions() int
	// BackActions is the number of backward actions.
	BackActions() int
	// Initial returns s_0 for every observation: what the model sees, also where the policy sees an Encoder's features.
	Initial(x Batch) State
	// Legal marks the actions that can be taken: [B,A] bool.
	Legal(s State) *Node
	// Step takes the actions a, [B] int32.
	Step(s State, a *Node) State
	// LegalBack marks the backward actions that can be taken: [B,BackActions] bool.
	LegalBack(s State) *Node
	// Undo takes the backward actions b, [B] int32.
	Undo(s State, b *Node) State
	// Back returns the backward actions [B] that undo the actions a taken in s.
	Back(s State, a *Node) *Node
	// Redo returns the actions [B] that undo the backward actions b taken in s.
	Redo(s State, b *Node) *Node
}

// Initial returns the initial states of observations. Rollout starts from them by itself unless the policy is called with
// an Encoder's features, which say nothing to an environment.
func Initial(env Env, x Batch) State { return check(env).Initial(x) }

// Terminal marks the states in which no action is legal: [B] bool.
func Terminal(env Env, s State) *Node { return LogicalNot(anyTrue(check(env).Legal(s))) }

// AtStart marks the states in which no backward action is legal, as in the initial one: [B] bool.
func AtStart(env Env, s State) *Node { return LogicalNot(anyTrue(check(env).LegalBack(s))) }

// Same marks the rows in which two batches of states are equal: [B] bool.
func Same(a, b State) *Node {
	var all *Node
	for i := range a {
		x, y := a[i], b[i]
		if x.DType() == dtypes.Bool {
			x, y = ConvertDType(x, dtypes.Int32), ConvertDType(y, dtypes.Int32)
		}
		equal := ConvertDType(Equal(x, y), dtypes.Int32)
		least := ReduceMin(Reshape(equal, equal.Shape().Dim(0), -1), 1)
		if all == nil {
			all = least
		} else {
			all = Mul(all, least)
		}
	}
	return LogicalNot(IsZero(all))
}

// repeatRows repeats every row of every tensor k times in a row.
func repeatRows[S ~[]*Node](rows S, k int) S {
	if k == 1 {
		return rows
	}
	return xslices.Map(rows, func(r *Node) *Node {
		dims := r.Shape().Dimensions
		return mergeSteps(BroadcastToDims(InsertAxes(r, 1), append([]int{dims[0], k}, dims[1:]...)...))
	})
}

// anyTrue reduces the last axis of a bool tensor by or.
func anyTrue(mask *Node) *Node {
	return GreaterThan(ReduceSum(ConvertDType(mask, dtypes.Int32), -1), ScalarZero(mask.Graph(), dtypes.Int32))
}

// chooseState returns, row by row, a where cond is true and b elsewhere; cond is [B].
func chooseState(cond *Node, a, b State) State {
	out := make(State, len(a))
	for i := range a {
		out[i] = Where(cond, a[i], b[i])
	}
	return out
}

// Pick reads one entry per row: table [..., A] at idx [...], as a masked sum, which differentiates everywhere and is
// faster than a gather for the short rows of action tables.
func Pick(table, idx *Node) *Node {
	g := table.Graph()
	shape := table.Shape().Clone()
	shape.DType = dtypes.Int32
	hit := Equal(Iota(g, shape, -1), BroadcastToDims(InsertAxes(idx, -1), shape.Dimensions...))
	return ReduceSum(Where(hit, table, ZerosLike(table)), -1)
}
