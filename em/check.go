package em

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// check returns what is wrong with a Spec, as far as it shows before its functions are called.
func (s Spec) check() error {
	if s.Model == nil || s.Env == nil || s.Policy == nil || s.Data == nil {
		return errors.New("a learner needs a Model, an Env, a Policy and Data")
	}
	var gate error
	if s.Gate != nil {
		gate = s.Gate.check()
	}
	return cmp.Or(s.Wake.checkKept(s.Sleep.Alone), s.Wake.check(), s.Sleep.check(), s.MStep.check(s.Model), gate)
}

func (w Wake) check() error {
	switch o := w.Objective.(type) {
	case gfn.RWS:
		if err := w.checkSeveral("RWS", o.Samples); err != nil {
			return err
		}
	case gfn.VIMCO:
		if err := w.checkSeveral("VIMCO", o.Samples); err != nil {
			return err
		}
	case gfn.VarGrad:
		if o.Samples > 0 && w.Memory.Latents == 0 && max(w.Samples, 1)%o.Samples != 0 {
			return fmt.Errorf("VarGrad.Samples is %d, which does not divide the %d Wake.Samples of an observation",
				o.Samples, max(w.Samples, 1))
		}
	case gfn.Likelihood:
		return errors.New("gfn.Likelihood is the loss of sleep; as Wake.Objective it would make the policy more certain of " +
			"whatever it draws")
	}
	if name := onPolicy(w.Objective); name != "" && w.Explore.explores() {
		return fmt.Errorf("the gradient of %s is right for on-policy trajectories only: leave Wake.Explore at zero", name)
	}
	return cmp.Or(
		count("Wake.Samples", w.Samples),
		w.Explore.Beta.check("Wake.Explore.Beta", math.MaxFloat64),
		w.Explore.Epsilon.check("Wake.Explore.Epsilon", 1),
		trains(w.Optimizer, "Wake", Phi),
	)
}

// onPolicy names an objective that is right for on-policy trajectories only; "" is any other.
func onPolicy(o gfn.Objective) string {
	switch o.(type) {
	case gfn.HVI:
		return "HVI"
	case gfn.RWS:
		return "RWS"
	case gfn.VIMCO:
		return "VIMCO"
	}
	return ""
}

// checkSeveral returns what is wrong with the number of trajectories of an objective that compares those of an
// observation.
func (w Wake) checkSeveral(name string, samples int) error {
	switch all := max(w.Samples, 1); {
	case all == 1:
		return fmt.Errorf("%s needs two or more trajectories of each observation: set Wake.Samples", name)
	case samples != 0 && samples != all:
		return fmt.Errorf("%s.Samples is %d, and an observation has %d Wake.Samples: leave it at 0", name, samples, all)
	}
	return nil
}

func (s Sleep) check() error {
	switch {
	case !(s.Weight >= 0):
		return fmt.Errorf("Sleep.Weight is %g, which is below 0", s.Weight)
	case s.Alone && s.Weight == 0:
		return errors.New("Sleep.Alone needs a Sleep.Weight")
	case s.Weight != 0 && s.Batch < 1:
		return errors.New("a sleep phase needs Sleep.Batch, the number of pairs to dream")
	}
	return cmp.Or(count("Sleep.Batch", s.Batch), within("Sleep.Probability", s.Probability, 1))
}

func (m MStep) check(of lvm.Model) error {
	_, maximizer := of.(lvm.Maximizer)
	_, exponential := of.(lvm.Exponential)
	if m.ClosedForm && !maximizer && !exponential {
		return fmt.Errorf("a closed-form M-step needs a model with Maximize, or with Statistics and MaximizeMeans, which %T "+
			"has not", of)
	}
	if m.Stepwise != nil && !exponential {
		return fmt.Errorf("a stepwise M-step needs a model with Statistics and MaximizeMeans, which %T has not", of)
	}
	if m.Stepwise != nil && m.ClosedForm {
		return errors.New("MStep.Stepwise is a closed form already: leave out MStep.ClosedForm")
	}
	if m.maximizes() && (m.Loss != nil || m.Objective != nil) {
		return errors.New("a closed-form or stepwise M-step maximises log p(x,z): leave out MStep.Loss and MStep.Objective")
	}
	if m.Loss != nil && m.Objective != nil {
		return errors.New("MStep.Loss and MStep.Objective are both what an M-step minimises: leave one of them out")
	}
	if _, err := m.weight(0); err != nil {
		return err
	}
	if m.Kernel.How != (gfn.Behaviour{}) {
		return errors.New("moves explore as the E-step does: leave MStep.Kernel.How at zero and set Wake.Explore")
	}
	var latents error
	switch l := m.Latents.(type) {
	case Drawn:
		latents = count("Drawn.Samples", l.Samples)
	case Greedy:
		latents = within("Greedy.Probability", l.Probability, 1)
	case Weighted:
		latents = cmp.Or(count("Weighted.Samples", l.Samples), m.checkWeighted())
	}
	return cmp.Or(
		latents,
		m.checkPersist(),
		count("MStep.Moves", m.Moves),
		count("MStep.Kernel.MaxSteps", m.Kernel.MaxSteps),
		trains(m.Optimizer, "MStep", Theta),
	)
}

