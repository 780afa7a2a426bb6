package gfn

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/rng"
)

const actionType = dtypes.Int32

// Net joins what every sampling and scoring function needs: an environment, a policy for it and the scope of the
// policy's variables.
type Net struct {
	Env    Env
	Policy Policy
	Scope  *model.Scope
}

// Trajectory is a batch of paths through an environment, stored step by step. Paths shorter than T are padded with
// steps that change nothing: at the end if they were sampled forward, at the start if they were sampled backward. All
// of it is constant to gradients.
type Trajectory struct {
	X      Batch
	States []State // T+1 states; States[t+1] follows States[t]
	Action []*Node // T actions, [B] int32
	Back   []*Node // T backward actions, [B] int32: Back[t] leads from States[t+1] to States[t]
	Valid  []*Node // T masks, [B] bool: false where step t is padding

	heads []Heads // what the policy said at States[0..T-1] while sampling forward; nil if it was not asked
}

// Steps is T.
func (tr Trajectory) Steps() int { return len(tr.Action) }

// Last returns the final states: the objects z of complete trajectories.
func (tr Trajectory) Last() State { return tr.States[len(tr.States)-1] }

// Length returns the number of real steps of each path, [B] int32.
func (tr Trajectory) Length() *Node {
	return ReduceSum(ConvertDType(Stack(tr.Valid, 1), dtypes.Int32), 1)
}

// Rollout samples trajectories forward from s until they are terminal. A nil s means the initial states of x; if x are an
// Encoder's features, s must be given (see Initial).
func (n Net) Rollout(r *rng.Stream, x Batch, s State, how Behaviour) Trajectory {
	env := n.env()
	if s == nil {
		s = env.Initial(x)
	}
	s = constants(s)
	tr := Trajectory{X: x, States: []State{s}}
	for range env.Steps() {
		h := n.heads(x, s, 1)
		legal := env.Legal(s)
		a := how.choose(r, h.Forward, legal)
		valid := anyTrue(legal)
		next := constants(chooseState(valid, env.Step(s, a), s))
		tr.Action = append(tr.Action, a)
		tr.Back = append(tr.Back, env.Back(s, a))
		tr.Valid = append(tr.Valid, valid)
		tr.States = append(tr.States, next)
		tr.heads = append(tr.heads, h)
		s = next
	}
	return tr
}

// Backtrack samples trajectories backward from z by the backward policy, and returns them in forward order. It takes at
// most limit steps (scalar or [B] int32; nil means all the way to the initial states).
func (n Net) Backtrack(r *rng.Stream, x Batch, z State, limit *Node, how Behaviour) Trajectory {
	env := n.env()
	steps := env.Steps()
	tr := Trajectory{
		X: x, States: make([]State, steps+1),
		Action: make([]*Node, steps), Back: make([]*Node, steps), Valid: make([]*Node, steps),
	}
	s := constants(z)
	tr.States[steps] = s
	for taken := range steps {
		legal := env.LegalBack(s)
		h := n.heads(x, s, 1)
		logits := h.Backward
		if logits == nil {
			logits = flatLogits(legal, h.Forward.DType())
		}
		b := how.choose(r, logits, legal)
		valid := anyTrue(legal)
		if limit != nil {
			more := GreaterThan(limit, Scalar(limit.Graph(), limit.DType(), taken))
			valid = LogicalAnd(valid, BroadcastToShape(more, valid.Shape()))
		}
		t := steps - 1 - taken
		tr.Back[t] = b
		tr.Action[t] = env.Redo(s, b)
		tr.Valid[t] = valid
		s = constants(chooseState(valid, env.Undo(s, b), s))
		tr.States[t] = s
	}
	return tr
}

// Scores are the log-probabilities of stored trajectories; padding counts 0.
type Scores struct {
	LogPF *Node // [B,T]
	LogPB *Node // [B,T]
	Flow  *Node // [B,T], Heads.Flow at States[0..T-1]; nil if the policy has none
}

// Score evaluates the policy on all states of trajectories in one batched pass and returns the log-probabilities that
// the behaviour gives to the stored actions; the zero Behaviour is the policy itself, which is what losses use.
func (n Net) Score(tr Trajectory, how Behaviour) Scores {
	count := tr.Steps()
	if n.learnsBackward(tr) {
		count++ // P_B is read at the states that a step leads to, the terminal one included
	}
	return n.scores(tr, n.headsAlong(tr.X, tr.States[:count]), how)
}

