// Package em learns latent variable models by GFlowNet-EM (Hu, Malkin, Jain, Everett, Graikos, Bengio, "GFlowNet-EM for
// Learning Compositional Latent Variable Models", ICML 2023).
//
// A Learner alternates two kinds of updates. The E-step trains a GFlowNet q(z|x) to sample z in proportion to p(x,z):
// on its own, possibly exploring, samples (wake) and on pairs dreamt by the model (sleep). The M-step trains p on
// latents drawn from q, possibly refined by Metropolis-Hastings moves. The model's variables live below Theta, the
// GFlowNet's below Phi, and neither step moves the other's.
package em

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
)

// The scopes of the sets of variables.
const (
	Theta = "/theta" // the model's
	Phi   = "/phi"   // the GFlowNet's
	Kept  = "/kept"  // what Replay, Memory, Persist and Stepwise keep, which no optimiser moves
)

// Spec says what is learned and how. Fields left at zero have the documented default.
type Spec struct {
	Model lvm.Model
	Env   gfn.Env
	// Policy is q(z|x). It may read the model's variables, too: those below phi.Store().Scope(Theta), where phi is the
	// scope that it is called with. So it can know what the model thinks of each action, say. E-steps do not move them,
	// and q changes with the model.
	Policy gfn.Policy
	Data   Data
	// Prepare turns what Data supplies into observations, inside a program; nil means that it supplies these. So
	// observations can stay in the memory of the backend, of which Data names some.
	Prepare func(data []*Node) gfn.Batch
	// Seed is that of everything random, initial values included; 0 means the seed of the store (see nn.NewStore). A store
	// that has neither a seed nor variables takes this one; no other store with another seed can be learned in.
	Seed uint64

	Wake  Wake
	Sleep Sleep
	Gate  Gate
	MStep MStep
}

// Encoder is implemented by policies that read features of observations.
type Encoder = gfn.Encoder

// Wake is the E-step on samples of the GFlowNet itself.
type Wake struct {
	// Objective is the loss; nil means gfn.TB{}. A gfn.VarGrad{} compares the Samples trajectories of each observation,
	// and those to its remembered latents; gfn.RWS{} and gfn.VIMCO{} weigh the Samples trajectories.
	Objective gfn.Objective
	// Samples is the number of trajectories per observation; 0 means 1.
	Samples int
	// Explore is how the policy that acts differs from the one that is trained.
	Explore Explore
	// Reward is log R(z|x), [B]; nil means the model's log p(x,z). It may depend on the model's variables, which are
	// constants here.
	Reward func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node
	// Partial is a partial log-reward for forward-looking flows, [N], of k states per observation; nil means none.
	Partial func(theta *model.Scope, x gfn.Batch, s gfn.State, k int) *Node
	// Rescore evaluates the policy again on all states of the sampled trajectories, in one batched pass that is then
	// differentiated, instead of differentiating the T evaluations made while sampling. It pays for long trajectories
	// and large networks.
	Rescore bool
	// Replay and Memory let the policy learn, besides from what it draws, from what it has drawn before.
	Replay Replay
	Memory Memory
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
	// Data supplies the observations of M-steps, by their number; nil means the batch of the E-step before.
	Data Data
	// Latents are those learned from; nil means Drawn{}.
	Latents Latents
	// Moves is the number of Metropolis-Hastings moves that refine the latents.
	Moves int
	// Kernel makes the moves.
	Kernel gfn.BackForth
	// Persist lets the moves go on where those of the M-step before on the same observation have ended.
	Persist Persistent
	// Loss is what is minimised, a scalar; nil means the mean of -log p(x,z). Besides the latents it may ask for others,
	// which are drawn from the policy as it is, never greedily and without moves.
	Loss func(theta *model.Scope, x gfn.Batch, z gfn.State, draw func() gfn.State) *Node
	// Objective is Loss for models of which more changes in an update than what gradients move, running statistics of
	// batch normalisation, say: it also returns that. And it is one for Weighted latents: weight, [B], is what each counts,
	// in all 1, or nil if all count the same.
	Objective func(theta *model.Scope, x gfn.Batch, z gfn.State, weight *Node, draw func() gfn.State) (
		loss *Node, with []optim.Assignment)
	// ClosedForm sets the model's variables to the maximum of the expected log-likelihood; the model must be an
	// lvm.Maximizer or an lvm.Exponential.
	ClosedForm bool
	// Stepwise, if not nil, is a closed form for small batches: it sets the model's variables to where the expected
	// log-likelihood would be greatest if sufficient statistics had the means of a running average over M-steps, of
	// which the newest one counts as much as Stepwise says, from above 0 to 1; the first one counts in full. The model
	// must be an lvm.Exponential. A rate of 1 is ClosedForm; optim.Power(0.7, 0), which falls, ends at a maximum in spite
	// of sampled latents (Cappé, Moulines, "On-line Expectation-Maximization Algorithm for Latent Data Models", 2009;
	// Liang, Klein, "Online EM for Unsupervised Models", 2009). The averages are variables below Kept.
	Stepwise optim.RateFunc
	// Optimizer of Theta otherwise; no groups means Adam with rate 1e-3.
	Optimizer optim.Optimizer
}