// checkWeighted returns what weights cannot be combined with.
func (m MStep) checkWeighted() error {
	switch {
	case m.Moves > 0:
		return errors.New("the weights of em.Weighted are right for samples of the policy, and MStep.Moves makes others of " +
			"them")
	case m.maximizes():
		return errors.New("em.Weighted weighs log p(x,z), and a closed-form M-step has no place for weights")
	case m.Loss != nil:
		return errors.New("em.Weighted weighs log p(x,z), and MStep.Loss is one number for all latents: leave one of them " +
			"out, or take MStep.Objective")
	}
	return nil
}

func (g Blocks) check() error {
	if math.IsNaN(g.Below) {
		return errors.New("Blocks.Below is not a number")
	}
	return cmp.Or(count("Blocks.E", g.E), count("Blocks.M", g.M), count("Blocks.First", g.First))
}

func (g Adaptive) check() error {
	if t := g.Threshold; math.IsNaN(t.From) || math.IsNaN(t.To) {
		return errors.New("Adaptive.Threshold is not a number")
	}
	if g.Decay == 1 {
		return errors.New("Adaptive.Decay is 1: the average would stay at 0")
	}
	return within("Adaptive.Decay", g.Decay, 1)
}

func (g Turns) check() error { return count("Turns.Length", g.Length) }

// checkGroups returns an error if an optimiser is given a scope without variables.
func (g *graphs) checkGroups() error {
	if err := g.Wake.Optimizer.CheckStore(g.store); err != nil {
		return fmt.Errorf("Wake.Optimizer: %w", err)
	}
	if g.Gate == Never || g.MStep.maximizes() {
		return nil
	}
	if err := g.MStep.Optimizer.CheckStore(g.store); err != nil {
		return fmt.Errorf("MStep.Optimizer: %w", err)
	}
	return nil
}

func (c Classical) check() error {
	switch {
	case c.Model == nil || c.Data == nil || c.Env == nil:
		return errors.New("it needs a Model, an Env and Data")
	case c.Posterior != Exact && c.Posterior != MeanField:
		return fmt.Errorf("Posterior is %d, neither Exact nor MeanField", c.Posterior)
	}
	return cmp.Or(c.checkLatents(), count("Sweeps", c.Sweeps), trains(c.Optimizer, "Classical", Theta))
}

// checkLatents returns an error if the latents cannot be listed, as far as it shows without observations.
func (c Classical) checkLatents() error {
	if c.Env == nil {
		return errors.New("it needs an Env")
	}
	sequence, isSequence := c.Env.(envs.Sequence)
	for _, size := range sequence.Sizes {
		if size < 1 {
			return fmt.Errorf("the sizes %v of Env are not all 1 or more", sequence.Sizes)
		}
	}
	if isSequence && len(sequence.Sizes) == 0 {
		return errors.New("the Sequence of Env has no Sizes")
	}
	if c.Posterior == Exact && !isSequence {
		return nil
	}
	e, ok := c.Env.(gfn.Product)
	if !ok || e.Choices() == nil {
		return fmt.Errorf("MeanField needs latents that are products of independent choices, and those of %T are not: "+
			"it is to be a gfn.Product, without bounds that tie choices together", c.Env)
	}
	if n := product(e.Choices()); n > listable && !isSequence || n > 1<<30 {
		return fmt.Errorf("%T has too many latents to list: %d choices with %d combinations or more", c.Env, len(e.Choices()), n)
	}
	return nil
}

// check returns an error if the number leaves 0 to most.
func (l Linear) check(name string, most float64) error {
	return cmp.Or(within(name+".From", l.From, most), within(name+".To", l.To, most))
}

func within(name string, v, most float64) error {
	switch {
	case v >= 0 && v <= most:
		return nil
	case most == math.MaxFloat64:
		return fmt.Errorf("%s is %g; it is a finite number from 0 on", name, v)
	}
	return fmt.Errorf("%s is %g; it is from 0 to %g", name, v, most)
}

func count(name string, n int) error {
	if n < 0 {
		return fmt.Errorf("%s is %d, which is below 0", name, n)
	}
	return nil
}

// trains checks the optimiser of a step, which keeps to its side.
func trains(o optim.Optimizer, step, scope string) error {
	for _, g := range o.Groups {
		if g.Scope != scope && !strings.HasPrefix(g.Scope, scope+"/") {
			return fmt.Errorf("%s.Optimizer has a group %q, which is not below %s", step, g.Scope, scope)
		}
	}
	if err := o.Check(); err != nil {
		return fmt.Errorf("%s.Optimizer: %w", step, err)
	}
	return nil
}

// seeded returns the seed of all: that of the store, or else the one that is given, which the store then has.
func seeded(store *model.Store, seed uint64) (uint64, error) {
	_, has := store.RootScope().GetParam(nn.SeedParam)
	own := model.GetRootParamOr(store, nn.SeedParam, uint64(0))
	switch {
	case seed == 0 || has && seed == own:
		return own, nil
	case has:
		return 0, fmt.Errorf("Spec.Seed is %d, and the store starts its variables from %d: leave Spec.Seed at 0, or make "+
			"the store by nn.NewStore(%[1]d)", seed, own)
	case store.NumVariables() > 0:
		return 0, fmt.Errorf("Spec.Seed is %d, and the store has variables, but no seed: if these belong to the learner, "+
			"make the store by nn.NewStore(%[1]d), and give it another store if not", seed)
	}
	store.RootScope().SetParam(nn.SeedParam, seed)
	return seed, nil
}