// ScoreSampled is Score from what the policy said while the trajectories were sampled by Rollout: nothing is evaluated
// again, and gradients flow through the T separate evaluations. It pays where T is small and the batch large.
func (n Net) ScoreSampled(tr Trajectory, how Behaviour) Scores {
	heads := tr.heads
	if heads == nil {
		fail("ScoreSampled needs trajectories from Rollout; use Score")
	}
	if n.learnsBackward(tr) {
		heads = append(heads[:len(heads):len(heads)], n.heads(tr.X, tr.Last(), 1))
	}
	join := func(get func(Heads) *Node) *Node {
		all := xslices.Map(heads, get)
		if all[0] == nil {
			return nil
		}
		if slices.Contains(all, nil) {
			blame.Method(n.Policy, "Heads").Panicf("returns a backward head or a flow for some states only")
		}
		return mergeSteps(Stack(all, 1))
	}
	return n.scores(tr, Heads{
		Forward:  join(func(h Heads) *Node { return h.Forward }),
		Backward: join(func(h Heads) *Node { return h.Backward }),
		Flow:     join(func(h Heads) *Node { return h.Flow }),
	}, how)
}

// scores reads log-probabilities from heads evaluated at States[0..T-1], or at States[0..T] with a learned P_B.
func (n Net) scores(tr Trajectory, h Heads, how Behaviour) Scores {
	b, t := tr.X.Size(), tr.Steps()
	valid := Stack(tr.Valid, 1) // [B,T]
	zero := Zeros(valid.Graph(), withDType(valid.Shape(), h.Forward.DType()))

	forward := stepRange(h.Forward, b, 0, t)                                   // [B*T,A]
	logAll := how.LogProbs(forward, n.env().Legal(stackStates(tr.States[:t]))) // [B*T,A]
	logPF := Reshape(Pick(logAll, Reshape(Stack(tr.Action, 1), b*t)), b, t)    // [B,T]
	legalBack := n.env().LegalBack(stackStates(tr.States[1:]))                 // [B*T,BackActions]
	backward := flatLogits(legalBack, h.Forward.DType())                       // [B*T,BackActions]
	if h.Backward != nil {
		backward = stepRange(h.Backward, b, 1, t)
	}
	logAllBack := how.LogProbs(backward, legalBack)                           // [B*T,BackActions]
	logPB := Reshape(Pick(logAllBack, Reshape(Stack(tr.Back, 1), b*t)), b, t) // [B,T]

	s := Scores{LogPF: Where(valid, logPF, zero), LogPB: Where(valid, logPB, zero)}
	if h.Flow != nil {
		s.Flow = Reshape(stepRange(h.Flow, b, 0, t), b, t)
	}
	return s
}

// learnsBackward reports whether the policy has a backward head. The probe's nodes are not outputs of the graph, so
// they cost nothing when it runs.
func (n Net) learnsBackward(tr Trajectory) bool {
	return n.heads(tr.X, tr.States[0], 1).Backward != nil
}

// constants keeps gradients out of states: they were sampled, and the operations that made them may have no gradient.
func constants(s State) State { return xslices.Map(s, StopGradient) }

// stackStates joins states of successive steps into one of N = B*K rows, row b*K+t being step t of observation b.
func stackStates(states []State) State {
	out := make(State, len(states[0]))
	for i := range out {
		out[i] = mergeSteps(Stack(xslices.Map(states, func(s State) *Node { return s[i] }), 1))
	}
	return out
}

// mergeSteps reshapes [B,K,...] to [B*K,...].
func mergeSteps(x *Node) *Node {
	dims := x.Shape().Dimensions
	return Reshape(x, append([]int{dims[0] * dims[1]}, dims[2:]...)...)
}

// stepRange takes count steps from the given one on, of rows [B*K,...], as [B*count,...].
func stepRange(rows *Node, b, from, count int) *Node {
	dims := rows.Shape().Dimensions
	k := dims[0] / b
	if k == count {
		return rows
	}
	split := Reshape(rows, append([]int{b, k}, dims[1:]...)...)
	return mergeSteps(SliceAxis(split, 1, AxisRange(from, from+count)))
}