// Latents says which latents an M-step learns from. It is one of Drawn, Greedy, BestOfWake and Weighted.
type Latents interface{ latents() }

// Drawn latents are samples of the policy as it is.
type Drawn struct {
	Samples int // for each observation; 0 means 1
}

// Greedy latents are the most probable actions, one after the other.
type Greedy struct {
	Probability float64 // of being greedy, one coin for the batch, and else drawn; 0 means 1
}

// BestOfWake latents are, of those that wake has drawn for an observation, the ones with the greatest reward. Where an
// M-step is certain to follow, both updates are one program. An M-step without such an E-step draws as many for itself.
// Those that Replay or Memory have kept from earlier updates are not among them.
type BestOfWake struct{}

// Weighted latents are several samples of the policy for each observation, each of which counts, among those of its
// observation, in proportion to its importance weight
//
//	p(x,z) prod_t P_B / prod_t P_F
//
// This is the wake-theta update of reweighted wake-sleep (Bornschein, Bengio, "Reweighted Wake-Sleep", 2015). Its
// gradient tends to that of log p(x) with their number, for any policy that reaches all latents; with one sample it is
// that of Drawn{}. The mean effective sample size is the metric "m/ess". Latents that the model holds to be impossible
// have weight 0, and an observation that has no others is left out of the mean.
type Weighted struct {
	// Samples is how many the M-step draws for each observation. 0 means those that wake has drawn, unless it explores:
	// then as many are drawn from the policy as it is. Those that Replay or Memory have kept are not among them.
	Samples int
}

func (Drawn) latents()      {}
func (Greedy) latents()     {}
func (BestOfWake) latents() {}
func (Weighted) latents()   {}

// withDefaults fills in what the zero value stands for.
func (s Spec) withDefaults() Spec {
	if s.Wake.Objective == nil {
		s.Wake.Objective = gfn.TB{}
	}
	s.Wake.Samples = max(s.Wake.Samples, 1)
	switch o := s.Wake.Objective.(type) { // only trajectories of one observation share a log Z
	case gfn.VarGrad:
		if o.Samples == 0 {
			s.Wake.Objective = gfn.VarGrad{Samples: s.Wake.Samples + s.Wake.Memory.Latents}
		}
	case gfn.RWS:
		s.Wake.Objective = gfn.RWS{Samples: s.Wake.Samples}
	case gfn.VIMCO:
		s.Wake.Objective = gfn.VIMCO{Samples: s.Wake.Samples}
	}
	if s.MStep.Latents == nil {
		s.MStep.Latents = Drawn{}
	}
	s.Wake.Optimizer = orAdam(s.Wake.Optimizer, Phi)
	s.MStep.Optimizer = orAdam(s.MStep.Optimizer, Theta)
	if s.Sleep.Probability == 0 {
		s.Sleep.Probability = 1
	}
	return s
}

func orAdam(o optim.Optimizer, scope string) optim.Optimizer {
	if len(o.Groups) == 0 {
		o.Groups = []optim.Group{{Scope: scope, Rate: optim.Rate{Base: 1e-3}}}
	}
	return o
}
