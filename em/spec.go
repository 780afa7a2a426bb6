// Package em learns latent variable models by GFlowNet-EM (Hu, Malkin, Jain, Everett, Graikos, Bengio, "GFlowNet-EM for
// Learning Compositional Latent Variable Models", ICML 2023).
//
// A Learner alternates two kinds of updates. The E-step trains a GFlowNet q(z|x) to sample z in proportion to
// p(x,z): on its own, possibly exploring, samples (wake) and on pairs dreamt by the model (sleep). The M-step trains p on
// latents drawn from q, possibly refined by Metropolis-Hastings moves. The model's variables live below Theta, the
// GFlowNet's below Phi, and neither step moves the other's.
package em

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
)

// The scopes of the two sets of variables.
const (
	Theta = "/theta" // the model's
	Phi   = "/phi"   // the GFlowNet's
)

// Spec says what is learned and how. Fields left at zero have the documented default.
type Spec struct {
	Model  lvm.Model
	Env    gfn.Env
	Policy gfn.Policy
	Data   Data
	// Prepare turns what Data supplies into observations, inside a program; nil means that it supplies these. So observations
	// can stay in the memory of the backend, of which Data names some.
	Prepare func(data []*Node) gfn.Batch
	Seed    uint64

	Wake  Wake
	Sleep Sleep
	Gate  Gate
	MStep MStep
}

// Encoder is implemented by policies that read features of observations instead of the observations themselves. Encode
// computes them once for all states of an update, and everything else of the policy is called with them.
type Encoder interface {
	Encode(phi *model.Scope, x gfn.Batch) gfn.Batch
}

// Wake is the E-step on samples of the GFlowNet itself.
type Wake struct {
	// Objective is the loss; nil means gfn.TB{}. A gfn.VarGrad{} compares the Samples trajectories of each observation.
	Objective gfn.Objective
	// Samples is the number of trajectories per observation; 0 means 1.
	Samples int
	// Beta tempers the policy that acts: its logits are multiplied by Beta. The zero value means 1.
	Beta Linear
	// Epsilon is the probability with which an action is replaced by a uniform one.
	Epsilon Linear
	// Reward is log R(z|x), [B]; nil means the model's log p(x,z). It may depend on the model's variables, which are
	// constants here.
	Reward func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node
	// Partial is a partial log-reward for forward-looking flows, [N], of k states per observation; nil means none.
	Partial func(theta *model.Scope, x gfn.Batch, s gfn.State, k int) *Node
	// Rescore evaluates the policy again on all states of the sampled trajectories, in one batched pass that is then
	// differentiated, instead of differentiating the T evaluations made while sampling. It pays for long trajectories
	// and large networks.
	Rescore bool
	// Optimizer of Phi, which sleep shares; no groups means Adam with rate 1e-3.
	Optimizer optim.Optimizer
}

// Sleep is the E-step on pairs (x,z) drawn from the model: the likelihood of z's trajectories, sampled backward.
type Sleep struct {
	// Weight of the sleep loss; 0 means no sleep phase.
	Weight float64
	// Probability that an E-update has a sleep phase; 0 means 1.
	Probability float64
	// Batch is the number of pairs; it must be set.
	Batch int
	// Apart makes sleep an update of its own after the wake update, instead of adding the two losses.
	Apart bool
	// Alone leaves out the wake update: every E-update is a sleep phase.
	Alone bool
}

// MStep trains the model on latents of the GFlowNet.
type MStep struct {
	// Data supplies the observations of M-updates, by their number; nil means the batch of the E-update before.
	Data Data
	// Samples is the number of latents per observation; 0 means 1.
	Samples int
	// Greedy takes the most probable actions instead of sampling.
	Greedy bool
	// GreedyProbability is that of a greedy update to be greedy, one coin for the batch; 0 means 1.
	GreedyProbability float64
	// Best makes the M-update part of the E-update, one program for both, and takes, of the latents that wake has drawn for an observation, that
	// with the greatest reward. There is one of each in every iteration: Gate stays zero, and so do Data, Samples, Greedy, Moves and ClosedForm.
	// Sleep, if any, must be Apart.
	Best bool
	// Moves is the number of Metropolis-Hastings moves that refine the latents.
	Moves int
	// Kernel makes the moves.
	Kernel gfn.BackForth
	// Loss is what is minimised, a scalar; nil means the mean of -log p(x,z). Besides the latents it may ask for others,
	// which are drawn from the policy as it is, never greedily and without moves.
	Loss func(theta *model.Scope, x gfn.Batch, z gfn.State, draw func() gfn.State) *Node
	// ClosedForm sets the model's variables to the maximum of the expected log-likelihood; the model must be an
	// lvm.Maximizer.
	ClosedForm bool
	// Optimizer of Theta otherwise; no groups means Adam with rate 1e-3.
	Optimizer optim.Optimizer
}

// WithoutM is the same without M-updates.
func (s Spec) WithoutM() Spec {
	s.Gate, s.MStep.Best = Gate{First: math.MaxInt}, false
	return s
}

// withDefaults fills in what the zero value stands for.
func (s Spec) withDefaults() Spec {
	if s.Wake.Objective == nil {
		s.Wake.Objective = gfn.TB{}
	}
	if s.Wake.Beta == (Linear{}) {
		s.Wake.Beta = Constant(1)
	}
	if s.Wake.Reward == nil {
		s.Wake.Reward = s.Model.LogJoint
	}
	s.Wake.Samples = max(s.Wake.Samples, 1)
	if v, ok := s.Wake.Objective.(gfn.VarGrad); ok && v.Samples == 0 {
		v.Samples = s.Wake.Samples // only trajectories of one observation share a log Z
		s.Wake.Objective = v
	}
	s.MStep.Samples = max(s.MStep.Samples, 1)
	s.Wake.Optimizer = orAdam(s.Wake.Optimizer, Phi)
	s.MStep.Optimizer = orAdam(s.MStep.Optimizer, Theta)
	if s.Sleep.Probability == 0 {
		s.Sleep.Probability = 1
	}
	if s.MStep.GreedyProbability == 0 {
		s.MStep.GreedyProbability = 1
	}
	if s.MStep.Best {
		s.Gate = Gate{First: math.MaxInt} // M-updates come with E-updates, and no others do
	}
	if s.MStep.Loss == nil {
		s.MStep.Loss = func(theta *model.Scope, x gfn.Batch, z gfn.State, _ func() gfn.State) *Node {
			return Neg(ReduceAllMean(s.Model.LogJoint(theta, x, z)))
		}
	}
	return s
}

func orAdam(o optim.Optimizer, scope string) optim.Optimizer {
	if len(o.Groups) == 0 {
		o.Groups = []optim.Group{{Scope: scope, Rate: optim.Rate{Base: 1e-3}}}
	}
	return o
}
